/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * npm's package-lock.json, held against what an installation may contain (npm's manual, package-lock-json):
 * npm decides what to fetch from the registry's answers and writes it down; this reads it before anything is
 * fetched. Then `npm ci` installs exactly that and compares each archive with its digest.
 *
 * Every package comes from a registry by http or https and has a SHA-512 digest; none is a link, a directory,
 * an archive or a git repository of somebody's choice, or bundled in another without a digest of its own;
 * each lies below node_modules. Anything else refuses all of it.
 */

#include "dbus/base.h"

/* Size of a file that is looked at, and packages in it. */
#define INSTALL_LOCK_BYTES_MAX (8u * 1024 * 1024)
#define INSTALL_LOCK_PACKAGES_MAX 4096

typedef struct InstallLock InstallLock;

/* Return: 0; -EBADMSG with *reterr; -ENOMEM. */
int install_lock_parse(const char *text, size_t size, InstallLock **ret, char **reterr);
InstallLock *install_lock_free(InstallLock *lock);
DEFINE_CLEANUP(InstallLock, install_lock_free)

/* The version of a package at the top of node_modules, borrowed; NULL when it is not there. */
const char *install_lock_version(const InstallLock *lock, const char *package);

/* What that package asks for as its optional dependency of that name, borrowed; NULL when nothing. */
const char *install_lock_optional(const InstallLock *lock, const char *package, const char *dependency);
