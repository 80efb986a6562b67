/* SPDX-License-Identifier: MIT */
/*
 * `session`, linked with a table of denial steps of its own: the real ones less those that /run/lab-sabotage
 * names, one word a line. The word no-self-test leaves the self-test of the tap out, so that a test can show
 * that the ways round the routes lead somewhere when the filter is missing; no-jail-root keeps the jail's mounts from
 * being looked at. Only tests link this; the
 * installed program has no such switch.
 *
 *   session-sabotage --steps    names the steps
 */
#include <stdio.h>
#include <string.h>

#include "service/net/denial.h"
#include "service/net/foreign.h"
#include "service/net/self-test.h"
#include "service/session/mask-watch.h"
#include "service/session/run.h"

/* ld(1), --wrap: what the libraries call denial_steps is the first, what they define is the second. */
extern const DenialStep __real_denial_steps[];
DenialStep __wrap_denial_steps[32];
int __real_self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem);
int __wrap_self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem);
int __real_denial_read_back(Denial *denial, char **ret_problem);
int __wrap_denial_read_back(Denial *denial, char **ret_problem);
int __real_foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what);
int __wrap_foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what);

int __real_mask_watch_enter(MaskWatch *watch, pid_t leader);
int __wrap_mask_watch_enter(MaskWatch *watch, pid_t leader);

static bool sabotaged(const char *what)
{
	char line[64];
	bool found = false;
	FILE *f = fopen("/run/lab-sabotage", "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = strcmp(line, what) == 0;
	}
	if (f)
		fclose(f);
	return found;
}

int __wrap_self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem)
{
	return sabotaged("no-self-test") ? 0 : __real_self_test_run(tap_fd, routes, ret_problem);
}

int __wrap_denial_read_back(Denial *denial, char **ret_problem)
{
	return sabotaged("no-read-back") ? 0 : __real_denial_read_back(denial, ret_problem);
}

/* As a security module may answer. */
int __wrap_mask_watch_enter(MaskWatch *watch, pid_t leader)
{
	return sabotaged("no-jail-root") ? -EACCES : __real_mask_watch_enter(watch, leader);
}

/* The namespace that was not read back is not watched either. */
int __wrap_foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what)
{
	return sabotaged("no-read-back") ? 0 : __real_foreign_judge(view, header, ret_look, ret_what);
}

int main(int argc, char **argv)
{
	size_t n = 0;

	if (argc == 2 && strcmp(argv[1], "--steps") == 0) {
		for (const DenialStep *step = __real_denial_steps; step->name; step++)
			puts(step->name);
		return 0;
	}
	for (const DenialStep *step = __real_denial_steps; step->name; step++)
		if (!sabotaged(step->name) && n + 1 < ELEMENTSOF(__wrap_denial_steps))
			__wrap_denial_steps[n++] = *step;
	return session_run();
}
