/* SPDX-License-Identifier: MIT */
/*
 * DESCRIPTORS. The bus gives the service every descriptor that is attached to a message, at most 16
 * (dbus-daemon(1), max_message_unix_fds), and a message that brings more than there is room for costs us the
 * bus. So of all that the service may open, messages that wait get a quarter, pinned processes of callers a
 * quarter (each user half of that), sessions and launches three eighths (launch.c); the rest is its own.
 */
#include "service/daemon/client.h"

#include <assert.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "service/daemon/auth.h"
#include "service/daemon/call.h"
#include "service/daemon/client-credentials.h"
#include "service/daemon/log.h"
#include "service/daemon/proc.h"

#define BUS_DRIVER "org.freedesktop.DBus"
#define BUS_DRIVER_PATH "/org/freedesktop/DBus"
#define MESSAGE_DESCRIPTORS_MAX 16u

struct ClientHeld {
	sd_bus_message *message;
	size_t weight;
	ClientHeld *next;
};

struct Clients {
	sd_bus *bus;
	sd_bus_slot *filter, *match;
	const ClientEvents *events;
	void *userdata;
	Turns *turns;
	sd_bus_message *passing; /* whose turn has come; it lies in the library's queue */
	Client *first;
	size_t n_held, held_bytes;
};

Client *client_ref(Client *client)
{
	client->n_ref++;
	return client;
}

Client *client_unref(Client *client)
{
	if (!client || --client->n_ref > 0)
		return NULL;
	assert(!client->held);
	sd_bus_slot_unref(client->query);
	close_fd(client->pidfd);
	free(client->groups);
	free(client->refused);
	free(client->name);
	free(client);
	return NULL;
}

static Client *client_find(Clients *clients, const char *name)
{
	for (Client *c = clients->first; name && c; c = c->next)
		if (streq(c->name, name))
			return c;
	return NULL;
}

Client *clients_first(Clients *clients)
{
	return clients->first;
}

bool clients_hold(const Clients *clients)
{
	return clients->n_held > 0;
}

size_t clients_subscribed(const Clients *clients, uid_t uid)
{
	size_t n = 0;

	for (const Client *c = clients->first; c; c = c->next)
		n += c->known && c->subscribed && c->uid == uid;
	return n;
}

Client *client_of(Clients *clients, sd_bus_message *m)
{
	Client *client = m ? client_find(clients, sd_bus_message_get_sender(m)) : NULL;

	return client && client->known ? client : NULL;
}

static sd_bus_message *held_take(Client *client)
{
	ClientHeld *held = client->held;
	sd_bus_message *message = held->message;

	client->held = held->next;
	if (!client->held)
		client->held_last = NULL;
	client->n_held--;
	client->held_bytes -= held->weight;
	client->clients->n_held--;
	client->clients->held_bytes -= held->weight;
	free(held);
	return message;
}

sd_bus_message *client_take_held(Client *client)
{
	return client->held ? held_take(client) : NULL;
}

static size_t descriptors_max(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 1024 : (size_t)MIN_OF(files.rlim_cur, (rlim_t)1 << 20);
}

static bool must_wait(const Client *client)
{
	return client->clients->events->waits(client->clients->userdata, client);
}

/* It goes no further. A filter that answers a call and returns what the library says hands on those without an answer. */
#define REFUSE(m, ...) ((void)sd_bus_reply_method_errorf(m, __VA_ARGS__), 1)

/* Return: 0, or a negative errno: there is no place to remember it. */
static int refuse_later(Client *client, sd_bus_message *m)
{
	uint64_t serial;
	int r;

	if (!client->refused)
		client->refused = malloc(CLIENT_REFUSED_MAX * sizeof(*client->refused));
	if (!client->refused)
		return -ENOMEM;
	if (client->n_refused == CLIENT_REFUSED_MAX)
		return -ENOBUFS;
	r = sd_bus_message_get_cookie(m, &serial);
	if (r >= 0)
		r = turns_wait(client->clients->turns, client->uid, &client->turn);
	if (r >= 0)
		client->refused[client->n_refused++] = (uint32_t)serial;
	return r;
}

static int refuse_full(sd_bus_message *m)
{
	return REFUSE(m, CS_ERROR_LIMITS_EXCEEDED,
		      "Too many of your calls wait for the service; wait for answers before you send more.");
}

/* Answer the last call that was refused so: their order is nobody's matter. */
static void refuse_now(Client *client)
{
	_cleanup_message_ sd_bus_message *call = NULL;

	if (call_stand_in(client->clients->bus, client->name, client->refused[--client->n_refused], &call) >=
	    0)
		(void)refuse_full(call);
}

static int refuse_held(Client *client, sd_bus_message *m)
{
	const bool silent = !sd_bus_message_get_expect_reply(m);

	if (silent && !client->overfull) {
		client->overfull = true;
		log_line("%s sends more than the service can keep; calls that want no answer are lost",
			 client->name);
	}
	if (silent || (client->known && !must_wait(client) && refuse_later(client, m) >= 0))
		return 1;
	if (client->known)
		return refuse_full(m);
	return REFUSE(m, CS_ERROR_LIMITS_EXCEEDED,
		      "Too many messages before the service knew who sends them and what they may see; "
		      "send the first one alone.");
}

/* Refuse the last message of a sender. */
static void held_drop_last(Client *client)
{
	ClientHeld *last = client->held_last, *before = NULL;

	for (ClientHeld *h = client->held; h != last; h = h->next)
		before = h;
	if (before)
		before->next = NULL;
	else
		client->held = NULL;
	client->held_last = before;
	client->n_held--;
	client->held_bytes -= last->weight;
	client->clients->n_held--;
	client->clients->held_bytes -= last->weight;
	(void)refuse_held(client, last->message);
	sd_bus_message_unref(last->message);
	free(last);
}

/*
 * Where all is taken, who has most of it makes room, unless that is the newcomer: one user's hundred
 * connections must not speak for everybody.
 */
static bool held_make_room(Client *client, size_t weight)
{
	const size_t most_held =
		MIN_OF((size_t)CLIENTS_HELD_MAX, descriptors_max() / 4 / MESSAGE_DESCRIPTORS_MAX);
	Clients *clients = client->clients;

	for (;;) {
		bool many = clients->n_held >= most_held;
		bool long_ = clients->held_bytes + weight > CLIENTS_HELD_BYTES_MAX;
		Client *most = NULL;

		if (!many && !long_)
			return true;
		for (Client *c = clients->first; c; c = c->next)
			if (!most || (many ? c->n_held > most->n_held : c->held_bytes > most->held_bytes))
				most = c;
		if (many ? most->n_held <= client->n_held + 1
			 : most->held_bytes <= client->held_bytes + weight)
			return false;
		held_drop_last(most);
	}
}

/* first: before what is held already. */
static int held_add(Client *client, sd_bus_message *m, size_t weight, bool first)
{
	const size_t most = client->known ? CLIENT_HELD_MAX : CLIENT_UNKNOWN_MAX;
	Clients *clients = client->clients;
	ClientHeld *held;

	if (client->n_held >= most || client->held_bytes + weight > CLIENT_HELD_BYTES_MAX ||
	    !held_make_room(client, weight))
		return -ENOBUFS;
	held = malloc(sizeof(*held));
	if (!held)
		return -ENOMEM;
	*held = (ClientHeld){ .message = sd_bus_message_ref(m), .weight = weight };
	if (first)
		held->next = client->held;
	if (first || !client->held)
		client->held = held;
	else
		client->held_last->next = held;
	if (!held->next)
		client->held_last = held;
	client->n_held++;
	client->held_bytes += weight;
	clients->n_held++;
	clients->held_bytes += weight;
	return 0;
}

/* Take client out of the table and drop what it sent; answers go nowhere, but a call is never left open. */
static void client_remove(Client *client, const char *sentence)
{
	Clients *clients = client->clients;

	for (Client **c = &clients->first; *c; c = &(*c)->next)
		if (*c == client) {
			*c = client->next;
			break;
		}
	client->next = NULL;
	client->gone = true;
	client->query = sd_bus_slot_unref(client->query);
	turns_leave(clients->turns, &client->turn);
	while (client->n_refused > 0)
		refuse_now(client);
	while (client->held) {
		_cleanup_message_ sd_bus_message *m = held_take(client);

		(void)sd_bus_reply_method_errorf(m, CS_ERROR_NESTED_CALLER, "%s", sentence);
	}
	clients->events->gone(clients->userdata, client);
	client->clients = NULL;
	client_unref(client);
}

static bool may_pin(const Client *client)
{
	const size_t most = descriptors_max() / 4;
	size_t n = 0, of_user = 0;

	for (const Client *c = client->clients->first; c; c = c->next) {
		n += c->pidfd >= 0;
		of_user += c->pidfd >= 0 && c->uid == client->uid;
	}
	return client->uid == 0 || (n < most && of_user < most / 2);
}

/*
 * Hold on to the process behind a pid that the bus told us: open it, then make sure that what was opened is
 * what connected. A pid that was used again by the same uid before the message came is not told apart.
 */
static void client_pin(Client *client)
{
	ProcStatus status;
	ProcStat stat;

	if (client->problem)
		return;
	if (!may_pin(client)) {
		client->problem = "too many connections of callers are open; close some of yours";
		return;
	}
	client->problem = "the calling process has ended";
	client->pidfd = pidfd_of(client->pid);
	if (client->pidfd < 0) {
		client->pidfd = FD_NONE;
		return;
	}
	if (proc_status(client->pid, &status) < 0 || proc_stat(client->pid, &stat) < 0)
		return;
	if (!pidfd_alive(client->pidfd))
		return;
	if (status.uid != client->uid || proc_ticks_to_usec(stat.start_ticks) > client->arrived_usec) {
		client->problem = "the calling process has ended and its number names another one";
		return;
	}
	client->problem = NULL;
}

/* The next message of a client whose user's turn has come. */
static void client_step(void *userdata)
{
	Client *client = userdata;
	Clients *clients = client->clients;
	int r;

	if (clients->passing)
		return;
	if (client->held && !must_wait(client)) {
		_cleanup_message_ sd_bus_message *m = held_take(client);

		r = sd_bus_enqueue_for_read(clients->bus, m);
		if (r < 0) {
			log_line("cannot continue a message of %s: %s", client->name, strerror(-r));
			client_remove(client, "The service has no memory for the call; try again.");
			return;
		}
		clients->passing = sd_bus_message_ref(m);
	}
	if (client->n_refused > 0)
		refuse_now(client);
	if (client->n_refused == 0 && (!client->held || must_wait(client)))
		turns_leave(clients->turns, &client->turn);
}

static void client_release(Client *client)
{
	int r = 0;

	/* In order, and before whatever comes after them: the library empties this queue before it reads on.
	 */
	while (client->held && r >= 0) {
		_cleanup_message_ sd_bus_message *m = held_take(client);

		r = sd_bus_enqueue_for_read(client->clients->bus, m);
	}
	if (r < 0) {
		log_line("cannot continue messages of %s: %s", client->name, strerror(-r));
		client_remove(client, "The service has no memory for the call; try again.");
	}
}

void clients_release(Clients *clients)
{
	for (Client *c = clients->first, *next; c; c = next) {
		next = c->next;
		if (c->known && c->held && !must_wait(c))
			client_release(c);
	}
}

static int on_credentials(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	Client *client = userdata;
	bool uid = false;
	int r;

	client->query = sd_bus_slot_unref(client->query);
	r = sd_bus_message_is_method_error(reply, NULL) ? -ENXIO
							: client_read_credentials(reply, client, &uid);
	if (r < 0 || !uid) {
		client_remove(client, "The caller has left the bus, or the bus does not know who it is.");
		return 0;
	}
	client_pin(client);
	client->known = true;
	if (!must_wait(client))
		client_release(client);
	return 0;
}

static int client_add(Clients *clients, const char *name, Client **ret)
{
	_cleanup_(client_unrefp) Client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	client->n_ref = 1;
	client->clients = clients;
	client->pidfd = FD_NONE;
	client->uid = (uid_t)-1;
	client->turn = (Turn){ .step = client_step, .userdata = client };
	client->arrived_usec = clock_usec(CLOCK_BOOTTIME);
	client->name = strdup(name);
	if (!client->name)
		return -ENOMEM;
	r = sd_bus_call_method_async(clients->bus, &client->query, BUS_DRIVER, BUS_DRIVER_PATH, BUS_DRIVER,
				     "GetConnectionCredentials", on_credentials, client, "s", name);
	if (r < 0)
		return r;
	client->next = clients->first;
	clients->first = client;
	*ret = TAKE_PTR(client);
	return 0;
}

/* Weighing costs time too, so only who carries arguments or an environment may be heavy. */
static size_t weight_limit(sd_bus_message *m)
{
	static const char *const heavy[] = { CS_MEMBER_LAUNCH, CS_MEMBER_VERIFY, CS_MEMBER_DOCTOR };

	for (size_t i = 0; i < ELEMENTSOF(heavy); i++)
		if (sd_bus_message_is_method_call(m, CS_MANAGER_INTERFACE, heavy[i]))
			return CLIENT_LAUNCH_BYTES_MAX;
	return CLIENT_MESSAGE_BYTES_MAX;
}

/* What everybody may ask and nothing changes by. Of the interfaces that the library serves nothing does. */
static bool only_lists(sd_bus_message *m)
{
	const char *interface = sd_bus_message_get_interface(m), *member = sd_bus_message_get_member(m);

	if (!interface || !(starts_with(interface, CS_BUS_NAME ".")))
		return true;
	return auth_find(interface, member)->lists;
}

/* Is it the message whose turn has come? */
static bool take_passing(Clients *clients, const sd_bus_message *m)
{
	if (m != clients->passing)
		return false;
	clients->passing = sd_bus_message_unref(clients->passing);
	return true;
}

/* passing: its user's turn has come, so its budget was looked at. */
static bool client_may_go(Client *client, sd_bus_message *m, bool passing)
{
	Clients *clients = client->clients;

	if (!client->known || must_wait(client))
		return false;
	if (!passing && (client->held || !turns_allow(clients->turns, client->uid)))
		return false;
	return !clients->events->holds(clients->userdata, client, m);
}

static int client_hold(Client *client, sd_bus_message *m, size_t weight, bool passing)
{
	Clients *clients = client->clients;
	int r;

	r = held_add(client, m, weight, passing);
	if (r >= 0 && client->known && !must_wait(client))
		r = turns_wait(clients->turns, client->uid, &client->turn);
	return r;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Clients *clients = userdata;
	const char *sender = sd_bus_message_get_sender(m);
	bool passing;
	size_t limit;
	ssize_t weight;
	Client *client;
	int r;

	if (!sd_bus_message_is_method_call(m, NULL, NULL) || !sender)
		return 0;
	if (!sd_bus_message_get_expect_reply(m) && only_lists(m))
		return 1;

	client = client_find(clients, sender);
	if (client && client->known)
		turns_begin(clients->turns, client->uid);
	passing = take_passing(clients, m);
	if (client && client->known && !passing && client->n_held >= CLIENT_HELD_MAX)
		return refuse_held(client, m);
	limit = weight_limit(m);
	weight = wire_weigh(m, limit);
	if (weight < 0)
		return REFUSE(m, CS_ERROR_BAD_REQUEST, "The message cannot be read.");
	if ((size_t)weight > limit)
		return REFUSE(m, CS_ERROR_LIMITS_EXCEEDED,
			      "The message is too long. Launch may carry %u bytes of arguments "
			      "and environment in %u strings, other calls %u bytes in all.",
			      CS_REQUEST_BYTES_MAX, CS_REQUEST_STRINGS_MAX, CLIENT_MESSAGE_BYTES_MAX);
	if (client && client_may_go(client, m, passing))
		return 0;

	r = 0;
	if (!client)
		r = client_add(clients, sender, &client);
	if (r >= 0)
		r = client_hold(client, m, (size_t)weight, passing);
	if (r == -ENOBUFS)
		return refuse_held(client, m);
	if (r < 0)
		return REFUSE(m, SD_BUS_ERROR_NO_MEMORY, "The service cannot take the call: %s.",
			      strerror(-r));
	return 1;
}

static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Clients *clients = userdata;
	const char *name, *before, *after;
	Client *client;

	if (sd_bus_message_read(m, "sss", &name, &before, &after) < 0)
		return 0;
	client = after[0] == '\0' ? client_find(clients, name) : NULL;
	if (client)
		client_remove(client, "The caller has left the bus.");
	return 0;
}

int clients_new(sd_bus *bus, Turns *turns, const ClientEvents *events, void *userdata, Clients **ret)
{
	_cleanup_(clients_freep) Clients *clients = calloc(1, sizeof(*clients));
	int r;

	if (!clients)
		return -ENOMEM;
	clients->bus = sd_bus_ref(bus);
	clients->turns = turns;
	clients->events = events;
	clients->userdata = userdata;
	r = sd_bus_add_filter(bus, &clients->filter, on_message, clients);
	if (r < 0)
		return r;
	/* The bus works through our calls in order, so this stands before the first question about a name. */
	r = sd_bus_match_signal_async(bus, &clients->match, BUS_DRIVER, BUS_DRIVER_PATH, BUS_DRIVER,
				      "NameOwnerChanged", on_owner_changed, NULL, clients);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(clients);
	return 0;
}

Clients *clients_free(Clients *clients)
{
	if (!clients)
		return NULL;
	sd_bus_slot_unref(clients->filter);
	sd_bus_slot_unref(clients->match);
	sd_bus_message_unref(clients->passing);
	while (clients->first)
		client_remove(clients->first, "The service is stopping; try again.");
	sd_bus_unref(clients->bus);
	free(clients);
	return NULL;
}
