/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-helpers.h"

static void check_refused(const char *text, size_t size, const char *const *words)
{
	_cleanup_free_ char *problem = NULL;
	Config config = CONFIG_INIT;

	if (parse_bytes(text, size, &config, &problem) != -EINVAL)
		fail_msg("accepted: %s", text);
	assert_null(config.values);
	assert_words(problem, words);
}

static void test_names(void **state)
{
	for (int k = 0; k < CONFIG_KEY_MAX; k++) {
		const char *name = config_key_name((ConfigKey)k);

		assert_non_null(name);
		assert_int_equal(config_key_from_name(name, strlen(name)), k);
		assert_int_equal(config_key_from_name(name, strlen(name) - 1), CONFIG_KEY_INVALID);
	}
	assert_int_equal(config_key_from_name("", 0), CONFIG_KEY_INVALID);
	assert_true(config_key_is_list(CONFIG_ALLOW_IP));
	assert_true(config_key_is_list(CONFIG_DENY_GROUP));
	assert_false(config_key_is_list(CONFIG_WORKSPACE_ROOT));
	assert_false(config_key_is_list(CONFIG_LOCAL_MODEL_PORT));
}

static void test_defaults(void **state)
{
	_cleanup_(config_done) Config config = parsed("");
	_cleanup_(strings_freep) char **groups = config_deny_groups(&config);

	assert_int_equal(config.n_values, 0);
	assert_false(config_flag(&config, CONFIG_NO_FORGE));
	assert_true(config_flag(&config, CONFIG_EGRESS_JAIL));
	assert_false(config_flag(&config, CONFIG_GPU));
	assert_null(config_text(&config, CONFIG_WORKSPACE_ROOT));
	assert_int_equal(config_number(&config, CONFIG_LOCAL_MODEL_PORT), 0);
	assert_int_equal(config_number(&config, CONFIG_MEMORY_MAX), 0);
	assert_int_equal(config_number(&config, CONFIG_TASKS_MAX), 4096);
	assert_int_equal(config_number(&config, CONFIG_MAX_SESSIONS), 64);
	assert_int_equal(config_procfs(&config), PROCFS_AUTO);
	assert_int_equal(strings_count(groups), 12);
	assert_string_equal(groups[0], "docker");
	assert_string_equal(groups[11], "adm");
}

static void test_every_key(void **state)
{
	static const struct {
		const char *line;
		ConfigKey key;
		const char *text;
	} rows[] = {
		{ "workspace-root = /srv/w", CONFIG_WORKSPACE_ROOT, "/srv/w" },
		{ "workspace-root = //srv///w//", CONFIG_WORKSPACE_ROOT, "/srv/w" },
		{ "workspace-root = /with space/ümlaut = x", CONFIG_WORKSPACE_ROOT,
		  "/with space/ümlaut = x" },
		{ "workspace-root = /.hidden/..x/y..", CONFIG_WORKSPACE_ROOT, "/.hidden/..x/y.." },
		{ "workspace-root = ~/src//x/", CONFIG_WORKSPACE_ROOT, "~/src/x" },
		{ "allow-read = ~/.config/tool", CONFIG_ALLOW_READ, "~/.config/tool" },
		{ "hide = /media", CONFIG_HIDE, "/media" },
		{ "tools = no", CONFIG_TOOLS, "0" },
		{ "no-forge", CONFIG_NO_FORGE, "1" },
		{ "no-forge = 1", CONFIG_NO_FORGE, "1" },
		{ "no-forge=0", CONFIG_NO_FORGE, "0" },
		{ "no-forge = yes", CONFIG_NO_FORGE, "1" },
		{ "no-forge = ON", CONFIG_NO_FORGE, "1" },
		{ "no-forge = true", CONFIG_NO_FORGE, "1" },
		{ "no-forge = no", CONFIG_NO_FORGE, "0" },
		{ "no-forge = off", CONFIG_NO_FORGE, "0" },
		{ "egress-jail = False", CONFIG_EGRESS_JAIL, "0" },
		{ "egress-jail", CONFIG_EGRESS_JAIL, "1" },
		{ "egress-jail = 0", CONFIG_EGRESS_JAIL, "0" },
		{ "allow-ip = 10.1.2.3", CONFIG_ALLOW_IP, "10.1.2.3" },
		{ "allow-ip = 10.1.2.3/32", CONFIG_ALLOW_IP, "10.1.2.3" },
		{ "allow-ip = 10.1.0.0/16", CONFIG_ALLOW_IP, "10.1.0.0/16" },
		{ "local-port = 8080", CONFIG_LOCAL_PORT, "8080" },
		{ "local-port = 1", CONFIG_LOCAL_PORT, "1" },
		{ "local-port = 65535", CONFIG_LOCAL_PORT, "65535" },
		{ "local-model-port = 0", CONFIG_LOCAL_MODEL_PORT, "0" },
		{ "local-model-port = 1920", CONFIG_LOCAL_MODEL_PORT, "1920" },
		{ "callback-port = 1455", CONFIG_CALLBACK_PORT, "1455" },
		{ "allow-write = /cache", CONFIG_ALLOW_WRITE, "/cache" },
		{ "allow-write = /a#b", CONFIG_ALLOW_WRITE, "/a#b" },
		{ "allow-write = /\xff\xfe", CONFIG_ALLOW_WRITE, "/\xff\xfe" },
		{ "pass-env = MY_TOKEN", CONFIG_PASS_ENV, "MY_TOKEN" },
		{ "pass-env = _x9", CONFIG_PASS_ENV, "_x9" },
		{ "gpu", CONFIG_GPU, "1" },
		{ "gpu = 0", CONFIG_GPU, "0" },
		{ "allow-device = /dev/kvm", CONFIG_ALLOW_DEVICE, "/dev/kvm" },
		{ "procfs = auto", CONFIG_PROCFS, "auto" },
		{ "procfs = private", CONFIG_PROCFS, "private" },
		{ "procfs = outer", CONFIG_PROCFS, "outer" },
		{ "history = all", CONFIG_HISTORY, "all" },
		{ "history = project", CONFIG_HISTORY, "project" },
		{ "forge-host = GitLab.Example.org", CONFIG_FORGE_HOST, "gitlab.example.org" },
		{ "forge-host = forge", CONFIG_FORGE_HOST, "forge" },
		{ "forge-host = A-Z0.az9", CONFIG_FORGE_HOST, "a-z0.az9" },
		{ "deny-group = docker", CONFIG_DENY_GROUP, "docker" },
		{ "deny-group = SITE\\admins", CONFIG_DENY_GROUP, "SITE\\admins" },
		{ "memory-max = 1048576", CONFIG_MEMORY_MAX, "1048576" },
		{ "memory-max = 3K", CONFIG_MEMORY_MAX, "3072" },
		{ "memory-max = 2M", CONFIG_MEMORY_MAX, "2097152" },
		{ "memory-max = 8G", CONFIG_MEMORY_MAX, "8589934592" },
		{ "memory-max = 8589934591G", CONFIG_MEMORY_MAX, "9223372035781033984" },
		{ "tasks-max = 4194304", CONFIG_TASKS_MAX, "4194304" },
		{ "max-sessions = 8", CONFIG_MAX_SESSIONS, "8" },
		{ "\t max-sessions \t=\t 8 \t", CONFIG_MAX_SESSIONS, "8" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(config_done) Config config = parsed(rows[i].line);
		const ConfigValue *value = only(&config, rows[i].key);

		assert_string_equal(value->text, rows[i].text);
		assert_string_equal(value->comment, "");
		assert_string_equal(value->origin, AT(1));
		assert_int_equal(config.n_values, 1);
	}
}

static void test_getters(void **state)
{
	_cleanup_(config_done) Config config =
		parsed("workspace-root = /w\nno-forge\negress-jail = 0\ngpu\n"
		       "local-model-port = 99\nmemory-max = 1K\ntasks-max = 7\n"
		       "max-sessions = 3\nprocfs = outer\ndeny-group = wheel\n"
		       "deny-group = ops\n");
	_cleanup_(strings_freep) char **groups = config_deny_groups(&config);

	assert_string_equal(config_text(&config, CONFIG_WORKSPACE_ROOT), "/w");
	assert_true(config_flag(&config, CONFIG_NO_FORGE));
	assert_false(config_flag(&config, CONFIG_EGRESS_JAIL));
	assert_true(config_flag(&config, CONFIG_GPU));
	assert_int_equal(config_number(&config, CONFIG_LOCAL_MODEL_PORT), 99);
	assert_int_equal(config_number(&config, CONFIG_MEMORY_MAX), 1024);
	assert_int_equal(config_number(&config, CONFIG_TASKS_MAX), 7);
	assert_int_equal(config_number(&config, CONFIG_MAX_SESSIONS), 3);
	assert_int_equal(config_procfs(&config), PROCFS_OUTER);
	assert_int_equal(strings_count(groups), 2);
	assert_string_equal(groups[0], "wheel");
	assert_string_equal(groups[1], "ops");
}

static void test_lines(void **state)
{
	_cleanup_(config_done) Config config = parsed("# allow-ip = 10.9.9.9\r\n"
						      "\r\n"
						      "  \t# indented\r\n"
						      "allow-ip = 10.0.0.1 # the printer # 2nd floor \r\n"
						      "allow-ip = 10.0.0.2\t#\r\n"
						      "no-forge # bare\r\n"
						      "allow-write = /c # caf\xe9 \x1b[2J");
	size_t index = 0;
	const ConfigValue *value;

	value = config_next(&config, CONFIG_ALLOW_IP, &index);
	assert_string_equal(value->text, "10.0.0.1");
	assert_string_equal(value->comment, "the printer # 2nd floor");
	assert_string_equal(value->origin, AT(4));
	value = config_next(&config, CONFIG_ALLOW_IP, &index);
	assert_string_equal(value->text, "10.0.0.2");
	assert_string_equal(value->comment, "");
	assert_string_equal(value->origin, AT(5));
	assert_null(config_next(&config, CONFIG_ALLOW_IP, &index));

	value = only(&config, CONFIG_NO_FORGE);
	assert_string_equal(value->text, "1");
	assert_string_equal(value->comment, "bare");
	value = only(&config, CONFIG_ALLOW_WRITE);
	assert_string_equal(value->comment, "caf\\xe9 \\x1b[2J");
	assert_string_equal(value->origin, AT(7));
}

static void test_lists_merge(void **state)
{
	_cleanup_(config_done) Config config =
		parsed("allow-ip = 10.0.0.1 # first\nallow-ip = 10.0.0.1/32 # second\n"
		       "allow-write = /c\nallow-write = /c/\n"
		       "pass-env = A, B  C,\tA\npass-env = B D\n");
	static const char *const names[] = { "A", "B", "C", "D" };
	const ConfigValue *value = only(&config, CONFIG_ALLOW_IP);
	size_t index = 0;

	assert_string_equal(value->comment, "first");
	assert_string_equal(value->origin, AT(1));
	assert_string_equal(only(&config, CONFIG_ALLOW_WRITE)->origin, AT(3));
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		value = config_next(&config, CONFIG_PASS_ENV, &index);
		assert_non_null(value);
		assert_string_equal(value->text, names[i]);
		assert_string_equal(value->origin, i < 3 ? AT(5) : AT(6));
	}
	assert_null(config_next(&config, CONFIG_PASS_ENV, &index));
}

static void test_refusals(void **state)
{
	static const Refusal rows[] = {
		{ "no-forge\nbogus = 1\n", { AT(2) ":", "unknown key 'bogus'", "remove" } },
		{ "allow_ip = 10.0.0.1", { AT(1) ":", "unknown key 'allow_ip'", "write 'allow-ip'" } },
		{ "Allow-IP = 10.0.0.1", { AT(1), "unknown key 'Allow-IP'", "write 'allow-ip'" } },
		{ "allow-ips = 10.0.0.1", { AT(1), "unknown key", "write 'allow-ip'" } },
		{ "alow-ip = 10.0.0.1", { AT(1), "unknown key", "write 'allow-ip'" } },
		{ "= 1", { AT(1), "unknown key ''" } },
		{ "\x1b]0;x\x07 = 1", { AT(1), "unknown key '\\x1b]0;x\\x07'" } },
		{ "\xef\xbb\xbfno-forge", { AT(1), "byte order mark" } },
		{ "allow-ip 10.0.0.1", { AT(1), "'=' is missing", "'allow-ip = VALUE'" } },
		{ "no-forge 1", { AT(1), "'=' is missing" } },
		{ "workspace-root /srv", { AT(1), "'=' is missing after 'workspace-root'" } },
		{ "no-forge#x", { AT(1), "unknown key 'no-forge#x'" } },
		{ "no-forge\rgpu", { AT(1), "carriage return" } },
		{ "allow-ip", { AT(1), "'allow-ip' has no value", "'allow-ip = VALUE'" } },
		{ "allow-ip =", { AT(1), "'allow-ip' has no value" } },
		{ "allow-ip = # 10.0.0.1", { AT(1), "'allow-ip' has no value" } },
		{ "no-forge =", { AT(1), "'no-forge' has no value", "'no-forge = 1'" } },
		{ "pass-env = , ,", { AT(1), "'pass-env' has no value" } },
		{ "procfs", { AT(1), "'procfs' has no value" } },
		{ "no-forge = maybe", { AT(1), "no-forge: 'maybe'", "yes nor no" } },
		{ "egress-jail = 00", { AT(1), "egress-jail: '00'" } },
		{ "gpu = -1", { AT(1), "gpu: '-1'" } },
		{ "procfs = Private", { AT(1), "auto, private and outer" } },
		{ "history = none", { AT(1), "neither project nor all" } },
		/* scalars twice, with the same value too */
		{ "gpu\n\ngpu\n", { AT(3), "'gpu' is set already at " AT(1), "keep one" } },
		{ "workspace-root = /a\nworkspace-root = /a\n", { AT(2), "already at " AT(1) } },
		{ "egress-jail = 1\negress-jail = 0\n", { AT(2), "already at " AT(1) } },
		/* ports */
		{ "local-port = 0", { AT(1), "local-port: '0'", "1 to 65535" } },
		{ "local-port = 65536", { AT(1), "'65536'" } },
		{ "local-port = -1", { AT(1), "'-1'" } },
		{ "local-port = +1", { AT(1), "'+1'" } },
		{ "local-port = 01920", { AT(1), "leading zero" } },
		{ "local-port = 1920,fork", { AT(1), "'1920,fork'" } },
		{ "local-port = 127.0.0.1:80", { AT(1), "not a TCP port" } },
		{ "local-port = 80 81", { AT(1), "one number" } },
		{ "local-port = 0x50", { AT(1), "not a TCP port" } },
		{ "local-port = 99999999999999999999", { AT(1), "not a TCP port" } },
		{ "local-port = \xd9\xa1\xd9\xa2", { AT(1), "not a TCP port" } },
		{ "callback-port = 0", { AT(1), "callback-port" } },
		{ "local-model-port = 00", { AT(1), "or 0 for none" } },
		{ "local-model-port = 65536", { AT(1), "local-model-port" } },
		{ "local-port = 8080\ncallback-port = 8080\n",
		  { AT(2), "port 8080", "by " AT(1) ", also a local-port", "remove one" } },
		{ "callback-port = 8080\nlocal-port = 8080\n", { AT(1), "by " AT(2), "direction" } },
		{ "callback-port = 8080\nlocal-model-port = 8080\n",
		  { AT(1), "by " AT(2), "local-model-port" } },
		/* paths */
		{ "workspace-root = work", { AT(1), "workspace-root: 'work'", "absolute" } },
		{ "workspace-root = ~user/work", { AT(1), "absolute" } },
		{ "allow-write = ./x", { AT(1), "absolute" } },
		{ "allow-write = /a/../b", { AT(1), "'..'" } },
		{ "allow-write = /a/./b", { AT(1), "'.'" } },
		{ "allow-write = /..", { AT(1), "'..'" } },
		{ "allow-write = /a/..", { AT(1), "'..'" } },
		{ "allow-device = kvm", { AT(1), "absolute" } },
		{ "allow-device = /etc/passwd", { AT(1), "below /dev" } },
		{ "allow-device = /dev", { AT(1), "below /dev" } },
		{ "allow-device = /device/x", { AT(1), "below /dev" } },
		{ "allow-device = /dev//net/tun", { AT(1), "never given" } },
		{ "allow-device = /dev/net", { AT(1), "never given" } },
		{ "allow-device = /dev/mem", { AT(1), "never given", "memory" } },
		{ "allow-device = /dev/input/event3", { AT(1), "never given", "types" } },
		{ "allow-device = /dev/pts/0", { AT(1), "never given", "terminal" } },
		{ "allow-write = /", { AT(1), "allow-write: '/' is never given", "whole jail" } },
		{ "allow-write = //", { AT(1), "whole jail" } },
		{ "allow-write = /etc", { AT(1), "never given", "sandbox's own files" } },
		{ "allow-write = /proc/sys", { AT(1), "never given" } },
		{ "workspace-root = /",
		  { AT(1), "workspace-root: '/' is never given", "whole file system" } },
		{ "workspace-root = /home/", { AT(1), "home directories" } },
		{ "workspace-root = /usr", { AT(1), "system directory" } },
		/* names */
		{ "forge-host = https://gitlab.example.org", { AT(1), "host name" } },
		{ "forge-host = gitlab.example.org/x", { AT(1), "host name" } },
		{ "forge-host = gitlab.example.org:443", { AT(1), "host name" } },
		{ "forge-host = -x.org", { AT(1), "host name" } },
		{ "forge-host = x-.org", { AT(1), "host name" } },
		{ "forge-host = a..b", { AT(1), "host name" } },
		{ "forge-host = a.b.", { AT(1), "host name" } },
		{ "forge-host = .", { AT(1), "host name" } },
		{ "forge-host = a\"]b", { AT(1), "host name" } },
		{ "forge-host = abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd.org",
		  { AT(1), "host name" } },
		{ "deny-group = docker, lxd", { AT(1), "one group on each line" } },
		{ "deny-group = docker lxd", { AT(1), "one group on each line" } },
		{ "deny-group = a\x7f", { AT(1), "one group on each line" } },
		{ "deny-group = a:b", { AT(1), "one group on each line" } },
		{ "deny-group = -x", { AT(1), "name of a group" } },
		{ "deny-group = 0", { AT(1), "is a number" } },
		{ "deny-group = 999", { AT(1), "is a number" } },
		/* counts and sizes */
		{ "memory-max = 0", { AT(1), "is not a size" } },
		{ "memory-max = G", { AT(1), "is not a size" } },
		{ "memory-max = 2g", { AT(1), "K, M or G" } },
		{ "memory-max = 2GB", { AT(1), "is not a size" } },
		{ "memory-max = 1.5G", { AT(1), "is not a size" } },
		{ "memory-max = 02G", { AT(1), "is not a size" } },
		{ "memory-max = 8589934592G", { AT(1), "is not a size" } },
		{ "memory-max = 9223372036854775808", { AT(1), "is not a size" } },
		{ "memory-max = 18446744073709551617", { AT(1), "is not a size" } },
		{ "tasks-max = 0", { AT(1), "1 to 4194304" } },
		{ "tasks-max = 4194305", { AT(1), "1 to 4194304" } },
		{ "tasks-max = 4K", { AT(1), "1 to 4194304" } },
		{ "max-sessions = 0", { AT(1), "1 to 10000" } },
		{ "max-sessions = 10001", { AT(1), "1 to 10000" } },
		/* a list with one bad value among good ones */
		{ "pass-env = GOOD, PATH", { AT(1), "pass-env: 'PATH'", "set by the jail itself" } },
		{ "allow-ip = 10.0.0.1, 10.0.0.2", { AT(1), "allow-ip:", "not an IPv4 address" } },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		check_refused(rows[i].text, strlen(rows[i].text), rows[i].words);
}

static void test_suggestions(void **state)
{
	static const char *const none[] = {
		"", "a", "allow", "bogus", "allow-ipss", "llow-i", "allow-ip = 1"
	};

	assert_string_equal(config_key_suggestion("allow_ip"), "allow-ip");
	assert_string_equal(config_key_suggestion("GPU"), "gpu");
	assert_string_equal(config_key_suggestion("noforge"), "no-forge");
	assert_string_equal(config_key_suggestion("no-forgee"), "no-forge");
	assert_string_equal(config_key_suggestion("no-forgo"), "no-forge");
	assert_string_equal(config_key_suggestion("procfs"), "procfs");
	for (size_t i = 0; i < ELEMENTSOF(none); i++)
		if (config_key_suggestion(none[i]))
			fail_msg("'%s' is taken for '%s'", none[i], config_key_suggestion(none[i]));
}

static void test_nul_bytes(void **state)
{
	static const char in_value[] = "gpu\nallow-write = /a\0b\n", in_comment[] = "gpu # a\0",
			  alone[] = "\0";
	static const char *const second[] = { AT(2), "NUL", NULL }, *const first[] = { AT(1), "NUL", NULL };

	check_refused(in_value, sizeof(in_value) - 1, second);
	check_refused(in_comment, sizeof(in_comment) - 1, first);
	check_refused(alone, sizeof(alone) - 1, first);
}

static char *filled(const char *before, char c, size_t n, const char *after)
{
	char *text = malloc(strlen(before) + n + strlen(after) + 1);

	assert_non_null(text);
	sprintf(text, "%s", before);
	memset(text + strlen(before), c, n);
	strcpy(text + strlen(before) + n, after);
	return text;
}

static void test_bounds(void **state)
{
	_cleanup_free_ char *largest = filled("gpu\n", '\n', CONFIG_BYTES_MAX - 4, "");
	_cleanup_free_ char *larger = filled("gpu\n", '\n', CONFIG_BYTES_MAX - 3, "");
	_cleanup_free_ char *longest = filled("allow-write = /", 'x', CONFIG_TEXT_MAX - 1, "");
	_cleanup_free_ char *longer = filled("allow-write = /", 'x', CONFIG_TEXT_MAX, "");
	_cleanup_free_ char *long_line = filled("#", 'x', CONFIG_LINE_MAX, "\n");
	_cleanup_free_ char *longest_line = filled("#", 'x', CONFIG_LINE_MAX - 1, "\r\n");
	_cleanup_free_ char *longest_group = filled("deny-group = ", 'x', 255, "\n");
	_cleanup_free_ char *long_name = filled("deny-group = ", 'x', 256, "\n");
	_cleanup_free_ char *longest_variable = filled("pass-env = ", 'x', 255, "\n");
	_cleanup_free_ char *long_variable = filled("pass-env = ", 'x', 256, "\n");
	_cleanup_free_ char *problem = NULL;
	static const char *const value_words[] = { AT(1), "longer than 4095 bytes", NULL };
	static const char *const line_words[] = { AT(1), "longer than 8192 bytes", NULL };
	static const char *const name_words[] = { AT(1), "name of a group", NULL };
	static const char *const variable_words[] = { AT(1), "too long", NULL };
	const char *const accepted[] = { largest, longest_line, longest_group, longest_variable };
	Config config = CONFIG_INIT;

	for (size_t i = 0; i < ELEMENTSOF(accepted); i++) {
		config = parsed(accepted[i]);
		config_done(&config);
	}
	assert_int_equal(parse_bytes(larger, strlen(larger), &config, &problem), -E2BIG);
	assert_non_null(strstr(problem, "larger than 262144 bytes"));

	config = parsed(longest);
	assert_int_equal(strlen(only(&config, CONFIG_ALLOW_WRITE)->text), CONFIG_TEXT_MAX);
	config_done(&config);
	check_refused(longer, strlen(longer), value_words);
	check_refused(long_line, strlen(long_line), line_words);
	check_refused(long_name, strlen(long_name), name_words);
	check_refused(long_variable, strlen(long_variable), variable_words);
}

static void test_too_many_values(void **state)
{
	_cleanup_free_ char *problem = NULL, *text = malloc(CONFIG_BYTES_MAX);
	Config config = CONFIG_INIT;
	size_t n = 0;

	assert_non_null(text);
	for (unsigned i = 0; i < CONFIG_VALUES_MAX; i++)
		n += (size_t)sprintf(text + n, "local-port = %u\n", i + 1);
	assert_int_equal(parse_bytes(text, n, &config, &problem), 0);
	assert_int_equal(config.n_values, CONFIG_VALUES_MAX);
	config_done(&config);

	n += (size_t)sprintf(text + n, "local-port = %u\n", CONFIG_VALUES_MAX + 1);
	assert_int_equal(parse_bytes(text, n, &config, &problem), -E2BIG);
	assert_non_null(strstr(problem, AT(1025) ": more than 1024 values"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),           cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),       cmocka_unit_test(test_getters),
		cmocka_unit_test(test_lines),           cmocka_unit_test(test_lists_merge),
		cmocka_unit_test(test_refusals),        cmocka_unit_test(test_suggestions),
		cmocka_unit_test(test_nul_bytes),       cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_too_many_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
