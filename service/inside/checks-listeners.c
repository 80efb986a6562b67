/* SPDX-License-Identifier: MIT */

/*
 * For row 20: who listens in the jail's network. Nobody does in one that just began, but for the local ports
 * that the session brings in; whatever else does is a way out to a port of the machine's.
 */

#include "service/inside/checks.h"

#include "service/inside/measure.h"

#define TABLE_MAX (1u << 20)
#define STATE_LISTEN 0x0au /* TCP_LISTEN, proc_pid_net(5) */
#define STATE_BOUND 0x07u  /* of a datagram socket that is not connected */

static bool is_local_port(const Expectations *e, unsigned port)
{
	for (size_t i = 0; i < e->n_local_ports; i++)
		if (e->local_ports[i] == port)
			return true;
	return false;
}

/* "  0: 0100007F:1F90 00000000:0000 0A ..." */
static bool parse_line(const char *line, unsigned *ret_port, unsigned *ret_state)
{
	return sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", ret_port, ret_state) == 2;
}

static void judge_table(Battery *b, const char *name, unsigned state, bool stream)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *path = battery_path(b, "/proc/self/net", name), *text = NULL;
	unsigned port, found;

	if (!path)
		return;
	/* IPv6 may be none of the kernel's. */
	text = measure_text(path, TABLE_MAX, NULL);
	if (!text && errno != ENOENT)
		battery_fail(b, "%s cannot be read: %s", path, strerror(errno));
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (parse_line(line, &port, &found) && found == state && !(stream && is_local_port(e, port)))
			battery_fail(b,
				     "something listens on the %s port %u, which no program of the jail does",
				     name, port);
}

void check_listeners(Battery *b)
{
	const Expectations *e = battery_expectations(b);

	/* Beside an agent they may be its own. */
	if (!e || e->joined)
		return;
	judge_table(b, "tcp", STATE_LISTEN, true);
	judge_table(b, "tcp6", STATE_LISTEN, true);
	judge_table(b, "udp", STATE_BOUND, false);
	judge_table(b, "udp6", STATE_BOUND, false);
}
