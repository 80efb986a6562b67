/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The link: service ⇄ session, over the SOCK_SEQPACKET socket CS_SESSIONS_DIR/ID/link. One message a packet,
 * at most LINK_PACKET_MAX bytes, nothing but plain values in it (no descriptors). The session belongs to its
 * user: each decoder treats the packet as hostile input. The encoder never makes what the decoder refuses.
 *
 * The service connects (SO_PEERCRED then names who called listen(2) (unix(7)): the session); the session
 * sends LINK_HELLO at once and LINK_STATE whenever its state changes; everything else answers a question and
 * carries the question's serial.
 */

#include "dbus/base.h"

/*
 * Of the packets below; another number with each change of one of them. In every version the same: HELLO, as
 * far as it is listed here (more may follow), STOP, DONE and EXITED. So a service can show and stop what an
 * older one has started, or a newer one before it was taken back; nothing else is sent to it.
 */
#define LINK_VERSION 17u
#define LINK_PACKET_MAX (64u * 1024)
#define LINK_WAITING_MAX 16
#define LINK_ANSWER_USEC (2 * USEC_PER_SEC)
#define LINK_TEXT_MAX 8192u
#define LINK_COLUMNS_MAX 8u
#define LINK_ROWS_MAX 4096u      /* of a whole table, over all its pages */
#define LINK_DENIED_ROWS_MAX 32u /* of one LINK_DENIED */
#define LINK_CHECK_ROWS_MAX 256u /* of one LINK_ROWS */
#define LINK_ADDRESSES_MAX 1024u /* of one LINK_REACH; no configuration has more */
#define LINK_ADDRESS_MAX 18u     /* "255.255.255.255/32" */

/* In the order of a session's life; named as the bus property State. */
typedef enum SessionState {
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_STOPPED,
	SESSION_OFFLINE,
	SESSION_ENDING,
	SESSION_STATE_MAX,
	SESSION_STATE_INVALID = -EINVAL,
} SessionState;

typedef enum LinkKind {
	LINK_HELLO,   /* session: version, state, leader, jailed, denied */
	LINK_STATE,   /* session: state, leader, jailed, exit_status, denied */
	LINK_STARTED, /* session, once: the agent was executed; Launch may reply */
	LINK_FAILED,  /* session, once, instead of STARTED: error (a CS_ERROR_ name), text (cause and fix) */
	LINK_EXITED,  /* session, once: exit_status as wait(2) encodes it; text: why the session ended the
			 agent, or what is to be said of its end, or nothing; denied */
	LINK_STOP,    /* service: serial, usec of grace; hang up, then kill; text: what the person is told, or
			 nothing */
	LINK_TABLE_GET, /* service: serial, table, first row wanted */
	LINK_TABLE,     /* session: serial, table, first, total, rows */
	LINK_DONE,      /* session: serial, result 0 or a negative errno, text: cause and fix, or nothing */
	LINK_REACH,  /* service: serial, addresses: what the configuration opens, all of it. The session makes
			   it so; LINK_DONE 0: all but what text says could not be opened */
	LINK_ALLOW,  /* service: serial, text (an address of this session's own), usec from now (0: until the
			   session ends) */
	LINK_REVOKE, /* service: serial, text (an address of this session's own) */
	LINK_DENIED, /* session: rows of LINK_TABLE_DENIED that are new or have grown; denied */
	LINK_VERIFY, /* service: serial, probes; check the jail that runs. LINK_ROWS follow, at last
			   LINK_DONE: 0, LINK_CHECK_FAILED (rows say which), or another negative errno: the
			   checks ended before they were done, text says why */
	LINK_ROWS,   /* session: serial of LINK_VERIFY, or 0 in a session that was made to check; rows of
			   LINK_TABLE_CHECKS, in the order in which they came */
	LINK_KIND_MAX,
} LinkKind;

#define LINK_CHECK_FAILED (-EBADE)

typedef enum LinkTable {
	LINK_TABLE_WARNINGS,    /* text */
	LINK_TABLE_POSTURE,     /* layer, strength, detail */
	LINK_TABLE_ROUTES,      /* destination, verdict, device, reason, state */
	LINK_TABLE_EXPOSURE,    /* path, kind, mode, origin, reason */
	LINK_TABLE_ENVIRONMENT, /* name, origin */
	LINK_TABLE_PORTS,       /* port, direction, state, origin */
	LINK_TABLE_DENIED,      /* last time (usec since 1970), protocol, address, port, program, reason,
				   count; numbers in decimal */
	LINK_TABLE_ALLOWED,     /* address, comment, end (usec since 1970; 0: with the session), configured
				   (0 or 1) */
	LINK_TABLE_CHECKS,      /* id, status (rows.h), title, detail, fix; of LINK_ROWS, never asked for */
	LINK_TABLE_MAX,
} LinkTable;

/* Columns of each table; every row has exactly so many. */
size_t link_table_columns(LinkTable table);

typedef struct LinkRow {
	char *columns[LINK_COLUMNS_MAX]; /* bytes without NUL */
} LinkRow;

typedef struct LinkMessage {
	LinkKind kind;
	uint32_t serial;
	uint32_t version;
	SessionState state;
	uint32_t leader; /* pid of the jail's init in the service's pid namespace, 0 before it runs */
	bool jailed;
	int32_t exit_status;
	int32_t result;
	uint64_t usec;
	uint64_t denied; /* attempts in all */
	bool probes;     /* try the ways out as well */
	char *error, *text;
	char **addresses; /* NULL-terminated, or NULL for none */
	LinkTable table;
	uint32_t first, total, n_rows;
	LinkRow *rows;
} LinkMessage;

#define LINK_MESSAGE_INIT ((LinkMessage){ .kind = LINK_KIND_MAX })

void link_message_done(LinkMessage *m);

/*
 * Write m as one packet. For LINK_TABLE as many rows as fit go in, and *ret_rows (may be NULL) says how many.
 * Return: 0; -EMSGSIZE when even one row does not fit; -ENOMEM; -EINVAL for a message that the decoder would
 * refuse. The buffer is the caller's to free.
 */
int link_encode(const LinkMessage *m, uint8_t **ret_data, size_t *ret_size, uint32_t *ret_rows);
/*
 * Return: 0, -EBADMSG for anything that link_encode() cannot have written, -ENOMEM. Of a HELLO of another
 * version what cannot be read is left as it is in a session that runs.
 */
int link_decode(const void *data, size_t size, LinkMessage *ret);

/* What stands before the rows of a packet, and in others before the rest. What a kind does not have is 0. */
typedef struct LinkHead {
	LinkKind kind;
	uint32_t serial;
	uint64_t denied;
	uint32_t total, n_rows;
} LinkHead;

/* Takes no memory. Return: 0, or -EBADMSG; a head that can be read says nothing of the rest. */
int link_decode_head(const void *data, size_t size, LinkHead *ret);

const char *session_state_to_string(SessionState state);

/*
 * One packet over a SOCK_SEQPACKET socket, shared by all three codecs. Never blocks (MSG_DONTWAIT).
 * packet_send: 0 or -EAGAIN, -EPIPE, ...
 * packet_receive: the size, 0 at the end of the stream, -EMSGSIZE for one above max, -EAGAIN. Descriptors
 * that a peer attached are closed, never kept.
 */
int packet_send(int fd, const void *data, size_t size);
ssize_t packet_receive(int fd, void *buffer, size_t max);
