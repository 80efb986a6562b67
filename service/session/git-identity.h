/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who the caller is to git in the workspace's repository. The repository's files may be an agent's work, so git
 * never sees them: it runs in a mount namespace of its own with a stand-in in the repository's place, which
 * holds only the settings that git-discovery.h read by descriptor. The path is the same, so that conditions of
 * the person's configuration (includeIf) hold as they do outside. It is asked for values alone (config
 * --get-regexp), sees HOME alone of the caller's environment, and runs in the holder's namespaces, where there
 * is no wire yet. Three seconds; a git that is missing, fails or is silent means no identity, a warning, and
 * never a refusal.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/session/git-carry.h"
#include "service/session/git-discovery.h"

#define GIT_DEADLINE_USEC (3 * USEC_PER_SEC)
#define GIT_OUTPUT_MAX 262144u

typedef struct GitIdentity {
	char *name, *email;
	char *default_branch;    /* init.defaultBranch */
	char *shared;            /* core.sharedRepository */
	char **safe_directories; /* safe.directory, of the person and the system; NULL: none */
	GitCarry carry;          /* what else holds inside */
	char *problem;           /* how git did not answer, to stand behind "git"; NULL: it did */
} GitIdentity;

void git_identity_done(GitIdentity *identity);

typedef struct GitQuery GitQuery;
/* identity may be taken. */
typedef void (*GitAnswered)(void *userdata, GitIdentity *identity);

typedef struct GitOptions {
	const char *path; /* program_find() */
	const char *home;
	const GitPlaces *places; /* borrowed until git_query_start() has returned */
	int holder_pidfd;        /* borrowed */
	bool network;            /* the holder has a network namespace */
} GitOptions;

/* answered is called once, from the loop. Return: 0 or a negative errno. */
int git_query_start(sd_event *event, const GitOptions *options, GitAnswered answered, void *userdata,
		    GitQuery **ret);
/* Kill, reap, close. Return: NULL. answered is not called. */
GitQuery *git_query_free(GitQuery *query);
DEFINE_CLEANUP(GitQuery, git_query_free)

/*
 * Pure. Output of `config --null --get-regexp`: "key\nvalue\0"...; the last of each key holds, and all of
 * safe.directory, with "~" as the home. Return: 0 or -ENOMEM.
 */
int git_identity_parse(const char *output, size_t size, const char *home, GitIdentity *identity);
