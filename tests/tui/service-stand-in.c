/* SPDX-License-Identifier: MIT */
/*
 * Stands in for the service, with as many sessions and refused attempts as a test likes, each string of which
 * is as bad as a stranger can make it: service-stand-in SESSIONS DENIED-EACH. Root's, on the system bus.
 *
 * From standard input, a line each: "denied N" signals N attempts that are new, "gone N" ends the first N
 * sessions, "policy" says that the policy has changed. What it was asked to change it writes to standard
 * output.
 */
#include <inttypes.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "dbus/client.h"
#include "dbus/names.h"
#include "dbus/wire.h"

#define NEED(expression)                                                                     \
	do {                                                                                 \
		int _r = (expression);                                                       \
		if (_r < 0) {                                                                \
			fprintf(stderr, "stand-in, line %d: %s\n", __LINE__, strerror(-_r)); \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

#define HOSTILE                                \
	"\033]0;owned\007\033[31m\r\b\xc2\x9b" \
	"2J\xe2\x80\xae"                       \
	"e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xe6\x97\xa5"

typedef struct Service {
	sd_bus *bus;
	unsigned n_sessions, n_gone, n_denied, n_more;
	char subscriber[256];
} Service;

static void id_of(unsigned n, char ret[static CS_ID_LENGTH + 1])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

	for (unsigned i = 0; i < CS_ID_LENGTH; i++)
		ret[i] = digits[i < 4 ? n >> (15 - i * 5) & 31 : i];
	ret[CS_ID_LENGTH] = '\0';
}

static void path_of(unsigned n, char ret[static 64])
{
	char id[CS_ID_LENGTH + 1];

	id_of(n, id);
	(void)snprintf(ret, 64, "%s/%s", CS_SESSION_ROOT, id);
}

/* The second one's workspace is as long as a path can be, and not UTF-8. */
static void workspace_of(unsigned n, char ret[static CS_PATH_BYTES_MAX])
{
	(void)snprintf(ret, CS_PATH_BYTES_MAX, "/home/alice/project-%u", n);
	if (n == 0)
		(void)snprintf(ret, CS_PATH_BYTES_MAX, "/home/alice/" HOSTILE "/\xff\xfe");
	if (n == 1) {
		memset(ret, 'w', CS_PATH_BYTES_MAX - 1);
		for (unsigned i = 0; i < CS_PATH_BYTES_MAX; i += 100)
			ret[i] = i % 200 ? '\xff' : '/';
		ret[CS_PATH_BYTES_MAX - 1] = '\0';
	}
}

/* In the types of the bus, which wants UTF-8: as a session that is bent can make it. */
static const char hostile_text[] = HOSTILE;

static uint64_t started(unsigned n)
{
	return UINT64_C(1769850000000000) + n * USEC_PER_SEC;
}

static void append_session(sd_bus_message *m, unsigned n)
{
	char id[CS_ID_LENGTH + 1], path[64], workspace[CS_PATH_BYTES_MAX];

	id_of(n, id);
	path_of(n, path);
	workspace_of(n, workspace);
	NEED(sd_bus_message_open_container(m, 'r', "sossuayts"));
	NEED(sd_bus_message_append(m, "sossu", id, path, n % 3 ? "claude" : "codex", "alice", 4001u));
	NEED(wire_append_bytes(m, workspace));
	NEED(sd_bus_message_append(m, "ts", started(n), n % 7 == 5 ? "stopped" : "running"));
	NEED(sd_bus_message_close_container(m));
}

static void append_attempt(sd_bus_message *m, unsigned n, uint64_t usec)
{
	char address[32], program[64];

	(void)snprintf(address, sizeof(address), "10.%u.%u.%u", n / 62500 % 250, n / 250 % 250, n % 250 + 1);
	(void)snprintf(program, sizeof(program), "%s (%u)", n % 100 == 3 ? hostile_text : "curl", n % 1000);
	NEED(sd_bus_message_append(m, "(tssqsst)", usec, n % 5 ? "tcp" : "udp", address, 80 + n % 7, program,
				   "private network (RFC 1918)", (uint64_t)n * n % 100000 + 1));
}

static void append_properties(sd_bus_message *m, unsigned n, uint64_t denied)
{
	char id[CS_ID_LENGTH + 1], workspace[CS_PATH_BYTES_MAX];

	id_of(n, id);
	workspace_of(n, workspace);
	NEED(sd_bus_message_open_container(m, 'a', "{sv}"));
	NEED(sd_bus_message_append(
		m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", SESSION_PROPERTY_ID, "s", id,
		SESSION_PROPERTY_AGENT, "s", n % 3 ? "claude" : "codex", SESSION_PROPERTY_USER, "s", "alice",
		SESSION_PROPERTY_UID, "u", 4001u, SESSION_PROPERTY_STARTED, "t", started(n),
		SESSION_PROPERTY_STATE, "s", n % 7 == 5 ? "stopped" : "running", SESSION_PROPERTY_LEADER, "u",
		100 + n, SESSION_PROPERTY_JAILED, "b", true, SESSION_PROPERTY_WARNINGS, "as", 1, hostile_text,
		SESSION_PROPERTY_POSTURE, "a(sss)", 1, "network", "jailed", hostile_text,
		SESSION_PROPERTY_EXIT_STATUS, "i", -1, SESSION_PROPERTY_DENIED, "t", denied));
	NEED(sd_bus_message_open_container(m, 'e', "sv"));
	NEED(sd_bus_message_append(m, "s", SESSION_PROPERTY_WORKSPACE));
	NEED(sd_bus_message_open_container(m, 'v', "ay"));
	NEED(wire_append_bytes(m, workspace));
	NEED(sd_bus_message_close_container(m));
	NEED(sd_bus_message_close_container(m));
	NEED(sd_bus_message_close_container(m));
}

static void append_exposure(sd_bus_message *m, unsigned n)
{
	static const struct {
		const char *path, *kind, *mode, *origin, *reason;
	} rows[] = { { "/", "bind", "ro", "system", "programs and libraries" },
		     { "/home", "tmpfs", "private", "homes", "hides keys" },
		     { HOSTILE, "bind", "rw", HOSTILE, HOSTILE } };

	NEED(sd_bus_message_open_container(m, 'a', "(ayssss)"));
	for (unsigned i = 0; i < ELEMENTSOF(rows) - (n > 0); i++) {
		NEED(sd_bus_message_open_container(m, 'r', "ayssss"));
		NEED(wire_append_bytes(m, rows[i].path));
		NEED(sd_bus_message_append(m, "ssss", rows[i].kind, rows[i].mode, rows[i].origin,
					   rows[i].reason));
		NEED(sd_bus_message_close_container(m));
	}
	NEED(sd_bus_message_close_container(m));
}

/* Return: the number of the session at path, or SIZE_MAX. */
static size_t number_of(const Service *service, const char *path)
{
	for (unsigned n = 0; n < service->n_sessions; n++) {
		char own[64];

		path_of(n, own);
		if (streq(own, path))
			return n;
	}
	return SIZE_MAX;
}

static bool is_member(sd_bus_message *m, const char *member)
{
	return streq(sd_bus_message_get_member(m), member);
}

static void answer_manager(Service *service, sd_bus_message *m, sd_bus_message *reply)
{
	if (is_member(m, CS_MEMBER_SUBSCRIBE)) {
		(void)snprintf(service->subscriber, sizeof(service->subscriber), "%s",
			       sd_bus_message_get_sender(m));
	} else if (is_member(m, CS_MEMBER_LIST_SESSIONS)) {
		NEED(sd_bus_message_open_container(reply, 'a', "(sossuayts)"));
		for (unsigned n = service->n_gone; n < service->n_sessions; n++)
			append_session(reply, n);
		NEED(sd_bus_message_close_container(reply));
	} else if (is_member(m, CS_MEMBER_LIST_ALLOW_IP)) {
		NEED(sd_bus_message_append(reply, "a(sss)", 2, "10.9.0.1", hostile_text, CS_CONFIG_PATH ":1",
					   "10.9.0.2", "router", CS_CONFIG_PATH ":2"));
	} else if (is_member(m, CS_MEMBER_GET_POLICY)) {
		NEED(sd_bus_message_append(reply, "a(sss)", 2, "egress-jail", "1", "default", "allow-write",
					   hostile_text, CS_CONFIG_PATH ":3"));
	} else if (is_member(m, CS_MEMBER_ADD_ALLOW_IP) || is_member(m, CS_MEMBER_REMOVE_ALLOW_IP)) {
		const char *address;

		NEED(sd_bus_message_read(m, "s", &address));
		printf("%s %s\n", sd_bus_message_get_member(m), address);
		NEED(sd_bus_message_append(reply, "as", 0));
	} else if (is_member(m, "GetAll")) {
		NEED(sd_bus_message_append(reply, "a{sv}", 3, CS_PROPERTY_VERSION, "s", "0", "Sessions", "u",
					   service->n_sessions, CS_PROPERTY_CONFIG_ERROR, "s", ""));
	}
}

static void answer_session(Service *service, sd_bus_message *m, sd_bus_message *reply, unsigned n)
{
	if (is_member(m, "GetAll")) {
		append_properties(reply, n, service->n_denied);
	} else if (is_member(m, CS_MEMBER_LIST_DENIED)) {
		NEED(sd_bus_message_open_container(reply, 'a', "(tssqsst)"));
		for (unsigned i = 0; i < service->n_denied; i++)
			append_attempt(reply, n * service->n_denied + i, started(n) + i);
		NEED(sd_bus_message_close_container(reply));
	} else if (is_member(m, CS_MEMBER_LIST_EXPOSURE)) {
		append_exposure(reply, n);
	} else if (is_member(m, CS_MEMBER_LIST_ENVIRONMENT)) {
		NEED(sd_bus_message_append(reply, "a(ss)", 2, "HOME", "account", hostile_text, "caller"));
	} else if (is_member(m, CS_MEMBER_LIST_ROUTES)) {
		NEED(sd_bus_message_append(reply, "a(sssss)", 3, "10.0.0.0/8", "deny", "deny0",
					   "private network (RFC 1918)", "in force", hostile_text, "allow",
					   hostile_text, hostile_text, hostile_text, "default", "internet",
					   "jail0", "the internet", "in force"));
	} else if (is_member(m, CS_MEMBER_LIST_PORTS)) {
		NEED(sd_bus_message_append(reply, "a(qsss)", 1, 8080, "local", "listening", hostile_text));
	} else {
		printf("%s\n", sd_bus_message_get_member(m));
	}
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	Service *service = userdata;
	size_t n;

	if (!sd_bus_message_is_method_call(m, NULL, NULL) ||
	    !starts_with(sd_bus_message_get_path(m) ?: "", CS_MANAGER_PATH))
		return 0;
	NEED(sd_bus_message_new_method_return(m, &reply));
	n = number_of(service, sd_bus_message_get_path(m));
	if (n < service->n_sessions)
		answer_session(service, m, reply, (unsigned)n);
	else
		answer_manager(service, m, reply);
	fflush(stdout);
	NEED(sd_bus_send(service->bus, reply, NULL));
	return 1;
}

static void send_signal(Service *service, const char *path, const char *interface, const char *member,
			sd_bus_message **ret)
{
	NEED(sd_bus_message_new_signal(service->bus, ret, path, interface, member));
	NEED(sd_bus_message_set_destination(*ret, service->subscriber));
}

static void say_denied(Service *service, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
		unsigned n = service->n_gone + i % (service->n_sessions - service->n_gone);
		char path[64];

		path_of(n, path);
		send_signal(service, path, CS_SESSION_INTERFACE, CS_SIGNAL_DENIED, &m);
		append_attempt(m, 60000 + service->n_more, UINT64_C(1869850000000000) + service->n_more);
		service->n_more++;
		NEED(sd_bus_send(service->bus, m, NULL));
	}
}

static void say_gone(Service *service, unsigned count)
{
	while (count-- > 0 && service->n_gone < service->n_sessions) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
		char id[CS_ID_LENGTH + 1], path[64];

		id_of(service->n_gone, id);
		path_of(service->n_gone++, path);
		send_signal(service, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_SESSION_REMOVED, &m);
		NEED(sd_bus_message_append(m, "so", id, path));
		NEED(sd_bus_send(service->bus, m, NULL));
	}
}

static int on_line(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Service *service = userdata;
	char line[256];
	unsigned count;

	if (!fgets(line, sizeof(line), stdin))
		return sd_event_exit(sd_event_source_get_event(source), 0);
	if (sscanf(line, "denied %u", &count) == 1)
		say_denied(service, count);
	else if (sscanf(line, "gone %u", &count) == 1)
		say_gone(service, count);
	else if (streq(line, "policy\n")) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

		send_signal(service, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_POLICY_CHANGED, &m);
		NEED(sd_bus_send(service->bus, m, NULL));
	}
	return 0;
}

int main(int argc, char **argv)
{
	Service service = { .n_sessions = argc > 1 ? (unsigned)atoi(argv[1]) : 1,
			    .n_denied = argc > 2 ? (unsigned)atoi(argv[2]) : 1 };
	sd_event *event = NULL;

	setvbuf(stdin, NULL, _IONBF, 0);
	NEED(sd_event_new(&event));
	NEED(client_open(&service.bus, NULL));
	NEED(sd_bus_add_filter(service.bus, NULL, on_call, &service));
	NEED(sd_bus_attach_event(service.bus, event, 0));
	NEED(sd_bus_request_name(service.bus, CS_BUS_NAME, SD_BUS_NAME_REPLACE_EXISTING));
	NEED(sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_line, &service));
	puts("ready");
	fflush(stdout);
	NEED(sd_event_loop(event));
	sd_bus_flush_close_unref(service.bus);
	sd_event_unref(event);
	return 0;
}
