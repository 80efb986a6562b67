/* SPDX-License-Identifier: MIT */
#pragma once

/* The insides of allow-ip.h, for the files allow-*.c alone: one call, and the sessions that it waits for. */

#include "service/daemon/allow-ip.h"
#include "service/daemon/session-reach.h"

typedef struct AllowWait AllowWait;

/* One session that was asked. */
struct AllowWait {
	AllowCall *call;
	char id[CS_ID_LENGTH + 1];
	ReachJob *job; /* NULL when it has ended */
	int result;
	AllowWait *next;
};

typedef enum AllowKind {
	ALLOW_ADD,
	ALLOW_REMOVE,
	ALLOW_LIST,
	ALLOW_SESSION_OPEN,
	ALLOW_SESSION_CLOSE,
	ALLOW_FOLLOW, /* nobody called: the file was edited by hand, or a session is behind it */
} AllowKind;

struct AllowCall {
	Manager *manager;
	AllowKind kind;
	Client *client;       /* NULL for ALLOW_FOLLOW */
	sd_bus_message *call; /* NULL when nobody waits */
	AuthQuery *query;     /* until somebody has decided */
	char *address, *comment;
	uint64_t usec;
	char id[CS_ID_LENGTH + 1]; /* of the session, for those that are about one */
	AllowList *list;
	AllowWait *waits;
	size_t n_asked, n_waiting;
	char **cells; /* of ALLOW_LIST, three a row */
	size_t n_cells, allocated_cells;
	sd_event_source *timer;
	/* Everybody has answered, or the time is over. Frees the call. */
	void (*done)(AllowCall *call);
	AllowCall *next;
};

/* Checks the limits. client and m may be NULL. Return: 0, or a negative errno with *reterr. */
int allow_call_new(Manager *manager, AllowKind kind, Client *client, sd_bus_message *m, AllowCall **ret,
		   sd_bus_error *reterr);
AllowCall *allow_call_free(AllowCall *call);
/* Answer with an error, and free. */
void allow_call_refuse(AllowCall *call, const char *name, const char *sentence);

/* Remember that session is to be asked. Return: the place for its job, or NULL without memory. */
AllowWait *allow_call_expect(AllowCall *call, const Session *session);
/* The ReachFunction of those whose only news is the result; userdata is the AllowWait. */
void allow_wait_done(void *userdata, int result, const char *problem, const LinkCells *cells);
/* Say what was enqueued, and call done() when everybody has answered, at the latest after LINK_ANSWER_USEC.
 */
void allow_call_wait(AllowCall *call);
