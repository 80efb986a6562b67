/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session's git has of the person's settings, so that it records the same commits inside: by value what runs
 * no program and is no credential, and the names of what changes commits and has to stay outside. Pure.
 */

#include "dbus/base.h"

typedef struct GitCarry {
	char **settings;             /* pairs: key as git writes it ("url.https://x/.insteadof"), value */
	char **left;                 /* "core.hooksPath": once each */
	char *excludes, *attributes; /* core.excludesFile, core.attributesFile: paths, "~" as the home */
	bool lfs;                    /* filter.lfs.* is git-lfs's own */
} GitCarry;

void git_carry_done(GitCarry *carry);

/*
 * One of the person's settings, in git's order. key: section and name in lower case. value: NULL where none is given,
 * which is "true". Return: 0 or -ENOMEM.
 */
int git_carry_add(GitCarry *carry, const char *key, const char *value, const char *home);

/*
 * The settings as a configuration file has them. excludes, attributes: where the session has put these files; NULL:
 * nowhere. lfs: the system has git-lfs. Return: 0 or -ENOMEM.
 */
int git_carry_render(const GitCarry *carry, const char *excludes, const char *attributes, bool lfs,
		     FILE *out);
