/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "service/session/git-config.h"
#include "service/session/git-identity.h"

static const char *const no_hosts[] = { NULL };

static char *render(const char *name, const char *email, const char *const *hosts, bool forge)
{
	char *text = NULL;

	assert_int_equal(
		git_config_render(&(GitConfigOptions){ .name = name,
						       .email = email,
						       .forge_hosts = hosts,
						       .gh = forge ? "/usr/bin/gh" : NULL,
						       .glab = forge ? "/usr/local/bin/glab" : NULL },
				  &text),
		0);
	return text;
}

/* What git itself reads from the file at path. Return: the output, to be freed; *ret_status as exit(3). */
static char *ask_git(const char *path, const char *const *arguments, int *ret_status)
{
	char *argv[16] = { (char *)"git", (char *)"config", (char *)"--file", (char *)path }, *output;
	size_t n = 4, size = 0;
	int fds[2], status;
	pid_t pid;

	for (size_t i = 0; arguments[i]; i++)
		argv[n++] = (char *)arguments[i];
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *const environment[] = { NULL };

		(void)dup2(fds[1], STDOUT_FILENO);
		(void)close(fds[0]);
		(void)execve("/usr/bin/git", argv, environment);
		_exit(127);
	}
	(void)close(fds[1]);
	output = calloc(1, 65536);
	assert_non_null(output);
	for (ssize_t got; (got = read(fds[0], output + size, 65535 - size)) > 0;)
		size += (size_t)got;
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*ret_status = WEXITSTATUS(status);
	return output;
}

static void write_file(char path[static 32], const char *text)
{
	_cleanup_close_ int fd = FD_NONE;

	(void)snprintf(path, 32, "/tmp/git-config-test.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* An identity arrives as git reported it and brings nothing else along. */
static void identities_do_not_inject(void **state)
{
	static const char *const names[] = {
		"Ada Lovelace",
		"a \"quoted\" name",
		"back\\slash \\",
		"hash # and ; semicolon",
		"  spaces around  ",
		"tab\there",
		"line\n[core]\n\tfsmonitor = \"touch /tmp/injected\"\n[user]",
		"\"\n[alias]\n\tx = !true\n\"",
		"caf\xc3\xa9 \xff",
		"]",
		"\\n",
	};

	if (access("/usr/bin/git", X_OK) < 0)
		skip();
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_free_ char *text = render(names[i], names[i], no_hosts, true), *list = NULL,
				    *value = NULL;
		char path[32];
		int status;

		write_file(path, text);
		value = ask_git(path, (const char *const[]){ "--null", "--get", "user.name", NULL }, &status);
		assert_int_equal(status, 0);
		assert_string_equal(value, names[i]);
		free(value);
		value = ask_git(path, (const char *const[]){ "--null", "--get", "user.email", NULL },
				&status);
		assert_string_equal(value, names[i]);
		list = ask_git(
			path,
			(const char *const[]){ "--name-only", "--get-regexp", "^(core|alias)\\.", NULL },
			&status);
		assert_string_equal(list, "");
		(void)unlink(path);
	}
}

static void control_characters_are_left_out(void **state)
{
	_cleanup_free_ char *quoted = git_config_quote("a\x01\x1b[31mb\r\x7f");

	assert_string_equal(quoted, "\"a[31mb\"");
}

static void forges_are_reached_by_https(void **state)
{
	static const char *const hosts[] = { "git.example", "bad host", "evil\"]\n[core", "-x", "", NULL };
	_cleanup_free_ char *text = render(NULL, NULL, hosts, true);

	assert_non_null(strstr(text, "[url \"https://github.com/\"]\n\tinsteadOf = \"git@github.com:\"\n"
				     "\tinsteadOf = \"ssh://git@github.com/\"\n"));
	assert_non_null(strstr(text, "[url \"https://gitlab.com/\"]"));
	assert_non_null(strstr(text, "[url \"https://git.example/\"]"));
	assert_non_null(strstr(text, "[credential \"https://git.example\"]\n\thelper = \"\"\n"
				     "\thelper = \"!/usr/local/bin/glab auth git-credential\"\n"));
	assert_null(strstr(text, "bad host"));
	assert_null(strstr(text, "evil"));
	assert_null(strstr(text, "https://-x"));
	assert_null(strstr(text, "https:///"));
	assert_non_null(strstr(text, "defaultBranch = \"main\""));
	assert_null(strstr(text, "safe"));
}

static void no_forge_names_no_helper(void **state)
{
	static const char *const hosts[] = { "git.example", NULL };
	_cleanup_free_ char *text = render("A", "a@example", hosts, false);

	assert_null(strstr(text, "credential"));
	assert_null(strstr(text, "/gh "));
	assert_null(strstr(text, "/glab "));
	assert_non_null(strstr(text, "[url \"https://git.example/\"]"));
}

static void only_helpers_that_exist_are_named(void **state)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(git_config_render(&(GitConfigOptions){ .gh = "/usr/bin/gh" }, &text), 0);
	assert_non_null(strstr(text, "[credential \"https://github.com\"]\n\thelper = \"\"\n"
				     "\thelper = \"!/usr/bin/gh auth git-credential\"\n"));
	assert_non_null(strstr(text, "[credential \"https://gist.github.com\"]"));
	assert_null(strstr(text, "[credential \"https://gitlab.com\"]"));
	assert_non_null(strstr(text, "[url \"https://gitlab.com/\"]"));
}

static void one_repository_is_safe(void **state)
{
	_cleanup_free_ char *text = NULL, *other = NULL;

	assert_int_equal(git_config_render(&(GitConfigOptions){ .top_level = "/srv/a \"b\"",
								.default_branch = "trunk\n[core]" },
					   &text),
			 0);
	assert_non_null(strstr(text, "[safe]\n\tdirectory = \"/srv/a \\\"b\\\"\"\n"));
	assert_non_null(strstr(text, "\tdefaultBranch = \"trunk\\n[core]\"\n"));
	assert_int_equal(git_config_render(&(GitConfigOptions){ .default_branch = "" }, &other), 0);
	assert_null(strstr(other, "safe"));
	assert_non_null(strstr(other, "defaultBranch = \"main\""));
	assert_non_null(strstr(other, "[gc]\n\tworktreePruneExpire = never\n"));
}

static void no_identity_names_none(void **state)
{
	_cleanup_free_ char *text = render(NULL, "", no_hosts, true);

	assert_null(strstr(text, "name ="));
	assert_null(strstr(text, "email ="));
}

static void the_last_value_of_a_key_holds(void **state)
{
	static const char output[] = "user.name\nFirst\0user.email\na@example\0user.name\nSecond\nline\0"
				     "core.worktree\n../x\0init.defaultbranch\ntrunk\0"
				     "safe.directory\n/a\0safe.directory\n\0safe.directory\n~/b\0";
	GitIdentity identity = { 0 };

	assert_int_equal(git_identity_parse(output, sizeof(output) - 1, "/home/a", &identity), 0);
	assert_string_equal(identity.name, "Second\nline");
	assert_string_equal(identity.email, "a@example");
	assert_string_equal(identity.default_branch, "trunk");
	assert_string_equal(identity.safe_directories[0], "/a");
	assert_string_equal(identity.safe_directories[1], "");
	assert_string_equal(identity.safe_directories[2], "/home/a/b");
	assert_null(identity.safe_directories[3]);
	git_identity_done(&identity);
}

static void what_is_no_value_is_passed_over(void **state)
{
	static const char output[] = "user.name\0user.email\n\0user.namex\nx\0user.name\ncut off";
	GitIdentity identity = { 0 };

	assert_int_equal(git_identity_parse(output, sizeof(output) - 1, "/", &identity), 0);
	assert_null(identity.name);
	assert_null(identity.email);
	git_identity_done(&identity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identities_do_not_inject),
		cmocka_unit_test(control_characters_are_left_out),
		cmocka_unit_test(forges_are_reached_by_https),
		cmocka_unit_test(no_forge_names_no_helper),
		cmocka_unit_test(only_helpers_that_exist_are_named),
		cmocka_unit_test(one_repository_is_safe),
		cmocka_unit_test(no_identity_names_none),
		cmocka_unit_test(the_last_value_of_a_key_holds),
		cmocka_unit_test(what_is_no_value_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
