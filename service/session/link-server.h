/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The session's end of the link. The service may be absent at any time, may come back as another process, and
 * is never waited for: what it has to learn is kept as flags, what answers a question is one of at most
 * LINK_WAITING_MAX packets, and while those wait no further question is read.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/link/link.h"
#include "service/link/rows.h"

#define LINK_SERVER_DENIED_MAX LINK_DENIED_ROWS_MAX

typedef struct LinkServer LinkServer;

typedef struct LinkServerCalls {
	/* The service wants the end: hang up, kill after grace_usec. why: what the person is told; "" is
	 * nothing. */
	void (*stop)(void *userdata, uint64_t grace_usec, const char *why);
	/* All rows of table, to be freed by the link server. Return: 0 or a negative errno, which is the
	 * answer. */
	int (*table)(void *userdata, LinkTable table, LinkRow **ret_rows, uint32_t *ret_n);
	/*
	 * Open an address, or close it again; m is LINK_ALLOW or LINK_REVOKE. Return: 0, or a negative errno
	 * with *ret_problem (allocated; cause and fix), which are the answer.
	 */
	int (*reach)(void *userdata, const LinkMessage *m, char **ret_problem);
	/*
	 * The rows of LINK_TABLE_DENIED that the service has not been told, as they are now; at most
	 * LINK_SERVER_DENIED_MAX, to be freed by the link server; how many attempts there were in all. Asked
	 * for after link_server_denied().
	 */
	int (*denied)(void *userdata, LinkRow **ret_rows, uint32_t *ret_n, uint64_t *ret_total);
	/*
	 * Check the jail that runs. Return: 0, and link_server_verified() comes later; a negative errno with
	 * *ret_problem, which are the answer. May be NULL.
	 */
	int (*verify)(void *userdata, uint32_t serial, bool probes, char **ret_problem);
	/* The last word (failed or exited) is with the service. */
	void (*delivered)(void *userdata);
} LinkServerCalls;

/*
 * listen_fd: bound, taken over on success; listen(2) is called here, since it is what names this process to
 * whoever connects (unix(7), SO_PEERCRED). Connections of any uid but 0 are closed. Return: 0 or a negative
 * errno.
 */
int link_server_new(sd_event *event, int listen_fd, const LinkServerCalls *calls, void *userdata,
		    LinkServer **ret);
LinkServer *link_server_free(LinkServer *server);
DEFINE_CLEANUP(LinkServer, link_server_free)

typedef struct LinkStatus {
	SessionState state;
	pid_t leader;
	bool jailed;
	int exit_status;
	uint64_t denied; /* attempts so far */
} LinkStatus;

/* Told at once, or with the greeting of the next connection. */
void link_server_set_status(LinkServer *server, const LinkStatus *status);
/*
 * There is something that the call denied() would give. The caller sees to it that this does not come more
 * than a few times a second; rows that wait for a slow service are asked for when it reads again.
 */
void link_server_denied(LinkServer *server);
/*
 * A row of the checks. serial: of the call verify(), or 0 in a session that was made to check. Whom the
 * service does not wait for any more is dropped.
 */
void link_server_row(LinkServer *server, uint32_t serial, const Row *row);
/* They have ended: result and text as LINK_DONE has them. */
void link_server_verified(LinkServer *server, uint32_t serial, int result, const char *text);
/* The agent runs. Told once. */
void link_server_started(LinkServer *server);
/* The last word, one of the two, told once: the launch failed (error: a CS_ERROR_ name), or all is over. */
int link_server_failed(LinkServer *server, const char *error, const char *text);
/*
 * why: what made the session end the agent, or NULL. denied: how many attempts there were. Return: 0 or
 * -ENOMEM.
 */
int link_server_exited(LinkServer *server, int status, const char *why, uint64_t denied);

/* A copy of text that the link takes: cut at LINK_TEXT_MAX. NULL without memory. */
char *link_text(const char *text);
