/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A control group for each session (cgroup v2, admin-guide/cgroup-v2.rst of the kernel), so that whatever a
 * session leaves running ends with it and that it can be limited. Where it lies:
 *  - with systemd and a caller in a user's slice, a scope in the user's slice, made by systemd (scope.h): whatever
 * the administrator has set for that user holds, and the service's unit has no part in it. Not where the
 * caller is in a unit with limits of its own there, unless the configuration has limits, which no unit of a user
 * may undo;
 *  - with systemd and a caller elsewhere (a job, a service), or where the caller is in a group that has a limit which does not hold for the service, below that
 * group: a session must not be a way out of it. Where no group can be made there, in the caller's group
 * itself;
 *  - else in claude-sandbox/UID below the service's own group.
 * Where no cgroup2 hierarchy can be written there is none, and Posture says so.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "service/daemon/cgroup-text.h"

typedef struct Cgroups Cgroups;

/* Finds the hierarchy through /proc/self/mountinfo, unified or hybrid. Return: 0 (also without one), -ENOMEM.
 */
int cgroups_new(sd_event *event, Cgroups **ret);
Cgroups *cgroups_free(Cgroups *cgroups);
DEFINE_CLEANUP(Cgroups, cgroups_free)

typedef struct CgroupWish {
	uid_t uid;
	const char *caller;             /* its group, as /proc/PID/cgroup says; NULL: not known */
	uint64_t memory_max, tasks_max; /* 0: no limit */
	bool by_name;                   /* the configuration asks for one of them */
} CgroupWish;

/* What holds for a group, as its files say. */
typedef struct CgroupLimits {
	uint64_t memory_max, tasks_max; /* 0: no limit */
} CgroupLimits;

/*
 * Make a group. Its name is random: /proc/PID/cgroup shows it to everybody. *ret_path is the group below the
 * mount point, to be freed; NULL where only the caller's group could be had, whose descriptor is returned.
 * Limits that cannot be set are left out. Return: the descriptor of its directory; -EOPNOTSUPP without a
 * hierarchy; other negative errnos.
 */
int cgroups_make(Cgroups *cgroups, const CgroupWish *wish, char **ret_path);
/* The group of a scope that systemd is to make. Return: a path as above, to be freed; NULL where there is no
 * systemd or no hierarchy, or without memory. */
char *cgroups_plan_scope(const Cgroups *cgroups, const CgroupWish *wish);
/*
 * This process enters the groups of version 1 in which its caller is (text: /proc/PID/cgroup), where they are not
 * its own already. Return: 0 or a negative errno.
 */
int cgroups_follow_v1(const char *text);
/* Would a group for this wish get a limit of it? controller: "memory" or "pids". */
bool cgroups_offers(const Cgroups *cgroups, const CgroupWish *wish, const char *controller);
/* Can a group be made for it, with or without limits? */
bool cgroups_are_possible(const Cgroups *cgroups, const CgroupWish *wish);
/* Move a process there, and nothing that it has started. Return: 0 or a negative errno. */
int cgroups_enter(int directory_fd, pid_t pid);

/* In what group is this process? Return: as /proc/PID/cgroup says, to be freed, or NULL. */
char *cgroups_of(pid_t pid);
bool cgroups_has(Cgroups *cgroups, const char *path);
/* Where a group's files are, to be freed, or NULL. */
char *cgroups_directory(const Cgroups *cgroups, const char *path);
CgroupLimits cgroups_limits(const Cgroups *cgroups, const char *path);
/* Kill what is in the group, and remove it as soon as it is empty. Does not wait. */
void cgroups_end(Cgroups *cgroups, const char *path);

/*
 * Does a group, or one above it that is not also above base, limit what is in it? mount is the hierarchy's
 * directory. Files that cannot be read say nothing.
 */
bool cgroup_carries_limits(const char *mount, const char *path, const char *base);
