/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The directory of the installed agents (CS_AGENTS_DIR):
 *
 *   NAME                     a link to .versions/ENTRY: what the next session starts
 *   .versions/NAME-VERSION   one installed version; +1, +2, ... where that version is there already
 *   .staging                 an installation that is not finished, 0700
 *   .new                     a link about to become NAME
 *   .lock                    taken (flock(2)) by whoever changes anything here
 *
 * A session has its agent by the path of the version, not by the link, so that exchanging the link changes
 * nothing for it. The exchange is one rename(2): whatever is killed, NAME is the old one or the new one. A
 * version that NAME does not lead to is removed when no session has it, by this change or a later one.
 */

#include "dbus/base.h"

typedef struct InstallStore {
	char *path;
	int fd, versions_fd, lock_fd;
} InstallStore;

#define INSTALL_STORE_INIT ((InstallStore){ .fd = FD_NONE, .versions_fd = FD_NONE, .lock_fd = FD_NONE })
#define INSTALL_STAGING ".staging"

/*
 * Open it for changes, made if it is not there, and take the lock. It must be root's alone.
 * Return: 0; -EBUSY when another has the lock; another errno; *reterr says why.
 */
int install_store_open(const char *path, InstallStore *ret, char **reterr);
void install_store_done(InstallStore *store);

/*
 * Remove what killed installations left, and versions that are neither installed nor in use. What cannot be
 * removed stays for the next time. Return: how many versions stay because sessions have them; -errno.
 */
int install_store_sweep(InstallStore *store);

/* A fresh .staging. Return: a descriptor of it, or -errno with *reterr. */
int install_store_stage(InstallStore *store, char **reterr);

/* A name below .versions that is free, to be freed: the ENTRY above. Return: 0, -errno. */
int install_store_choose(InstallStore *store, const char *name, const char *version, char **ret_entry);

/*
 * Move source (in source_fd, on the same file system) to .versions/entry, let it reach the disk, and let NAME
 * lead there. Return: 0, -errno with *reterr; then NAME is as it was.
 */
int install_store_publish(InstallStore *store, int source_fd, const char *source, const char *name,
			  const char *entry, char **reterr);

/* Let NAME be no more. Return: 0, -ENOENT, -errno. */
int install_store_withdraw(InstallStore *store, const char *name);

/*
 * Which version NAME leads to, below path; needs no rights. Return: 0 with *ret_version to be freed; -ENOENT
 * when it is not installed; -EBADMSG when it was not installed by this command; -errno.
 */
int install_store_version(const char *path, const char *name, char **ret_version);
