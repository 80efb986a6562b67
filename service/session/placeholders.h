/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Empty directories that stand, while a session runs, where the plan hides something that does not exist. A
 * mask needs a place to be mounted on; without one the agent would make the directory itself, on the host,
 * and the person's shell or desktop would later run what lies in it.
 *
 * Sessions of one user share them. Each session holds a shared flock(2) on the record, which lists what was
 * made; the last one to go, alone able to lock it exclusively, removes what is still empty. Removing earlier
 * would dissolve the mask in every other jail. What a killed session left is removed by the next one that
 * goes.
 */

#include "dbus/base.h"
#include "service/plan/view.h"

typedef struct Placeholders {
	int record_fd; /* FD_NONE before placeholders_open() */
} Placeholders;

#define PLACEHOLDERS_INIT ((Placeholders){ FD_NONE })

/*
 * Open the record at path (a regular file of uid, mode 0600, made by the service) and count as a user of it.
 * Return: 0; a negative errno with *ret_problem.
 */
int placeholders_open(Placeholders *placeholders, const char *path, uid_t uid, char **ret_problem);

/*
 * Make names (NULL-terminated, each one component) in directory, which view follows; those that exist stay as
 * they are. A directory that does not exist itself, or that is not uid's, is left alone: the plan binds
 * nothing there. Return: 0; a negative errno with *ret_problem.
 */
int placeholders_make(Placeholders *placeholders, const PlanView *view, const char *directory, uid_t uid,
		      const char *const *names, char **ret_problem);

/* Count no longer; remove what is left over when nobody else counts. */
void placeholders_close(Placeholders *placeholders);
