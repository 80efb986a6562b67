/* SPDX-License-Identifier: MIT */
#pragma once

/* What texts of the kernel say about control groups (cgroups(7), admin-guide/cgroup-v2.rst). Pure. */

#include "dbus/base.h"
#include "dbus/names.h"

/* Of every session's group: systemd's scope has ".scope" behind it. */
#define CGROUP_PREFIX "claude-sandbox-"
#define CGROUP_SCOPE ".scope"

/*
 * The directory of the cgroup2 mount in a text of /proc/self/mountinfo (proc_pid_mountinfo(5)), with its
 * escapes undone, and the path of the line "0::" in a text of /proc/PID/cgroup. Return: to be freed; NULL for
 * none or without memory.
 */
char *cgroup_find_mount(const char *mountinfo);
char *cgroup_find_own(const char *cgroup);

/*
 * The slice of the user to whose login a group belongs ("/user.slice/user-1000.slice", systemd.slice(5)).
 * Return: as above.
 */
char *cgroup_find_slice(const char *path);

/*
 * Version 1 has hierarchies of its own, a line for each: "4:memory:/a", "2:cpu,cpuacct:/b", "1:name=systemd:/c".
 * Return: the path in the one of these controllers, as above.
 */
char *cgroup_find_v1(const char *cgroup, const char *controllers);
/* The next of them in *text, which moves on. Return: its controllers, to be freed; NULL at the end. */
char *cgroup_next_v1(const char **text);
/* The directory of a path in the hierarchy of these controllers. Return: as above. */
char *cgroup_find_v1_directory(const char *mountinfo, const char *controllers, const char *path);

/*
 * Does this file of a group take something from what is in it? Files whose names end in ".max" or ".high",
 * cgroup.max.depth and cgroup.max.descendants limit unless each line's value begins with "max"; cpuset.cpus
 * and cpuset.mems unless they are empty.
 */
bool cgroup_text_limits(const char *name, const char *text);
/* Is controller one of the words of cgroup.controllers? */
bool cgroup_text_has(const char *controllers, const char *controller);

/* Is a group at or above another one? Paths below the mount point, "/" for the root. */
bool cgroup_is_above(const char *above, const char *path);
/* Absolute, without "." and "..", and its last part a session's group's: nothing else is ever killed. */
bool cgroup_path_is_sessions(const char *path);
