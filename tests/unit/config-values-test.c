/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-helpers.h"

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		uint32_t address;
		unsigned length;
	} good[] = {
		{ "10.1.2.3", 0x0a010203, 32 },        { "10.1.2.3/32", 0x0a010203, 32 },
		{ "10.1.0.0/16", 0x0a010000, 16 },     { "10.1.128.0/17", 0x0a018000, 17 },
		{ "8.8.8.8", 0x08080808, 32 },         { "169.254.169.254", 0xa9fea9fe, 32 },
		{ "223.255.255.255", 0xdfffffff, 32 }, { "192.0.2.53", 0xc0000235, 32 },
		{ "1.0.0.0/16", 0x01000000, 16 },      { "10.1.0.8/29", 0x0a010008, 29 },
		{ "126.255.0.0/16", 0x7eff0000, 16 },  { "128.0.0.0/16", 0x80000000, 16 },
	};
	static const Refusal bad[] = {
		{ "", { "not an IPv4 address" } },
		{ "/", { "not an IPv4 address" } },
		{ "/24", { "not an IPv4 address" } },
		{ "10.1.2", { "not an IPv4 address" } },
		{ "10.1.2.3.4", { "not an IPv4 address" } },
		{ "10.1.2.256", { "not an IPv4 address" } },
		{ "10.1.2.03", { "not an IPv4 address" } },
		{ "010.1.2.3", { "not an IPv4 address" } },
		{ "0x0a.1.2.3", { "not an IPv4 address" } },
		{ "167772161", { "not an IPv4 address" } },
		{ " 10.1.2.3", { "not an IPv4 address" } },
		{ "10.1.2.3 ", { "not an IPv4 address" } },
		{ "10.1.2.3\n", { "'10.1.2.3\\x0a'" } },
		{ "gitlab.example.org", { "not an IPv4 address", "not a name" } },
		{ "255.255.255.255255255255", { "not an IPv4 address" } },
		{ "fe80::1", { "not IPv4" } },
		{ "::ffff:10.0.0.1", { "not IPv4" } },
		{ "10.1.2.3:80", { "not IPv4" } },
		{ "10.1.0.0/", { "prefix length", "16 to 32" } },
		{ "10.1.0.0/016", { "prefix length" } },
		{ "10.1.0.0/33", { "prefix length" } },
		{ "10.1.0.0/3+", { "prefix length" } },
		{ "10.1.0.0/+16", { "prefix length" } },
		{ "10.1.0.0/16x", { "prefix length" } },
		{ "10.1.0.0/255.255.0.0", { "prefix length" } },
		{ "10.1.0.0/4294967312", { "prefix length" } },
		{ "10.0.0.0/15", { "too wide", "16 to 32" } },
		{ "10.0.0.0/8", { "too wide" } },
		{ "0.0.0.0/0", { "default route" } },
		{ "10.1.2.3/16", { "host bits", "write 10.1.0.0/16", "10.1.2.3 for the one" } },
		{ "10.1.2.3/31", { "host bits", "10.1.2.2/31" } },
		{ "0.0.0.0", { "0.0.0.0/8" } },
		{ "0.1.0.0/16", { "0.0.0.0/8" } },
		{ "127.0.0.1", { "loopback", "local-port", "leave it out" } },
		{ "127.255.0.0/16", { "loopback" } },
		{ "224.0.0.1", { "multicast" } },
		{ "239.255.0.0/16", { "multicast" } },
		{ "240.0.0.1", { "reserved" } },
		{ "255.255.255.255", { "reserved" } },
		{ "192.0.0.1", { "192.0.0.1", "192.0.0.0/24" } },
		{ "192.0.0.2", { "192.0.0.2", "own addresses" } },
		{ "192.0.0.0/24", { "holds it" } },
		{ "192.0.0.0/16", { "holds it" } },
		{ "192.0.0.2/31", { "192.0.0.0/24" } },
	};

	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		uint32_t address = 0;
		unsigned length = 0;

		assert_int_equal(config_parse_address(good[i].text, &address, &length, NULL), 0);
		assert_int_equal(address, good[i].address);
		assert_int_equal(length, good[i].length);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_free_ char *problem = NULL;
		uint32_t address = 77;
		unsigned length = 77;

		if (config_parse_address(bad[i].text, &address, &length, &problem) != -EINVAL)
			fail_msg("accepted: %s", bad[i].text);
		assert_words(problem, bad[i].words);
		assert_int_equal(address, 77);
		assert_int_equal(length, 77);
	}
}

static void test_pass_env(void **state)
{
	static const char *const refused[] = {
		"PATH",
		"HOME",
		"USER",
		"LOGNAME",
		"SHELL",
		"IS_SANDBOX",
		"IS_SANDBOX_AGENT",
		"GIT_CONFIG_GLOBAL",
		"GIT_SSH_COMMAND",
		"GIT_",
		"CODEX_HOME",
		"CLAUDE_CONFIG_DIR",
		"CLAUDE_SANDBOX_EGRESS_JAIL",
		"CLAUDE_SANDBOX_",
		"BASH_ENV",
		"ENV",
		"SHELLOPTS",
		"BASHOPTS",
		"IFS",
		"LD_PRELOAD",
		"LD_LIBRARY_PATH",
		"LD_AUDIT",
		"LD_",
		"GLIBC_TUNABLES",
		"GCONV_PATH",
		"",
		"0A",
		"9A",
		"A-B",
		"A=B",
		"A B",
		"\xc3\xa4",
		"A\n",
		"BASH_FUNC_x%%",
	};
	static const char *const passed[] = {
		"TERM",
		"GITHUB_TOKEN",
		"GH_TOKEN",
		"GIT",
		"LD",
		"path",
		"PATHS",
		"_",
		"A1",
		"CLAUDE_SANDBOX",
		"ANTHROPIC_API_KEY",
		"HOMEBREW",
		"ENVIRONMENT",
	};

	for (size_t i = 0; i < ELEMENTSOF(refused); i++)
		if (!config_pass_env_refusal(refused[i]))
			fail_msg("passes: %s", refused[i]);
	for (size_t i = 0; i < ELEMENTSOF(passed); i++)
		if (config_pass_env_refusal(passed[i]))
			fail_msg("refused: %s", passed[i]);
}

static void test_display(void **state)
{
	static const struct {
		const char *bytes, *shown;
	} rows[] = {
		{ "plain \\ text", "plain \\ text" },
		{ "\x1b[31m\x7f\t\n", "\\x1b[31m\\x7f\\x09\\x0a" },
		{ "ümlaut 漢字 \xf0\x9f\x98\x80", "ümlaut 漢字 \xf0\x9f\x98\x80" },
		{ "\xc2\x9b", "\\xc2\\x9b" }, /* a terminal's CSI as one character */
		{ "\xc2\xa0", "\xc2\xa0" },
		{ "\xc0\xaf", "\\xc0\\xaf" }, /* overlong */
		{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xe6\xbc", "\\xe6\\xbc" }, /* cut off */
		{ "\xe6"
		  "A",
		  "\\xe6"
		  "A" },
		{ "\xe2\x80\xae"
		  "x",
		  "\\xe2\\x80\\xae"
		  "x" },                               /* right-to-left override */
		{ "\xe2\x80\xa8", "\\xe2\\x80\\xa8" }, /* line separator */
		{ "\xe2\x81\xa6", "\\xe2\\x81\\xa6" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *shown = config_display(rows[i].bytes);

		assert_string_equal(shown, rows[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_pass_env),
		cmocka_unit_test(test_display),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
