/* SPDX-License-Identifier: MIT */
#pragma once

/* The text of a session's git configuration. Pure. */

#include "dbus/base.h"
#include "service/session/git-carry.h"

typedef struct GitConfigOptions {
	const char *name, *email;       /* as git reports them; NULL: none */
	const char *const *forge_hosts; /* GitLab hosts beside gitlab.com; NULL-terminated */
	const char *default_branch;     /* init.defaultBranch; NULL: main */
	const char *top_level;          /* the repository that the person's git accepts here; NULL: none */
	const char *gh, *glab;          /* absolute paths of the credential helpers; NULL: none */
	const GitCarry *carry;          /* NULL: nothing */
	const char *excludes, *attributes;
	bool lfs; /* the system has git-lfs */
} GitConfigOptions;

/*
 * One value quoted for git-config(1), "CONFIGURATION FILE": between double quotes, with backslash, quote,
 * newline, tab and backspace escaped, other control characters left out. Whatever value holds, it stays one
 * value. Return: the text with its quotes, to be freed; NULL without memory.
 */
char *git_config_quote(const char *value);

/*
 * What is carried over first: of the rest the last one holds. Identity, HTTPS in place of ssh for the forges (there is no key inside), the helpers, init.defaultBranch;
 * the one repository that the person's own safe.directory let git use, since that setting is hidden with the
 * home; and that housekeeping takes no other worktree for gone: those that lie elsewhere are only hidden. A
 * host that is no host name is left out. Return: 0 with the text, or -ENOMEM.
 */
int git_config_render(const GitConfigOptions *options, char **ret);
