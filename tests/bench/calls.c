/* SPDX-License-Identifier: MIT */

/*
 * Times ListSessions on the system bus, from the call to the answer, unread.
 *
 *     calls COUNT      prints nanoseconds, a line for each call
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "tests/bench/child.h"

#define DEADLINE_SECONDS 60u

int main(int argc, char **argv)
{
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	int r;

	(void)alarm(DEADLINE_SECONDS);
	r = sd_bus_open_system(&bus);
	if (r < 0)
		die("the system bus", -r);
	for (unsigned long i = 0; i < count; i++) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
		uint64_t begin = now_nsec();

		r = sd_bus_call_method(bus, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
				       CS_MEMBER_LIST_SESSIONS, NULL, &reply, NULL);
		if (r < 0)
			die(CS_MEMBER_LIST_SESSIONS, -r);
		(void)printf("%llu\n", (unsigned long long)(now_nsec() - begin));
	}
	return fflush(stdout) != 0;
}
