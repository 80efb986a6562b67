/* SPDX-License-Identifier: MIT */
#pragma once

/* Every session that the service knows, and who may see it. Data only: nothing here acts. */

#include <sys/types.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/denied-sum.h"
#include "service/daemon/link-client.h"

typedef struct Registry Registry;

/* Which file of configuration it was. */
typedef struct PolicyStamp {
	bool known;
	dev_t device;
	ino_t inode;
	off_t size;
	int64_t changed_nsec;
} PolicyStamp;

typedef struct Session {
	Registry *registry;
	char id[CS_ID_LENGTH + 1];
	char *path; /* of its bus object */
	char *agent, *user, *workspace;
	uid_t uid;
	uint64_t started_usec; /* CLOCK_REALTIME */

	/* Its own statements */
	SessionState state;
	uint32_t leader;
	bool jailed;
	int exit_status;
	uint64_t attempts; /* that were denied */
	LinkCells warnings, posture;
	bool posture_known; /* it is in the audit log */
	DeniedSum denied;
	DeniedSeen denied_seen;
	char *why; /* its agent ended, where there is more to say than the status; or NULL */

	/* Its process, `session` */
	pid_t pid;
	int pidfd;
	/* Its control group below the hierarchy's mount point, NULL for none. Everybody reads it in /proc, so
	 * it is not the id. */
	char *group;
	CgroupLimits limits;
	bool in_callers_group;
	/* What of its policy is laxer than the configuration was when we looked (drift.h); NULL for nothing.
	 */
	char **marks;
	PolicyStamp marks_stamp;
	/* It was made to check its jail, for one call, and ends with it: nobody sees it, lists it or stops
	 * it. */
	bool hidden;
	bool awaited; /* taken over, and has not said yet how it is */
	bool foreign; /* it speaks another version of the link: it can be seen and stopped, and no more */

	struct Keeper *keeper;      /* what watches and ends it */
	struct SessionReach *reach; /* what it is told of addresses */
	/* Addresses that are open for a time. */
	struct AllowExpiry *expiries;
	struct Session *next;
} Session;

#define EXIT_STATUS_UNKNOWN (-1)

int registry_new(Registry **ret);
/* Frees what is left. */
Registry *registry_free(Registry *registry);
DEFINE_CLEANUP(Registry, registry_free)

/* Strings are copied. Return: 0; -EEXIST for an id that is taken; -ENOMEM. */
int registry_add(Registry *registry, const char *id, const char *agent, const char *user, uid_t uid,
		 const char *workspace, uint64_t started_usec, Session **ret);
/* Nobody finds it any more; it is to be freed. */
void registry_unlink(Session *session);
/* Return: NULL. */
Session *session_free(Session *session);
Session *registry_first(Registry *registry);
Session *registry_find(Registry *registry, const char *id);
size_t registry_count(Registry *registry);
size_t registry_count_of(Registry *registry, uid_t uid);

/* Likewise, unless it is hidden. */
Session *registry_find_shown(Registry *registry, const char *id);
/* May this user see it: their own, and root every one; nobody a hidden one. */
bool session_visible(const Session *session, uid_t uid);

/* A fresh random id. Return: 0 or a negative errno of getrandom(2). */
int session_id_make(char ret[static CS_ID_LENGTH + 1]);
