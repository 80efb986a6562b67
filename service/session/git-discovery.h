/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where git keeps the workspace's repository, found without git. An agent may change all of it while it is
 * looked at, so each directory is opened once and whatever is read of it is read through that descriptor,
 * which is also what the jail mounts. No link is followed that an agent could have made, no include is
 * followed, what is no regular file is not read, and nothing is waited for.
 */

#include "service/plan/view.h"

typedef struct GitPlaces {
	PlanNode directory,
		common;   /* held; equal but for a linked worktree; no path: there is no repository */
	char *found;      /* the directory in which .git was found, or the bare repository itself */
	char *top_level;  /* of its work tree; NULL: a bare one */
	char *worktree;   /* core.worktree as the repository's own configuration writes it */
	char *unfollowed; /* what .git names, where a link on the way is another program's */
	char *head;       /* the text of HEAD */
	char *settings;   /* a configuration with what an identity may depend on, and nothing that runs */
	bool foreign;     /* some of it belongs to another user, so that git asks safe.directory */
	bool unreadable;  /* git could not read its configuration either, or not without waiting */
} GitPlaces;

#define GIT_PLACES_INIT ((GitPlaces){ .directory = PLAN_NODE_INIT, .common = PLAN_NODE_INIT })

void git_places_done(GitPlaces *places);

/* As git looks: in the workspace, then above it, on the same file system. Return: 0 or -ENOMEM. */
int git_places_find(const PlanView *view, const PlanNode *workspace, uid_t uid, GitPlaces *ret);

/* path, absolute or relative to directory, as one absolute path. Return: it, to be freed, or NULL. */
char *git_places_join(const char *directory, const char *path);
/* Read a file whole, with a NUL behind it. Return: 0; -EBADMSG when it is none, or above max bytes; -ENOMEM. */
int git_places_read(int fd, size_t max, char **ret, size_t *ret_size);
/* The one line of a small regular file in the directory. Return: 0 and the line; -ENOENT; -EBADMSG when it is
 * none; -ENOMEM. */
int git_places_read_line(int directory_fd, const char *name, char **ret);
