/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Empty directories that stand, while a session runs, where the plan hides something that does not exist. A
 * mask needs a place to be mounted on; without one the agent would make the directory itself, on the host,
 * and the person's shell or desktop would later run what lies in it.
 *
 * Sessions of one user share them. Each session holds a shared flock(2) on the guard; a record in the home
 * lists what was made. The last one to go, alone able to lock the guard exclusively, removes what is still
 * empty, and the record. Removing earlier would dissolve the mask in every other jail. What a killed session
 * left is removed by the next one that goes.
 */

#include "dbus/base.h"
#include "service/plan/view.h"

/* Below the home; no agent sees it. */
#define PLACEHOLDERS_STATE ".local/state/claude-sandbox"

typedef struct Placeholders {
	int guard_fd;  /* borrowed */
	bool counted;  /* placeholders_begin() took the shared lock */
	PlanView view; /* must live until placeholders_close() */
	char *home;
	uid_t uid;
} Placeholders;

#define PLACEHOLDERS_INIT ((Placeholders){ .guard_fd = FD_NONE })

/*
 * Count as a user of the guard, which the caller has put into guard_fd. Return: 0; -EBADF with *ret_problem
 * when there is none; another negative errno.
 */
int placeholders_begin(Placeholders *placeholders, const PlanView *view, const char *home, uid_t uid,
		       char **ret_problem);

/*
 * Make names (NULL-terminated, each one component) in directory; those that exist stay as they are. A
 * directory that does not exist itself, or that is not the user's, is left alone: the plan binds nothing
 * there. Return: 0; a negative errno with *ret_problem.
 */
int placeholders_make(Placeholders *placeholders, const char *directory, const char *const *names,
		      char **ret_problem);

/* Count no longer; remove what is left over when nobody else counts. */
void placeholders_close(Placeholders *placeholders);
