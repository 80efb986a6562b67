/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * `claude-sandbox install`: an agent from npm's registry into CS_AGENTS_DIR, for every user of the machine.
 */

#include "shim/install-agent.h"
#include "shim/install-npm.h"
#include "shim/install-store.h"

typedef struct Installed {
	char *version;
	char *path;     /* of the program, by which sessions find it */
	int old_in_use; /* earlier versions that stay until their sessions end */
} Installed;

void installed_done(Installed *installed);

/* Told what is going on, one line without a newline. */
typedef void (*InstallSay)(void *userdata, const char *line);

/*
 * Fetch, check, and put it in place. version: valid (install_version_is_valid()). environment: root's, of
 * which npm gets what install_npm_keeps() lets through.
 * Return: 0; -errno with *reterr a sentence: nothing has changed then, and nothing is left.
 */
int install_agent(InstallStore *store, const InstallNpm *npm, const InstallAgent *agent, const char *version,
		  char *const *environment, InstallSay say, void *say_userdata, Installed *ret,
		  char **reterr);
