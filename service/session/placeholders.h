/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What stands on the host, while a session runs, where the plan hides something that does not exist: a mask
 * needs a place to be mounted on. Without one the agent would make it itself, and the person's shell or
 * desktop would later run it. Empty directories for the masks of the homes, files (placeholder-file.h) for
 * the names of the entry-point guard.
 *
 * Sessions of one user share them. Each session holds a shared flock(2) on the guard; a record in the home
 * lists what was made. Whoever can lock the guard exclusively, the last one to go or the next one to come, is
 * alone: it removes the directories that are still empty, the files that are still ours, and the record.
 * Removing earlier would dissolve the mask in every other jail.
 */

#include "dbus/base.h"
#include "service/plan/view.h"

typedef struct Placeholders {
	int guard_fd;  /* borrowed */
	bool counted;  /* placeholders_begin() took the shared lock */
	PlanView view; /* must live until placeholders_close() */
	char *home;
	uid_t uid;
	struct PlaceholderFile {
		int directory_fd;
		char *name;
	} * files; /* this session's, by where they are: a directory may be moved */
	size_t n_files;
} Placeholders;

#define PLACEHOLDERS_INIT ((Placeholders){ .guard_fd = FD_NONE })

/*
 * Count as a user of the guard, which the caller has put into guard_fd; what killed sessions left is removed
 * first, if no other session counts. Return: 0; -EBADF with *ret_problem when there is none; another negative
 * errno.
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

/*
 * Make a file that keeps name free. directory_fd: where the mask will lie, also by O_PATH; directory: its
 * canonical path. Return: as placeholder_file_make().
 */
int placeholders_make_file(Placeholders *placeholders, int directory_fd, const char *directory,
			   const char *name);

/* Count no longer; remove what is left over when nobody else counts. */
void placeholders_close(Placeholders *placeholders);
