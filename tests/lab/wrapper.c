/* SPDX-License-Identifier: MIT */
/*
 * Stands in the place of an installed program while a test runs, and starts the real one with something taken
 * away. /run/lab-wrap says what: its first line is the real program's path, each further one of
 *
 *   forbid-namespaces ERRNO               no new user namespaces, as on a machine that forbids them or has
 *                                         none left
 *   fail CALL ERRNO [ARGUMENT VALUE]...   this system call answers with that number, where the arguments
 *                                         named (0 to 5) have these values; an argument 6 to 11 stands for
 *                                         "the bits of VALUE are all set in argument - 6"
 *   limit NAME NUMBER                     in a user namespace whose /proc/sys/user/NAME has that number; its
 *                                         ids are mapped by whoever listens at /run/lab-ids
 *   chroot PATH                           with that as its root directory, likewise by a right of such a
 *                                         namespace
 *
 * What the program starts inherits that. The real program is executed by execveat(2), so that execve(2) can
 * fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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

/* All ids stand for themselves: a process may map no more than its own. */
static int enter_user_namespace(void)
{
	static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/lab-ids" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char done;

	if (fd < 0 || unshare(CLONE_NEWUSER) < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || read(fd, &done, 1) != 1)
		return -1;
	return close(fd);
}

static int limit(const char *name, const char *number)
{
	char path[128];
	int fd;

	if (enter_user_namespace() < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/sys/user/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, number, strlen(number)) < 0)
		return -1;
	return close(fd);
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
	if (strcmp(what, "limit") == 0 && (what = strtok_r(NULL, " \n", &rest)) &&
	    (word = strtok_r(NULL, " \n", &rest)))
		return limit(what, word);
	if (strcmp(what, "chroot") == 0 && (word = strtok_r(NULL, " \n", &rest)))
		return enter_user_namespace() < 0 || chroot(word) < 0 || chdir("/") < 0 ? -1 : 0;
	return -1;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	char program[256] = "", line[256];
	FILE *f = fopen("/run/lab-wrap", "re");
	bool filtered = false;
	int fd;

	if (argc < 1 || !f || !filter || !fgets(program, sizeof(program), f))
		return 99;
	program[strcspn(program, "\n")] = '\0';
	while (fgets(line, sizeof(line), f)) {
		filtered = filtered || strncmp(line, "fail ", 5) == 0 || strncmp(line, "forbid", 6) == 0;
		if (add(filter, line) < 0)
			return 98;
	}
	fclose(f);
	fd = open(program, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return 97;
	/* A service with NoNewPrivs would be another service. */
	if (geteuid() == 0)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	/* A filter that forbids nothing would be seen all the same. */
	if (filtered && seccomp_load(filter) < 0)
		return 97;
	(void)syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	return 96;
}
