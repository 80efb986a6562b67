/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Callers: who stands behind each unique name on the bus.
 *
 * The bus is asked once for each name (GetConnectionCredentials, D-Bus specification), with a call of our own
 * that does not block; until it answers, a filter holds what that name sent, bounded, and hands it on in
 * order afterwards. The answer is kept until the name has gone (NameOwnerChanged). Everything that reads a
 * caller reads what is kept: the library's own credentials would block, and leave out UnixGroupIDs.
 *
 * The same filter serves users in turn (turns.h): a message of a user whose budget is used up is held as well, and
 * handed on when their turn comes. What has no room is refused, never dropped without a word; only a call that
 * wants no answer and changes nothing is not carried out at all. Refusals are sent in turn, too: the way out is
 * shared, and whoever gets an answer at once sends the next call at once, while dbus-daemon lets nobody go on who
 * awaits too many.
 */

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/turns.h"

/* Messages of one unknown sender; ours send one or two. */
#define CLIENT_UNKNOWN_MAX 8u
/* Of one that is known, whose user has used up the budget. */
#define CLIENT_HELD_MAX 64u
/* Answers that say so to one sender and have not been sent; dbus-daemon lets a connection await as many. */
#define CLIENT_REFUSED_MAX 128u
#define CLIENT_HELD_BYTES_MAX (6u << 20) /* their weight, see wire_weigh() */
/* Messages of all senders, fewer where the service may open few files: see client.c. */
#define CLIENTS_HELD_MAX 512u
#define CLIENTS_HELD_BYTES_MAX (32u << 20)
/*
 * The weight of one message: of Launch, Verify and Doctor, its bytes and strings and a frame; of any other,
 * what an option or an address may need.
 */
#define CLIENT_LAUNCH_BYTES_MAX \
	(CS_REQUEST_BYTES_MAX + CS_REQUEST_STRINGS_MAX * WIRE_VALUE_WEIGHT + (256u << 10))
#define CLIENT_MESSAGE_BYTES_MAX (64u << 10)

typedef struct Clients Clients;

typedef struct ClientHeld ClientHeld;

typedef struct Client {
	Clients *clients;
	unsigned n_ref;
	char *name; /* unique name */

	bool known; /* uid may be read */
	bool gone;  /* left the bus */
	uid_t uid;

	/* Of the process that connected; problem is NULL when all of it is certain. */
	const char *problem;
	pid_t pid;
	int pidfd;
	gid_t *groups;
	size_t n_groups;

	bool subscribed;
	bool asks_to_see;         /* a message waits for leave to see another's session: sight.c */
	uint64_t wide_until_usec; /* CLOCK_BOOTTIME: it sees every session until then */
	uint64_t arrived_usec;    /* CLOCK_BOOTTIME of the first message */
	sd_bus_slot *query;
	ClientHeld *held, *held_last;
	size_t n_held, held_bytes;
	uint32_t *refused; /* the serials of calls that had no room */
	size_t n_refused;
	Turn turn;     /* something is held or refused for want of budget */
	bool overfull; /* a call without an answer was lost; the log says so once */
	struct Client *next;
} Client;

typedef struct ClientEvents {
	/* A client has left the bus; it is freed with the last reference. */
	void (*gone)(void *userdata, Client *client);
	/* Must what a known client sends be held, until clients_release()? */
	bool (*waits)(void *userdata, const Client *client);
	/* Must this message of a known client be held, and with it what comes behind it? */
	bool (*holds)(void *userdata, Client *client, sd_bus_message *m);
} ClientEvents;

/* Installs filter and match on bus. turns is borrowed. Return: 0 or a negative errno. */
int clients_new(sd_bus *bus, Turns *turns, const ClientEvents *events, void *userdata, Clients **ret);
Clients *clients_free(Clients *clients);
DEFINE_CLEANUP(Clients, clients_free)

/* For walks; NULL at the end. */
Client *clients_first(Clients *clients);
/* Hand on what is held of those who need not wait any longer. */
void clients_release(Clients *clients);
/* The first message that is held of client, to be freed; NULL for none. */
sd_bus_message *client_take_held(Client *client);
/* Does a message of anybody wait? */
bool clients_hold(const Clients *clients);
/* How many of this user have subscribed. */
size_t clients_subscribed(const Clients *clients, uid_t uid);
/* The known client that sent m, or NULL. m may be NULL. */
Client *client_of(Clients *clients, sd_bus_message *m);

Client *client_ref(Client *client);
Client *client_unref(Client *client);
DEFINE_CLEANUP(Client, client_unref)
