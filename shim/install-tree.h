/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A tree of files that came from strangers, made into one that is only read: everything belongs to root,
 * nothing may be written by others, nothing has a set-id bit, links stay inside. Nobody else can reach the
 * tree meanwhile (its directory is 0700), so looking and changing may be two steps.
 */

#include "dbus/base.h"

/* Directories within directories, and entries in all. */
#define INSTALL_TREE_DEPTH_MAX 64u
#define INSTALL_TREE_ENTRIES_MAX 200000u

/*
 * Look at everything below directory_fd and give it its owner and mode: 0755 to directories and to what its
 * owner may execute, else 0644. Refused: devices, sockets, FIFOs, files with a second name, links that lead
 * out or nowhere, a tree that is too deep or too large.
 * Return: 0; -EBADMSG with *reterr, the path in it; another errno with *reterr.
 */
int install_tree_settle(int directory_fd, char **reterr);

/* Remove name in directory_fd, whatever it is, without following links. Return: 0, also when it is not
 * there; -errno. */
int install_tree_remove(int directory_fd, const char *name);
