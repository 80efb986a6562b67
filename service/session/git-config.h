/* SPDX-License-Identifier: MIT */
#pragma once

/* The text of a session's git configuration. Pure. */

#include "dbus/base.h"

typedef struct GitConfigOptions {
	const char *name, *email;       /* as git reports them; NULL: none */
	const char *const *forge_hosts; /* GitLab hosts beside gitlab.com; NULL-terminated */
	bool forge;                     /* credential helpers of gh and glab */
} GitConfigOptions;

/*
 * One value quoted for git-config(1), "CONFIGURATION FILE": between double quotes, with backslash, quote,
 * newline, tab and backspace escaped, other control characters left out. Whatever value holds, it stays one
 * value. Return: the text with its quotes, to be freed; NULL without memory.
 */
char *git_config_quote(const char *value);

/*
 * Identity, HTTPS in place of ssh for the forges (there is no key inside), the helpers, init.defaultBranch. A
 * host that is no host name is left out. Return: 0 with the text, or -ENOMEM.
 */
int git_config_render(const GitConfigOptions *options, char **ret);
