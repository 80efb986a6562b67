/* SPDX-License-Identifier: MIT */
#include "service/inside/checks.h"

/* Numbered as users know them; the titles say what holds when a row passes. */
const Check checks_table[] = {
	{ "01", "it is a jail, and says so", check_marker },
	{ "02", "no new privileges, and the filter refuses what it has to", check_privileges },
	{ "03", "the home holds only what the profile names", check_home },
	{ "04", "the variables are those of the plan, without secrets", check_secrets },
	{ "05", "no display", check_display },
	{ "06", "no capabilities", check_capabilities },
	{ "07", "a process namespace of its own", check_pid_namespace },
	{ "08", "an IPC namespace of its own", check_ipc_namespace },
	{ "09", "a host name namespace of its own", check_uts_namespace },
	{ "10", "a private /dev, and no way to type into the caller's terminal", check_devices },
	{ "11", "a private /tmp", check_tmp },
	{ "12", "a private /run: no bus, no container service, no desktop", check_run },
	{ "13", "no secrets of the system", check_system_secrets },
	{ "14", ".netrc is hidden", check_netrc },
	{ "15", ".Xauthority is hidden", check_xauthority },
	{ "16", "git has the session's configuration", check_git },
	{ "17", "only what the plan names can be written", check_scope },
	{ "18", "the sandbox's own files cannot be changed", check_own_files },
	{ "19", "the routes are those that were meant", check_routes },
	{ "20", "what is denied refuses, and names resolve", check_reach },
	{ "21", "the agent's program and what is masked cannot be written", check_agent },
	{ "22", "the entry points of the next launch are held", check_entry_guard },
};
const size_t checks_count = ELEMENTSOF(checks_table);
STATIC_ASSERT(ELEMENTSOF(checks_table) == 22);

/* Doctor asks for the one thing that nothing outside can tell. */
static void doctor_dns(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	int r;

	if (e->forwarder == 0) {
		battery_note(b, "this session has no name server");
		return;
	}
	r = dns_ask(e->forwarder, DNS_MSEC);
	if (r < 0)
		battery_fail(b, "the name server does not answer: %s", strerror(-r));
	else
		battery_pass(b, "it answered after %d ms", r);
}

const Check doctor_table[] = { { "dns.answers", "names resolve in the jail", doctor_dns } };
const size_t doctor_count = ELEMENTSOF(doctor_table);
