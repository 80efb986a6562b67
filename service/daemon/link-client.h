/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The service's end of a link. The other end belongs to its user, who may make it say anything: packets and
 * tables are bounded, answers have a time limit, and whoever breaks the protocol is cut off. What comes out
 * of here is a statement of that session about itself.
 *
 * The packets of all sessions of a user draw on that user's budget (turns.h). What nobody
 * asked for, and rows above a limit, are dropped before they are decoded.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/daemon/link-cells.h"
#include "service/daemon/link-peer.h"
#include "service/daemon/turns.h"
#include "service/link/link.h"

/* Of one whole table. */
#define LINK_CLIENT_TABLE_BYTES_MAX (1u << 20)

/* Of LINK_DENIED in a second: twice what a session says that keeps to its part. More is dropped, and counted. */
#define LINK_CLIENT_DENIED_MAX 256u

typedef struct LinkClient LinkClient;

typedef struct LinkClientEvents {
	/* HELLO, STATE, STARTED, FAILED, EXITED, DENIED or ROWS has come. */
	void (*message)(void *userdata, const LinkMessage *m);
	/*
	 * The link is over: error is 0 for its end, -EBADMSG for a broken protocol, or another errno. Called
	 * once, after every question was answered with an error. The link stays to be freed.
	 */
	void (*closed)(void *userdata, int error);
} LinkClientEvents;

/*
 * Takes fd, a connected SOCK_SEQPACKET socket, of a session of uid. turns is borrowed. Return: 0 or a negative
 * errno (fd is closed then).
 */
int link_client_new(sd_event *event, Turns *turns, uid_t uid, int fd, const LinkClientEvents *events,
		    void *userdata, LinkClient **ret);
/* Questions still open are answered with -ECANCELED. */
LinkClient *link_client_free(LinkClient *link);

/*
 * Ask for a whole table. function is called once, later: result 0 and the cells, which it may take;
 * -ETIMEDOUT after LINK_ANSWER_USEC; -E2BIG above max_rows or LINK_CLIENT_TABLE_BYTES_MAX; others. Return: 0;
 * -EPROTONOSUPPORT (also as the result) for a session that speaks another version of the link;
 * -EBUSY with LINK_WAITING_MAX questions open; -ENOTCONN; -EAGAIN when the session does not read.
 */
typedef void (*LinkTableFunction)(void *userdata, int result, LinkCells *cells);
int link_client_get_table(LinkClient *link, LinkTable table, uint32_t max_rows, LinkTableFunction function,
			  void *userdata);
/* problem: the session's own words about a result below 0, or NULL. */
typedef void (*LinkDoneFunction)(void *userdata, int result, const char *problem);
/* Ask it to end. why: what its person is told, or NULL. As above. */
int link_client_stop(LinkClient *link, uint64_t grace_usec, const char *why, LinkDoneFunction function,
		     void *userdata);

/* Tell it what it may reach: LINK_REACH, LINK_ALLOW or LINK_REVOKE, complete but for its serial. As above. */
int link_client_tell(LinkClient *link, const LinkMessage *m, LinkDoneFunction function, void *userdata);

/*
 * Ask it to check the jail that runs; probes: to try the ways out as well. Rows come as messages, with a
 * serial that is not 0. One at a time, beside the other questions. function: result is what the session says;
 * -ETIMEDOUT after LINK_CLIENT_SILENCE_USEC without a row, LINK_CLIENT_LOOK_USEC where the session was stopped, or
 * LINK_CLIENT_VERIFY_USEC in all. As above.
 */
#define LINK_CLIENT_SILENCE_USEC (70 * USEC_PER_SEC) /* the session's own patience is a minute */
#define LINK_CLIENT_LOOK_USEC (5 * USEC_PER_SEC)
#define LINK_CLIENT_VERIFY_USEC (600 * USEC_PER_SEC)
int link_client_verify(LinkClient *link, bool probes, LinkDoneFunction function, void *userdata);

/* Read what is waiting, for a session whose process has just ended. */
void link_client_drain(LinkClient *link);
