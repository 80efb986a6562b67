/* SPDX-License-Identifier: MIT */

/*
 * In the place of service and session for launch-test: answers Launch on the test's own bus and runs the real
 * init, without a jail, with the caller's descriptors. What it does is chosen by the first argument of the
 * launch:
 *
 *   !error NAME SENTENCE   an error reply
 *   !hang                  no reply; writes "gone" to descriptor 9 when the caller leaves the bus
 *   !variable NAME         an error reply that is the caller's variable NAME, or "unset"
 *   !warn SENTENCE SCRIPT  a warning before the start
 *   !vanish SCRIPT         the lifeline closes as soon as the agent has stopped itself
 *   SCRIPT                 /bin/sh -c SCRIPT
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "dbus/names.h"
#include "dbus/wire.h"
#include "tests/unit/jail-fixture.h"
#include "service/link/lifeline.h"
#include "service/link/link.h"

#define TELL_FD 9

static void check(int r, const char *what)
{
	if (r < 0) {
		fprintf(stderr, "launch-stand-in: %s: %s\n", what, strerror(-r));
		exit(1);
	}
}

typedef struct Session {
	Jail jail;
	int lifeline_fd;
	bool vanish;
	char *warning;
	sd_bus_message *call;
	sd_event_source *reports, *lifeline;
} Session;

static void tell(Session *session, LifelineKind kind, int number, char *text)
{
	const LifelineMessage message = { .kind = kind, .number = number, .text = text };
	uint8_t *data;
	size_t size;

	check(lifeline_encode(&message, &data, &size), "lifeline");
	(void)packet_send(session->lifeline_fd, data, size);
	free(data);
}

/* init may have ended by now. */
static void order(Session *session, ReportKind kind, int number)
{
	const Report report = { .kind = kind, .number = number };
	uint8_t data[REPORT_SIZE];

	report_encode(&report, data);
	(void)packet_send(session->jail.report_fd, data, sizeof(data));
}

static void session_free(Session *session)
{
	sd_event_source_disable_unref(session->reports);
	sd_event_source_disable_unref(session->lifeline);
	session->jail.pid = 0;
	jail_end(&session->jail);
	close_fd(session->lifeline_fd);
	sd_bus_message_unref(session->call);
	free(session->warning);
	free(session);
}

static void answer(Session *session)
{
	int ends[2];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0, "socketpair");
	session->lifeline_fd = ends[0];
	if (session->warning)
		tell(session, LIFELINE_WARNING, 0, session->warning);
	tell(session, LIFELINE_STARTED, 0, NULL);
	check(sd_bus_reply_method_return(session->call, "soh", "aaaaaaaaaaaaaaaa", CS_SESSION_ROOT "/a",
					 ends[1]),
	      "reply");
	close_fd(ends[1]);
}

static int on_lifeline(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_(lifeline_message_done) LifelineMessage message = { .kind = LIFELINE_KIND_MAX };
	uint8_t data[LIFELINE_PACKET_MAX];
	Session *session = userdata;
	ssize_t n = packet_receive(fd, data, sizeof(data));

	if (n <= 0) {
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
		order(session, REPORT_HANGUP, 0);
		return 0;
	}
	check(lifeline_decode(data, (size_t)n, &message), "launch's message");
	if (message.kind == LIFELINE_SIGNAL)
		order(session, REPORT_SIGNAL, message.number);
	else if (message.kind == LIFELINE_KEY)
		order(session, REPORT_KEY, message.number);
	else if (message.kind == LIFELINE_RESUME)
		order(session, REPORT_RESUME, 0);
	else if (message.kind == LIFELINE_RESUME_BEHIND)
		order(session, REPORT_RESUME_BEHIND, 0);
	return 0;
}

static int on_report(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Session *session = userdata;
	uint8_t data[REPORT_SIZE];
	ssize_t n = packet_receive(fd, data, sizeof(data));
	Report report;
	int status;

	if (n <= 0) {
		session_free(session);
		return 0;
	}
	check(report_decode(data, (size_t)n, &report), "init's report");

	switch (report.kind) {
	case REPORT_READY: /* REPORT_GO is on its way already */
		break;
	case REPORT_EXECUTED:
		answer(session);
		check(sd_event_add_io(sd_event_source_get_event(source), &session->lifeline,
				      session->lifeline_fd, EPOLLIN, on_lifeline, session),
		      "lifeline");
		break;
	case REPORT_STOPPED:
		if (session->vanish) {
			(void)kill(session->jail.pid, SIGKILL);
			(void)waitpid(session->jail.pid, &status, 0);
			session_free(session);
		} else
			tell(session, LIFELINE_STOPPED, report.number, NULL);
		break;
	case REPORT_CONTINUED:
		tell(session, LIFELINE_CONTINUED, 0, NULL);
		break;
	case REPORT_EXITED:
		(void)waitpid(session->jail.pid, &status, 0);
		tell(session, LIFELINE_EXITED, report.number, NULL);
		session_free(session);
		break;
	default:
		check(-EBADMSG, "init's report");
	}
	return 0;
}

static Session *session_start(sd_bus_message *call, char *const *argv, const int fds[static 3],
			      bool background)
{
	Session *session = calloc(1, sizeof(*session));
	uint32_t terminals = 0, pipes = 0;
	int slave_fd = FD_NONE;

	session->lifeline_fd = FD_NONE;
	if (streq(argv[0], "!warn")) {
		session->warning = strdup(argv[1]);
		argv += 2;
	} else if (streq(argv[0], "!vanish")) {
		session->vanish = true;
		argv++;
	}
	for (int i = 0; i < 3; i++) {
		if (fds[i] >= 0 && isatty(fds[i])) {
			terminals |= 1u << i;
			slave_fd = fds[i];
		} else if (fds[i] >= 0)
			pipes |= 1u << i;
	}
	jail_prepare(&session->jail, argv[0], 0, pipes);
	for (int i = 0; i < 3; i++)
		if (pipes & (1u << i))
			session->jail.given[i] = fds[i];
	session->jail.orders.terminals = terminals;
	session->jail.orders.background = background;
	session->jail.slave_fd = slave_fd < 0 ? FD_NONE : fcntl(slave_fd, F_DUPFD_CLOEXEC, 3);
	session->call = sd_bus_message_ref(call);
	jail_start(&session->jail);
	return session;
}

static int on_leaver(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	(void)!write(TELL_FD, "gone", 4);
	return 0;
}

static int read_descriptors(sd_bus_message *m, int fds[static 3])
{
	uint32_t key;
	int fd, r;

	r = sd_bus_message_enter_container(m, 'a', "{uh}");
	while (r >= 0 && (r = sd_bus_message_read(m, "{uh}", &key, &fd)) > 0)
		fds[key] = fd;
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Of the options, the one that there is. */
static int read_options(sd_bus_message *m, bool *ret_background)
{
	const char *key;
	int value, r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_read(m, "{sv}", &key, "b", &value)) > 0)
		*ret_background = streq(key, CS_OPTION_BACKGROUND) && value;
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static const char *variable(char *const *environment, const char *name)
{
	for (size_t i = 0; environment[i]; i++) {
		const char *value = starts_with(environment[i], name);

		if (value && *value == '=')
			return value + 1;
	}
	return "unset";
}

static int on_launch(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(strings_freep) char **argv = NULL, **environment = NULL;
	_cleanup_free_ char *cwd = NULL;
	size_t budget = CS_REQUEST_BYTES_MAX;
	int fds[3] = { FD_NONE, FD_NONE, FD_NONE };
	sd_event *event = userdata;
	const char *agent;
	bool background = false;
	Session *session;

	check(sd_bus_message_read(m, "s", &agent), "agent");
	check(wire_read_vector(m, CS_REQUEST_STRINGS_MAX, &budget, &argv), "argv");
	check(wire_read_vector(m, CS_REQUEST_STRINGS_MAX, &budget, &environment), "environment");
	check(wire_read_bytes(m, &budget, &cwd), "cwd");
	check(read_descriptors(m, fds), "fds");
	check(read_options(m, &background), "options");

	if (streq(argv[0], "!error"))
		return sd_bus_error_set(reterr, argv[1], argv[2]);
	if (streq(argv[0], "!variable"))
		return sd_bus_error_set(reterr, CS_ERROR_BAD_REQUEST, variable(environment, argv[1]));
	if (streq(argv[0], "!hang")) {
		char match[256];

		snprintf(match, sizeof(match), "type='signal',member='NameOwnerChanged',arg0='%s',arg2=''",
			 sd_bus_message_get_sender(m));
		check(sd_bus_add_match(sd_bus_message_get_bus(m), NULL, match, on_leaver, NULL), "match");
		sd_bus_message_ref(m);
		(void)!write(TELL_FD, "held", 4);
		return 1;
	}
	session = session_start(m, argv, fds, background);
	check(sd_event_add_io(event, &session->reports, session->jail.report_fd, EPOLLIN, on_report, session),
	      "reports");
	return 1;
}

static const sd_bus_vtable VTABLE[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD(CS_MEMBER_LAUNCH, "saayaayaya{uh}a{sv}", "soh", on_launch, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

int main(void)
{
	sd_event *event = NULL;
	sd_bus *bus = NULL;

	check(fcntl(TELL_FD, F_SETFD, FD_CLOEXEC), "descriptor 9");
	check(sd_event_default(&event), "loop");
	check(sd_bus_open_system(&bus), "bus");
	check(sd_bus_attach_event(bus, event, 0), "bus");
	check(sd_bus_add_object_vtable(bus, NULL, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, VTABLE, event),
	      "object");
	check(sd_bus_request_name(bus, CS_BUS_NAME, 0), "name");
	(void)!write(TELL_FD, "up", 2);
	check(sd_event_loop(event), "loop");
	return 0;
}
