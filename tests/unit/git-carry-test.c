/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/session/git-carry.h"

static char *rendered(const GitCarry *carry, const char *excludes, bool lfs)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(git_carry_render(carry, excludes, NULL, lfs, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* What comes along says what it is; what does not says nothing. */
static void each_kind(void **state)
{
	static const struct {
		const char *key, *value, *text;
	} cases[] = {
		{ "core.autocrlf", "input", "[core]\n\tautocrlf = \"input\"\n" },
		{ "core.filemode", NULL, "[core]\n\tfilemode = \"true\"\n" },
		{ "diff.Any.xfuncname", "a\"b", "[diff \"Any\"]\n\txfuncname = \"a\\\"b\"\n" },
		{ "pull.rebase", "true", "[pull]\n\trebase = \"true\"\n" },
		{ "alias.ci", "commit", "[alias]\n\tci = \"commit\"\n" },
		{ "url.https://x.example/.insteadof",
		  "x:", "[url \"https://x.example/\"]\n\tinsteadof = \"x:\"\n" },
		{ "url.ssh://me@x.example/a\"b\\.insteadof",
		  "x:", "[url \"ssh://me@x.example/a\\\"b\\\\\"]\n\tinsteadof = \"x:\"\n" },
		{ "http.proxy", "http://proxy.example:3128",
		  "[http]\n\tproxy = \"http://proxy.example:3128\"\n" },
		{ "http.sslcainfo", "/etc/ssl/ca.pem", "[http]\n\tsslcainfo = \"/etc/ssl/ca.pem\"\n" },
		{ "alias.run", "!sh", "" },
		{ "alias.empty", NULL, "" },
		{ "url.https://me:secret@x.example/.insteadof", "x:", "" },
		{ "url.https://token@x.example/.insteadof", "x:", "" },
		{ "url.ssh://me:secret@x.example/.insteadof", "x:", "" },
		{ "alias.up", "push https://me:secret@x.example/", "" },
		{ "fetch.bundleuri", "https://me:secret@x.example/", "" },
		{ "url.ext::sh -c x.insteadof", "x:", "" },
		{ "http.proxy", "http://me:secret@proxy.example", "" },
		{ "http.proxy", "http://a@b:secret@proxy.example", "" },
		{ "http.sslcainfo", "/home/a/ca.pem", "" },
		{ "http.extraheader", "Authorization: x", "" },
		{ "core.sshcommand", "x", "" },
		{ "core.fsmonitor", "x", "" },
		{ "core.pager", "x", "" },
		{ "core.editor", "x", "" },
		{ "credential.helper", "store", "" },
		{ "diff.external", "x", "" },
		{ "diff.a.textconv", "x", "" },
		{ "diff.a.command", "x", "" },
		{ "merge.a.driver", "x", "" },
		{ "pager.log", "x", "" },
		{ "sequence.editor", "x", "" },
		{ "gpg.program", "x", "" },
		{ "include.path", "x", "" },
		{ "includeif.gitdir:/.path", "x", "" },
		{ "branch.main.remote", "x", "" },
		{ "remote.x.url", "x", "" },
		{ "nonsense", "x", "" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(git_carry_done) GitCarry carry = { 0 };
		_cleanup_free_ char *text = NULL;

		assert_int_equal(git_carry_add(&carry, cases[i].key, cases[i].value, "/home/a"), 0);
		text = rendered(&carry, NULL, true);
		assert_string_equal(text, cases[i].text);
		assert_null(carry.left);
	}
}

static void files_and_what_is_left(void **state)
{
	_cleanup_(git_carry_done) GitCarry carry = { 0 };
	_cleanup_free_ char *with = NULL, *without = NULL;

	assert_int_equal(git_carry_add(&carry, "core.excludesfile", "/first", "/home/a"), 0);
	assert_int_equal(git_carry_add(&carry, "core.excludesfile", "~/second", "/home/a"), 0);
	assert_int_equal(git_carry_add(&carry, "core.attributesfile", "/x", "/home/a"), 0);
	assert_string_equal(carry.excludes, "/home/a/second");
	assert_string_equal(carry.attributes, "/x");
	assert_int_equal(git_carry_add(&carry, "commit.gpgsign", "true", "/"), 0);
	assert_int_equal(git_carry_add(&carry, "core.hookspath", "/x", "/"), 0);
	assert_int_equal(git_carry_add(&carry, "tag.gpgsign", "no", "/"), 0);
	assert_int_equal(git_carry_add(&carry, "commit.gpgsign", NULL, "/"), 0);
	assert_string_equal(carry.left[0], "commit.gpgsign");
	assert_string_equal(carry.left[1], "core.hookspath");
	assert_null(carry.left[2]);
	/* The last one holds. */
	assert_int_equal(git_carry_add(&carry, "commit.gpgsign", "false", "/"), 0);
	assert_string_equal(carry.left[0], "core.hookspath");
	assert_null(carry.left[1]);

	assert_int_equal(git_carry_add(&carry, "filter.lfs.process", "git-lfs filter-process", "/"), 0);
	with = rendered(&carry, "/run/ignore", true);
	without = rendered(&carry, NULL, false);
	assert_non_null(strstr(with, "[filter \"lfs\"]\n\tprocess = \"git-lfs filter-process\"\n"));
	assert_non_null(strstr(with, "[core]\n\texcludesfile = \"/run/ignore\"\n"));
	assert_string_equal(without, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind),
		cmocka_unit_test(files_and_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
