/* SPDX-License-Identifier: MIT */
/*
 * Stands in the place of an installed program while a test runs, and starts the real one with something taken
 * away. /run/lab-wrap says what: its first line is the real program's path, its second one of
 *
 *   forbid-namespaces ERRNO    no new user namespaces, as on a machine that forbids them or has none left
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int forbid_namespaces(int error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (!filter ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(unshare), 1,
			     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER)) < 0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(clone), 1,
			     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER)) < 0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) < 0)
		return -1;
	return seccomp_load(filter);
}

int main(int argc, char **argv)
{
	char program[256] = "", what[64] = "", error[32] = "";
	FILE *f = fopen("/run/lab-wrap", "re");

	if (argc < 1 || !f || fscanf(f, "%255s %63s %31s", program, what, error) < 2)
		return 99;
	fclose(f);
	if (strcmp(what, "forbid-namespaces") == 0 &&
	    forbid_namespaces(strcmp(error, "ENOSPC") == 0 ? ENOSPC : EPERM) < 0)
		return 98;
	execv(program, argv);
	return 97;
}
