/* SPDX-License-Identifier: MIT */

/*
 * A user who wants the service for themselves: every method, from many connections, as fast as answers come, and
 * from some without waiting for any.
 *
 *     flood      prints "ready" when the first answer has come, and goes on until its standard input ends
 */

#include <poll.h>
#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "tests/bench/child.h"

#define CONNECTIONS 8u
#define SILENT 2u
/* The bus lets 128 answers of a connection be awaited. */
#define AWAITED_MAX 100u
#define SILENT_ROUND 64u

typedef struct Connection {
	sd_bus *bus;
	unsigned awaited, next;
} Connection;

static unsigned long answers;

static const struct {
	const char *interface, *member, *types;
} methods[] = {
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_EVENTS, "sa{sv}" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_SESSIONS, "" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_GET_POLICY, "" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_ALLOW_IP, "" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_SUBSCRIBE, "" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION, "sa{sv}" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LAUNCH, "saayaayaya{uh}a{sv}" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_VERIFY, "saayaya{sv}" },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_DOCTOR, "s" },
	{ "org.freedesktop.DBus.Properties", "GetAll", "s" },
	{ "org.freedesktop.DBus.Introspectable", "Introspect", "" },
};

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Connection *connection = userdata;

	connection->awaited--;
	answers++;
	return 0;
}

static sd_bus_message *make_call(Connection *connection, unsigned method)
{
	const char *types = methods[method].types;
	sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(connection->bus, &m, CS_BUS_NAME, CS_MANAGER_PATH,
					   methods[method].interface, methods[method].member);
	if (r >= 0 && streq(types, "sa{sv}"))
		r = sd_bus_message_append(m, "sa{sv}", "", 0);
	else if (r >= 0 && streq(types, "s"))
		r = sd_bus_message_append(m, "s", CS_MANAGER_INTERFACE);
	else if (r >= 0 && streq(types, "saayaya{sv}"))
		r = sd_bus_message_append(m, types, "nobody", 0, 0, 0);
	else if (r >= 0 && *types)
		r = sd_bus_message_append(m, types, "nobody", 0, 0, 0, 0, 0);
	if (r < 0)
		die("a message", -r);
	return m;
}

static void send_more(Connection *connection, bool silent)
{
	for (unsigned i = 0; i < (silent ? SILENT_ROUND : AWAITED_MAX); i++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
		int r;

		if (!silent && connection->awaited >= AWAITED_MAX)
			return;
		m = make_call(connection, connection->next);
		connection->next = (connection->next + 1) % ELEMENTSOF(methods);
		if (silent) {
			(void)sd_bus_message_set_expect_reply(m, false);
			r = sd_bus_send(connection->bus, m, NULL);
		} else {
			r = sd_bus_call_async(connection->bus, NULL, m, on_answer, connection, 0);
			connection->awaited += r >= 0;
		}
		/* The library's queue is full: the bus does not take more now. */
		if (r < 0)
			return;
	}
}

int main(void)
{
	Connection connections[CONNECTIONS + SILENT] = { 0 };
	struct pollfd p[CONNECTIONS + SILENT + 1] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	bool ready = false;

	for (size_t i = 0; i < ELEMENTSOF(connections); i++) {
		int r = sd_bus_open_system(&connections[i].bus);

		if (r < 0)
			die("the system bus", -r);
		connections[i].next = (unsigned)(i % ELEMENTSOF(methods));
	}
	for (;;) {
		for (size_t i = 0; i < ELEMENTSOF(connections); i++) {
			sd_bus *bus = connections[i].bus;
			uint64_t waiting = 0;
			int r;

			for (unsigned n = 0; n < AWAITED_MAX && (r = sd_bus_process(bus, NULL)) > 0; n++)
				;
			if (r < 0)
				die("the system bus", -r);
			(void)sd_bus_get_n_queued_write(bus, &waiting);
			if (waiting < SILENT_ROUND)
				send_more(&connections[i], i >= CONNECTIONS);
			p[i + 1] = (struct pollfd){ .fd = sd_bus_get_fd(bus),
						    .events = (short)sd_bus_get_events(bus) };
		}
		if (!ready && answers > 0) {
			ready = true;
			(void)printf("ready\n");
			(void)fflush(stdout);
		}
		/* The silent ones never wait. */
		if (poll(p, ELEMENTSOF(p), 0) < 0 && errno != EINTR)
			die("poll", errno);
		if (p[0].revents)
			return 0;
	}
}
