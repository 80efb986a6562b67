/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The keeper of one session: holds its process by pidfd and its link, keeps what it says, stops it, and
 * clears up when it has ended, whatever the way.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/registry.h"

#define KEEPER_GRACE_USEC (5 * USEC_PER_SEC)
#define KEEPER_GRACE_MAX_USEC (60 * USEC_PER_SEC)

#define KEEPER_NEW_MAX 20u

/* Which statements have changed. */
typedef enum KeeperChange {
	KEEPER_STATE = 1u << 0,
	KEEPER_LEADER = 1u << 1,
	KEEPER_JAILED = 1u << 2,
	KEEPER_EXIT_STATUS = 1u << 3,
	KEEPER_WARNINGS = 1u << 4,
	KEEPER_POSTURE = 1u << 5,
	KEEPER_ATTEMPTS = 1u << 6,
} KeeperChange;

typedef struct KeeperEvents {
	/* The first words of a session that was awaited (registry.h). */
	void (*greeted)(void *userdata, Session *session);
	/* It may be asked and told things from now on; once. */
	void (*connected)(void *userdata, Session *session);
	void (*changed)(void *userdata, Session *session, unsigned changes);
	void (*started)(void *userdata, Session *session);
	/* Attempts that were denied: rows of LINK_TABLE_DENIED. At most LINK_CLIENT_DENIED_MAX rows a second. */
	void (*denied)(void *userdata, Session *session, const LinkRow *rows, uint32_t n);
	/*
	 * Of these, a destination that is new. More than KEEPER_NEW_MAX of them in a second come together: row is
	 * NULL then, and n says how many.
	 */
	void (*destination)(void *userdata, Session *session, const LinkRow *row, uint64_t n);
	/* What it found in its jail: rows of LINK_TABLE_CHECKS, not checked yet. running: asked for by
	 * keeper_verify(); else it is a session that was made to check. */
	void (*rows)(void *userdata, Session *session, bool running, const LinkRow *rows, uint32_t n);
	/* error and text are the session's own words: not checked yet. */
	void (*failed)(void *userdata, Session *session, const char *error, const char *text);
	/* Its process has gone and its directory too. The last call; the receiver removes session and keeper.
	 */
	void (*ended)(void *userdata, Session *session);
} KeeperEvents;

typedef struct Keeper Keeper;

/* session->pidfd holds its process. Sets session->keeper. Return: 0 or a negative errno. */
int keeper_new(sd_event *event, Turns *turns, Cgroups *cgroups, Session *session, const KeeperEvents *events,
	       void *userdata);
/* The session lives on; nobody watches it any more. */
Keeper *keeper_free(Keeper *keeper);
/* Takes fd, a connected and checked link. Return: 0 or a negative errno. */
int keeper_attach(Keeper *keeper, int fd);
/* It listens, whether or not it has greeted: of one that was taken over. */
void keeper_connected(Keeper *keeper);
bool keeper_is_connected(const Keeper *keeper);
/* Hang up, and kill after the grace time. A session that does not answer, or was told before, is killed on
 * time. why: what its person is told, or NULL. */
void keeper_stop(Keeper *keeper, uint64_t grace_usec, const char *why);
void keeper_kill(Keeper *keeper);
/* As link_client_get_table(); -ENOTCONN without a link. function is called before the session is freed. */
int keeper_get_table(Keeper *keeper, LinkTable table, uint32_t max_rows, LinkTableFunction function,
		     void *userdata);
/* As link_client_tell() and link_client_verify(); likewise. */
int keeper_tell(Keeper *keeper, const LinkMessage *m, LinkDoneFunction function, void *userdata);
int keeper_verify(Keeper *keeper, bool probes, LinkDoneFunction function, void *userdata);
