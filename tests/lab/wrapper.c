/* SPDX-License-Identifier: MIT */
/*
 * Stands in the place of an installed program while a test runs, and starts the real one with something taken
 * away. /run/lab-wrap says what: its first line is the real program's path, each further one of
 *
 *   forbid-namespaces ERRNO               no new user namespaces, as on a machine that forbids them or has
 * none left fail CALL ERRNO [ARGUMENT VALUE]...   this system call answers with that number, where the
 * arguments named (0 to 5) have these values; an argument 6 to 11 stands for "the bits of VALUE are all set
 * in argument - 6"
 *
 * What the program starts inherits that. The real program is executed by execveat(2), so that execve(2) can
 * fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS 6

static int forbid_namespaces(scmp_filter_ctx filter, int error)
{
	const struct scmp_arg_cmp unshare_user = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER);

	if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(unshare), 1, unshare_user) < 0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(clone), 1, unshare_user) < 0)
		return -1;
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int fail(scmp_filter_ctx filter, const char *name, int error, char **rest)
{
	struct scmp_arg_cmp compare[ARGUMENTS];
	unsigned n = 0;
	int call = seccomp_syscall_resolve_name(name);
	char *word;

	while ((word = strtok_r(NULL, " \n", rest)) && n < ARGUMENTS) {
		unsigned argument = (unsigned)strtoul(word, NULL, 0);
		const char *value = strtok_r(NULL, " \n", rest);
		uint64_t bits = value ? strtoull(value, NULL, 0) : 0;

		compare[n++] = argument < ARGUMENTS ? (struct scmp_arg_cmp){ argument, SCMP_CMP_EQ, bits, 0 }
						    : (struct scmp_arg_cmp){ argument - ARGUMENTS,
									     SCMP_CMP_MASKED_EQ, bits, bits };
	}
	if (call == __NR_SCMP_ERROR)
		return -1;
	return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)error), call, n, compare);
}

static int add(scmp_filter_ctx filter, char *line)
{
	char *rest, *what = strtok_r(line, " \n", &rest), *word;

	if (!what)
		return 0;
	if (strcmp(what, "forbid-namespaces") == 0 && (word = strtok_r(NULL, " \n", &rest)))
		return forbid_namespaces(filter, strcmp(word, "ENOSPC") == 0 ? ENOSPC : EPERM);
	if (strcmp(what, "fail") == 0 && (what = strtok_r(NULL, " \n", &rest)) &&
	    (word = strtok_r(NULL, " \n", &rest)))
		return fail(filter, what, atoi(word), &rest);
	return -1;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	char program[256] = "", line[256];
	FILE *f = fopen("/run/lab-wrap", "re");
	int fd;

	if (argc < 1 || !f || !filter || !fgets(program, sizeof(program), f))
		return 99;
	program[strcspn(program, "\n")] = '\0';
	while (fgets(line, sizeof(line), f))
		if (add(filter, line) < 0)
			return 98;
	fclose(f);
	fd = open(program, O_PATH | O_CLOEXEC);
	/* A service with NoNewPrivs would be another service. */
	if (geteuid() == 0)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (fd < 0 || seccomp_load(filter) < 0)
		return 97;
	(void)syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	return 96;
}
