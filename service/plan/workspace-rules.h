/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * May this directory be the workspace? path is canonical. Refused: "/", a home or an ancestor of one, system
 * directories, our own directories, and whatever would expose a masked credential path of home.
 * homes: NULL-terminated canonical paths (passwd home, $HOME, /root).
 * Return: 0, or -EPERM with *ret_problem (cause and fix).
 */
int workspace_check(const char *path, const char *const *homes, char **ret_problem);

/*
 * The same without the credential paths: may anything at path be shown read-write to an agent at all?
 * Return: 0, or -EPERM with *ret_cause a clause ("it is a system directory").
 */
int directory_check(const char *path, const char *const *homes, char **ret_cause);

/*
 * What the path of workspace-root alone tells, before any file system is looked at: the places that can be
 * nobody's workspace under whatever account. Return: NULL, or why not (a clause).
 */
const char *workspace_root_refusal(const char *path);

/* May allow-write name this canonical path? Return: NULL, or why not (a clause). */
const char *allow_write_refusal(const char *path);

/*
 * Does the canonical directory belong to the system, so that nothing may be shown read-write there but what
 * allow-write names? Links in it are an administrator's.
 */
bool directory_is_systems(const char *directory);

/* Paths below a home that a workspace may neither lie in nor contain; NULL-terminated. */
const char *const *credential_paths(void);
