/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A control group for each session (cgroup v2, admin-guide/cgroup-v2.rst of the kernel), so that whatever a
 * session leaves running ends with it. Where no cgroup2 hierarchy can be written there is none, and Posture
 * says so.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "dbus/names.h"

typedef struct Cgroups Cgroups;

/* Finds the hierarchy through /proc/self/mountinfo, unified or hybrid. Return: 0 (also without one), -ENOMEM.
 */
int cgroups_new(sd_event *event, Cgroups **ret);
Cgroups *cgroups_free(Cgroups *cgroups);
DEFINE_CLEANUP(Cgroups, cgroups_free)
/* The directory that holds the sessions' groups, or NULL where there is none. */
const char *cgroups_path(const Cgroups *cgroups);

/*
 * Make a group for a session. The name is random: /proc/PID/cgroup shows it to everybody. Return: the
 * descriptor of its directory; -EOPNOTSUPP without a hierarchy; other negative errnos.
 */
int cgroups_make(Cgroups *cgroups, char ret_name[static CS_ID_LENGTH + 1]);
bool cgroups_has(Cgroups *cgroups, const char *name);
/* Kill what is in the group, and remove it as soon as it is empty. Does not wait. */
void cgroups_end(Cgroups *cgroups, const char *name);

/*
 * Pure: the directory of the cgroup2 mount in a text of /proc/self/mountinfo (proc_pid_mountinfo(5)), with
 * its escapes undone, and the path of the line "0::" in a text of /proc/self/cgroup. Return: to be freed;
 * NULL for none or without memory.
 */
char *cgroup_find_mount(const char *mountinfo);
char *cgroup_find_own(const char *cgroup);
