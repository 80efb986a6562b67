/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * gh(1) and glab(1), which know the format of their own files. Each works on a copy in a private directory,
 * in an environment composed from nothing: the person's files, where agents write, neither configure it nor
 * does it write there; the keyring, which no session sees, is out of its reach.
 */

#include "shim/forge-store.h"

typedef struct ForgeTool {
	const char *name;      /* of the program and, in Debian, of its package */
	const char *forge;     /* for people */
	const char *directory; /* below ~/.config */
	const char *file;      /* where the logins are */
	const char *host;      /* where nothing else is said */
	const char *input;     /* the option of "auth login" that takes the token on standard input */
	const char *variable;  /* names the directory to it */
	const char *settings;  /* what else its directory holds to begin with; NULL: nothing */
	const char *settings_file;
} ForgeTool;

extern const ForgeTool forge_tool_gh, forge_tool_glab;

/*
 * Where the tool is: in /usr/bin or /usr/local/bin, root's alone. Return: 0; -ENOENT, -EPERM with *reterr;
 * -ENOMEM.
 */
int forge_tool_find(const ForgeTool *tool, char **ret, char **reterr);

/*
 * Let the program at path add the token for host to what the file holds. environment: the caller's, of which
 * it gets the proxies.
 * Return: 0 with *ret, what the file holds then; -EREMOTEIO with the tool's words; -EINTR when a signal came,
 * which is to be raised again: *ret_signal; another errno; all with *reterr.
 */
int forge_tool_login(const ForgeTool *tool, const char *path, const char *host, const char *token,
		     const ForgeText *before, char *const *environment, ForgeText *ret, int *ret_signal,
		     char **reterr);
