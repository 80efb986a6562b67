/* SPDX-License-Identifier: MIT */
/* Subscribes, says "ready", and prints each signal of the service as one line, until its standard input ends.
 */
#include <inttypes.h>
#include <poll.h>

#include "dbus/names.h"
#include "dbus/wire.h"

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	const char *first = "", *member = sd_bus_message_get_member(m) ?: "",
		   *path = sd_bus_message_get_path(m) ?: "";
	char type = 0;
	const char *contents = NULL;
	int32_t status = 0;

	if (sd_bus_message_peek_type(m, &type, &contents) > 0 && type == 's')
		(void)sd_bus_message_read(m, "s", &first);
	if (streq(member, CS_SIGNAL_STATE_CHANGED))
		(void)sd_bus_message_read(m, "i", &status);
	printf("%s %s %s %d\n", member, path, first ?: "", status);
	if (streq(member, CS_SIGNAL_DENIED)) {
		const char *protocol = "", *address = "", *program = "", *reason = "";
		uint64_t usec = 0, count = 0;
		uint16_t port = 0;

		(void)sd_bus_message_read(m, "(tssqsst)", &usec, &protocol, &address, &port, &program,
					  &reason, &count);
		printf("denied %s %s %u %s %" PRIu64 "\n", protocol, address, port, program, count);
	}
	if (streq(member, "PropertiesChanged")) {
		const char *name;

		if (sd_bus_message_enter_container(m, 'a', "{sv}") < 0)
			return 0;
		while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
			if (sd_bus_message_read(m, "s", &name) < 0)
				return 0;
			printf("changed %s %s\n", path, name);
			(void)sd_bus_message_skip(m, "v");
			(void)sd_bus_message_exit_container(m);
		}
	}
	return 0;
}

static unsigned n_answers;

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	const sd_bus_error *error = sd_bus_message_get_error(m);

	printf("%zu %s\n", (size_t)userdata, error ? error->name : "ok");
	n_answers++;
	return 0;
}

/* Many calls at once, as the first that this connection sends. */
static int burst(unsigned n)
{
	sd_bus *bus = NULL;
	int r;

	if (sd_bus_open_system(&bus) < 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (sd_bus_call_method_async(bus, NULL, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					     i % 2 ? CS_MEMBER_LIST_SESSIONS : CS_MEMBER_SUBSCRIBE, on_answer,
					     (void *)i, "") < 0)
			return 1;
	while (n_answers < n) {
		while ((r = sd_bus_process(bus, NULL)) > 0)
			;
		if (r < 0 || (n_answers < n && sd_bus_wait(bus, UINT64_MAX) < 0))
			return 1;
	}
	sd_bus_flush_close_unref(bus);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus *bus = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && streq(argv[1], "burst"))
		return burst((unsigned)atoi(argv[2]));
	if (sd_bus_open_system(&bus) < 0 ||
	    sd_bus_match_signal(bus, NULL, CS_BUS_NAME, NULL, NULL, NULL, on_signal, NULL) < 0)
		return 1;
	if (argc < 2 && sd_bus_call_method(bus, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					   CS_MEMBER_SUBSCRIBE, &error, NULL, "") < 0) {
		printf("error %s\n", error.message);
		return 1;
	}
	printf("ready\n");
	for (;;) {
		struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				      { .fd = sd_bus_get_fd(bus), .events = POLLIN } };
		int r;

		while ((r = sd_bus_process(bus, NULL)) > 0)
			;
		if (r < 0 || poll(p, ELEMENTSOF(p), -1) < 0)
			return 0;
		/* What has come before the end is told. */
		if (p[0].revents) {
			while (sd_bus_process(bus, NULL) > 0)
				;
			return 0;
		}
	}
}
