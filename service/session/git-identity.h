/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who the caller is to git, and where git keeps the workspace's repository. An agent could write that
 * repository's configuration, so git is asked only for values (config --get-regexp) and places (rev-parse),
 * sees HOME alone in its environment, and runs in the holder's namespaces, where there is no wire yet. Asked
 * twice at the same time; three seconds; a git that is missing, fails or is silent means no identity, a
 * warning, and never a refusal.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"

#define GIT_DEADLINE_USEC (3 * USEC_PER_SEC)
#define GIT_OUTPUT_MAX 16384u

typedef struct GitIdentity {
	char *name, *email;
	char *directory, *common_directory, *top_level; /* absolute; a bare repository has no top level */
	char *worktree;       /* core.worktree as the repository's own configuration writes it */
	char *default_branch; /* init.defaultBranch */
	char *shared;         /* core.sharedRepository */
	bool no_repository;   /* git answered that there is none, or none that it trusts */
	char *problem;        /* how it did not answer, to stand behind "git"; NULL: it did */
} GitIdentity;

void git_identity_done(GitIdentity *identity);

typedef struct GitQuery GitQuery;
typedef void (*GitAnswered)(void *userdata, const GitIdentity *identity);

typedef struct GitOptions {
	const char *path; /* program_find() */
	const char *home;
	int workspace_fd; /* O_PATH directory, borrowed */
	int holder_pidfd; /* borrowed */
	bool network;     /* the holder has a network namespace */
} GitOptions;

/* answered is called once, from the loop. Return: 0 or a negative errno. */
int git_query_start(sd_event *event, const GitOptions *options, GitAnswered answered, void *userdata,
		    GitQuery **ret);
/* Kill, reap, close. Return: NULL. answered is not called. */
GitQuery *git_query_free(GitQuery *query);
DEFINE_CLEANUP(GitQuery, git_query_free)

/*
 * Pure. Output of `config --null --show-scope --get-regexp`: "scope\0key\nvalue\0"...; the last of each key
 * holds. core.worktree counts only in the repository's own scopes: git itself reads it nowhere else, and the
 * person's own files, which name no repository, must not decide which one is shown. Return: 0 or -ENOMEM.
 */
int git_identity_parse_config(const char *output, size_t size, GitIdentity *identity);
/* Pure. Output of `rev-parse`: three absolute paths, a line each, two for a bare repository; anything else
 * leaves all three NULL. Return: 0 or -ENOMEM. */
int git_identity_parse_places(const char *output, size_t size, GitIdentity *identity);
