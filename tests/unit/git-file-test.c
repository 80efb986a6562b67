/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "service/session/git-file.h"

/* "key\nvalue\0"..., as git config --null --list prints it. */
typedef struct List {
	FILE *f;
	char *text;
	size_t size;
} List;

static int add(void *userdata, const char *key, const char *value)
{
	List *list = userdata;

	(void)fputs(key, list->f);
	if (value)
		(void)fprintf(list->f, "\n%s", value);
	(void)fputc(0, list->f);
	return 0;
}

static int parse(const char *text, size_t size, List *list)
{
	int r;

	*list = (List){ 0 };
	list->f = open_memstream(&list->text, &list->size);
	assert_non_null(list->f);
	r = git_file_parse(text, size, add, list);
	(void)fclose(list->f);
	return r;
}

/* What git makes of the same bytes. Return: its exit status. */
static int ask_git(const char *text, size_t size, char *output, size_t max, size_t *ret_size)
{
	char path[] = "/tmp/git-file-test.XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	int fds[2], status;
	ssize_t got;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *const argv[] = { (char *)"git", (char *)"config", (char *)"--file",
				       path,          (char *)"--null", (char *)"--list",
				       NULL };
		char *const environment[] = { NULL };

		(void)dup2(fds[1], STDOUT_FILENO);
		(void)close(fds[0]);
		(void)close(STDERR_FILENO);
		(void)execve("/usr/bin/git", argv, environment);
		_exit(127);
	}
	(void)close(fds[1]);
	*ret_size = 0;
	while (*ret_size < max && (got = read(fds[0], output + *ret_size, max - *ret_size)) > 0)
		*ret_size += (size_t)got;
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)unlink(path);
	return WEXITSTATUS(status);
}

static const char *const texts[] = {
	"",
	"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
	"[Core]\n\tWorkTree = ../../../here\n",
	"[core]worktree=a b  c \n",
	"[core]\nworktree = \"  kept  \" tail  ; comment\n",
	"[core] worktree = a\\\n  b\n",
	"[core]\r\n\tworktree = x\r\n\tbare\r\n",
	"[remote \"Ori\\\"gin\\\\x\"]\n url = https://a/b.git # c\n",
	"[branch \"a.b/c\"]\n\tmerge = refs/heads/a\n[user]\nname = A \\\"B\\\" \\t\\n\\\\\n",
	"[a.B.c] key = 1\n",
	"[include]\n\tpath = /dev/null\n",
	"# only\n; comments\n\n",
	"key = 1\n[core]\n bare\n symlinks\n x=\n",
	"\xef\xbb\xbf[core]\nbare = true\n",
	"[user]\n name = \"a;b#c\"d # e\n",
	"[user]\n name = unterminated \\",
	"[user]\n name = last",
	"[user \"\"]\n name = empty\n",
	/* what git refuses */
	"[core\n",
	"[core] wo_rk = x\n",
	"[core]\n\"x\" = 1\n",
	"[core]\nname = \"open\n",
	"[core]\nname = \\q\n",
	"[core \"x]\ny = 1\n",
	"[core x]\ny = 1\n",
	"[core]\nname value\n",
	"[core]\nname # no value\n",
	"[]\nname = 1\n",
	"[core]\n1x = 2\n",
};

static void it_reads_as_git_does(void **state)
{
	if (access("/usr/bin/git", X_OK) < 0)
		skip();
	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		static char output[65536];
		size_t size;
		List list;
		int status = ask_git(texts[i], strlen(texts[i]), output, sizeof(output), &size);
		int r = parse(texts[i], strlen(texts[i]), &list);

		if ((r == 0) != (status == 0))
			fail_msg("text %zu: %d, git ends with %d", i, r, status);
		if (r == 0 && (list.size != size || memcmp(list.text, output, size) != 0))
			fail_msg("text %zu: read as '%s', git says '%s'", i, list.text, output);
		free(list.text);
	}
}

static void what_is_too_much_or_no_text_is_refused(void **state)
{
	_cleanup_free_ char *text = malloc(10000);
	List list;

	assert_non_null(text);
	memset(text, 'x', 10000);
	memcpy(text, "[user]\nname = ", 14);
	assert_int_equal(parse(text, 10000, &list), -EBADMSG);
	free(list.text);
	memcpy(text, "[", 1);
	assert_int_equal(parse(text, 10000, &list), -EBADMSG);
	free(list.text);
	assert_int_equal(parse("[user]\nname = a\0b\n", 18, &list), -EBADMSG);
	free(list.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_reads_as_git_does),
		cmocka_unit_test(what_is_too_much_or_no_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
