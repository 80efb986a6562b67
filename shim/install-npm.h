/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * npm, run as root on a stranger's packages: always the system's own, with an environment composed from
 * nothing, without a terminal, a shell, git or the packages' scripts.
 */

#include "dbus/base.h"

typedef struct InstallNpm {
	char *program;
	char *path; /* PATH for it: the directories that only root can change */
} InstallNpm;

void install_npm_done(InstallNpm *npm);

/*
 * Find npm and the node that it runs on in /usr/bin, /bin, /usr/sbin, /sbin, /usr/local/bin. Every directory
 * and link on the way to either must be root's alone.
 * Return: 0; -ENOENT, -EPERM with *reterr a sentence that says what to install; -ENOMEM.
 */
int install_npm_find(InstallNpm *ret, char **reterr);

/* As install_npm_find() for npm judges one file: is it, and all on the way to it, root's alone? Return: 0;
 * -EPERM; or why it cannot be reached. */
int install_npm_check_place(const char *path);

/*
 * May npm have this variable ("NAME=VALUE") of root's environment? Proxies, certificates and where the
 * registry is; nothing else.
 */
bool install_npm_keeps(const char *variable);

/*
 * Run `npm arguments...` in project, an empty home and cache in home; both absolute. The settings of the
 * machine (npm's global configuration) hold, those of users do not.
 * Return: 0; -EREMOTEIO when npm failed, *reterr the line in which it says why; -EINTR when SIGINT, SIGTERM
 * or SIGHUP came (npm is killed); another errno with *reterr.
 */
int install_npm_run(const InstallNpm *npm, const char *project, const char *home,
		    const char *const *arguments, char *const *environment, char **reterr);

/* Of what npm wrote on standard error, the line that a person should read; to be freed, NULL without memory.
 */
char *install_npm_last_line(const char *text);

/* Does that line say that the registry could not be reached, or not be believed? */
bool install_npm_is_network(const char *line) _pure_;
