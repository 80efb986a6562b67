/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "dbus/shell-names.h"

static void lines_that_give_another_meaning(void **state)
{
	static const char *const lines[] = {
		"alias claude=~/.claude/local/claude",
		"alias claude=\"/home/ann/.claude/local/claude\"\n",
		"\t alias ll='ls -l' claude='npx claude'",
		"builtin alias claude=x",
		"alias claude '~/.claude/local/claude'",
		"function claude { x; }",
		"function claude\n",
		"claude() { x; }",
		"  claude ( ) {",
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		if (!shell_line_names(lines[i], "claude"))
			fail_msg("%s", lines[i]);
}

static void lines_that_do_not(void **state)
{
	static const char *const lines[] = {
		"",
		"# alias claude=x",
		"alias claude='claude --verbose'",
		"alias claude=/usr/local/bin/claude",
		"alias claudette=x",
		"alias ll='ls' # claude=x",
		"aliases claude=x",
		"function claudette { x; }",
		"claude --version",
		"claude (x)",
		"export PATH=$PATH:~/.claude/local",
		"unalias claude",
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		if (shell_line_names(lines[i], "claude"))
			fail_msg("%s", lines[i]);
}

static void write_file(const char *directory, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fclose_ FILE *f = NULL;

	assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

/* The files of the caller's shell, and of all shells where it is not known; a pipe makes nobody wait. */
static void startup_files_are_read(void **state)
{
	char directory[] = "/tmp/shell-names-test-XXXXXX", home[64], *fifo = NULL;
	char *environment[] = { home, (char *)"SHELL=/usr/bin/zsh", NULL };
	_cleanup_free_ char *sentence = NULL;

	assert_non_null(mkdtemp(directory));
	(void)snprintf(home, sizeof(home), "HOME=%s", directory);
	assert_true(asprintf(&fifo, "%s/.zshrc", directory) > 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	write_file(directory, ".bashrc", "x\nalias pi=y\n");
	assert_int_equal(shell_name_find(environment, "pi", &sentence), 0);
	environment[1] = (char *)"SHELL=/bin/bash";
	assert_int_equal(shell_name_find(environment, "codex", &sentence), 0);
	assert_int_equal(shell_name_find(environment, "pi", &sentence), 1);
	assert_non_null(strstr(sentence, "line 2 of "));
	assert_non_null(strstr(sentence, "; remove that line"));
	freep(&sentence);
	environment[1] = (char *)"SHELL=/opt/other";
	assert_int_equal(shell_name_find(environment, "pi", &sentence), 1);
	assert_int_equal(unlink(fifo), 0);
	free(fifo);
	assert_true(asprintf(&fifo, "%s/.bashrc", directory) > 0);
	assert_int_equal(unlink(fifo), 0);
	free(fifo);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_give_another_meaning),
		cmocka_unit_test(lines_that_do_not),
		cmocka_unit_test(startup_files_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
