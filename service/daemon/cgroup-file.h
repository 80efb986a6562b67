/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of one control group (admin-guide/cgroup-v2.rst): who may be in it, and what its groups get. */

#include "dbus/base.h"

/* Return: to be freed; NULL where it is not there. */
char *cgroup_file_read(const char *directory, const char *name);
/* Return: 0 or a negative errno. */
int cgroup_file_write(const char *directory, const char *name, const char *text);

/* Can a process be in it? Not in a threaded one, nor in a child of one that holds processes in threaded mode. */
bool cgroup_file_takes_processes(const char *directory);

/*
 * Hand memory and pids down to the groups below this one; those above must have them for it. Not cpu: all
 * sessions together would weigh as much as one process outside of every group.
 */
/* A group of ours, which holds no process: what cannot be had is left out. */
void cgroup_file_hand_down(const char *directory);
/*
 * A group of somebody else's: only where it stays one that processes and other groups can be in. Return: what
 * cgroup_file_undo() takes back, to be freed; NULL where nothing was changed, or at the machine's own root.
 */
char *cgroup_file_borrow(const char *directory);
/* Take it back, once nothing of ours is below it. */
void cgroup_file_undo(const char *directory, const char *undo);
