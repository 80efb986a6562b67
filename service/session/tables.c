/* SPDX-License-Identifier: MIT */
#include "service/session/tables.h"

#include "base/clock.h"
#include "service/plan/exposure.h"
#include "service/session/link-server.h"

typedef struct Rows {
	LinkRow *rows;
	uint32_t n, allocated;
	int error;
} Rows;

static void rows_done(Rows *rows)
{
	for (uint32_t i = 0; i < rows->n; i++)
		for (size_t c = 0; c < LINK_COLUMNS_MAX; c++)
			free(rows->rows[i].columns[c]);
	free(rows->rows);
	*rows = (Rows){ 0 };
}

/* n columns; what does not fit into LINK_ROWS_MAX is left out. Sticky after an error. */
static void rows_add(Rows *rows, size_t n, const char *const *columns)
{
	LinkRow *row;

	if (rows->error < 0 || rows->n >= LINK_ROWS_MAX)
		return;
	if (rows->n == rows->allocated) {
		uint32_t allocated = rows->allocated + 64;
		LinkRow *grown = reallocarray(rows->rows, allocated, sizeof(LinkRow));

		if (!grown) {
			rows->error = -ENOMEM;
			return;
		}
		rows->rows = grown;
		rows->allocated = allocated;
	}
	row = &rows->rows[rows->n++];
	*row = (LinkRow){ 0 };
	for (size_t c = 0; c < n; c++) {
		row->columns[c] = link_text(columns[c] ?: "");
		if (!row->columns[c])
			rows->error = -ENOMEM;
	}
}

static void add_warnings(Rows *rows, char *const *warnings)
{
	for (size_t i = 0; warnings && warnings[i]; i++)
		rows_add(rows, 1, (const char *const[]){ warnings[i] });
}

static void add_posture(Rows *rows, const char *layer, const char *strength, const char *detail)
{
	rows_add(rows, 3, (const char *const[]){ layer, strength, detail });
}

static void make_posture(Rows *rows, const TablesSource *source)
{
	const Network *network = source->network;
	const Plan *plan = source->plan;

	if (network->jailed)
		add_posture(
			rows, "network", "jailed",
			"filter on the tap, permanent neighbour, prohibit routes; read back from the kernel");
	else
		add_posture(rows, "network", "shared",
			    "egress-jail is off: the agent reaches what the host reaches");
	if (network->jailed)
		add_posture(rows, "wire", source->offline ? "offline" : "pasta",
			    source->offline ? "no path for packets now; it comes back by itself"
					    : "IPv4 through sockets of this user");
	if (network->jailed && network->ledger_problem)
		add_posture(rows, "ledger", "none", network->ledger_problem);
	else if (network->jailed)
		add_posture(
			rows, "ledger", "on",
			"what is denied is noted and refused at once; without it the prohibit routes answer");
	if (network->jailed && network->sockets.ipv6_off)
		add_posture(rows, "ipv6", "off", "disable_ipv6 is set in the namespace");
	else if (network->jailed)
		add_posture(rows, "ipv6", "refused",
			    "no address beyond link-local, and the tap carries no frame of it");
	else
		add_posture(rows, "ipv6", "shared", "as on the host");
	if (plan && plan->private_proc)
		add_posture(rows, "proc", "private", "only processes of the jail");
	else
		add_posture(rows, "proc", "outer",
			    "command lines, routes and sockets of the host are readable, read-only");
	if (source->pid_error != 0) {
		_cleanup_free_ char *why = NULL;

		if (asprintf(&why, "agents of several sessions can have the same PID: %s",
			     strerror(source->pid_error)) < 0)
			why = NULL;
		add_posture(rows, "pid", "shared", why);
	}
	add_posture(rows, "seccomp", "on",
		    "set-user-ID and set-group-ID modes, openat2 and io_uring are refused");
	if (source->root)
		add_posture(rows, "nested sandboxes", "off", "a session of root makes no user namespaces");
	else
		add_posture(rows, "nested sandboxes", plan && plan->private_proc ? "on" : "limited",
			    plan && plan->private_proc
				    ? "user namespaces may be made inside"
				    : "user namespaces may be made, but not a /proc in them");
	if (plan)
		add_posture(rows, "entry-point guard", plan->guarded ? "on" : "not needed",
			    plan->guarded ? "agents may write directories ahead of /usr/local/bin on PATH"
					  : "agents write in no directory ahead of /usr/local/bin on PATH");
	if (network->jailed)
		add_posture(rows, "ports", ports_count(source->ports) > 0 ? "some cross" : "none cross",
			    ports_count(source->ports) > 0
				    ? "between the loopback addresses of jail and host, as ListPorts says"
				    : "the jail's loopback is its own");
	if (!source->resolver)
		add_posture(rows, "resolver", "none", "no name server inside: names do not resolve");
	else
		add_posture(rows, "resolver", network->jailed ? "forwarded" : "host's",
			    network->jailed ? "one address, forwarded to the host's first name server"
					    : "the host's own name servers");
}

static void make_ports(Rows *rows, const Ports *ports)
{
	for (size_t i = 0; i < ports_count(ports); i++) {
		const PortsRow row = ports_row(ports, i);
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", (unsigned)row.port);
		rows_add(rows, 4, (const char *const[]){ number, row.direction, row.state, row.origin });
	}
}

/* None where the host's network is shared: there is nothing of ours in it. */
static int make_routes(Rows *rows, Network *network)
{
	_cleanup_free_ RouteShown *shown = NULL;
	ssize_t n;

	if (!network->jailed)
		return 0;
	if (!network->denial_open)
		return -EINPROGRESS;
	n = denial_show(&network->denial, &shown);
	for (ssize_t i = 0; i < n; i++) {
		char text[ROUTE_TEXT_MAX];

		rows_add(rows, 5,
			 (const char *const[]){ route_to_string(shown[i].address, shown[i].length, text),
						route_verdict_to_string(shown[i].verdict), shown[i].device,
						shown[i].reason, shown[i].state });
	}
	return n < 0 ? (int)n : 0;
}

static int make_exposure(Rows *rows, const Plan *plan)
{
	_cleanup_free_ ExposureRow *exposure = NULL;
	size_t n = 0;

	exposure = exposure_make(plan, &n);
	if (!exposure)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		rows_add(rows, 5,
			 (const char *const[]){ exposure[i].path, exposure[i].kind, exposure[i].mode,
						exposure[i].origin, exposure[i].reason });
	return 0;
}

static void add_allowed(Rows *rows, const Allowance *entry, const char *comment, uint64_t end_usec,
			bool configured)
{
	char end[32];

	(void)snprintf(end, sizeof(end), "%llu", (unsigned long long)end_usec);
	rows_add(rows, 4, (const char *const[]){ entry->text, comment, end, configured ? "1" : "0" });
}

static void make_allowed(Rows *rows, const Allowances *allowances)
{
	/* Times that are shown are of another clock than those that count. */
	uint64_t shift = clock_usec(CLOCK_REALTIME) - clock_usec(CLOCK_BOOTTIME);

	for (size_t i = 0; i < allowances->n; i++) {
		const Allowance *entry = &allowances->entries[i];

		if (entry->configured)
			add_allowed(rows, entry, entry->comment, 0, true);
		if (entry->own)
			add_allowed(rows, entry, entry->own_comment,
				    entry->own_end_usec ? entry->own_end_usec + shift : 0, false);
	}
}

int tables_make(const TablesSource *source, LinkTable table, LinkRow **ret_rows, uint32_t *ret_n)
{
	_cleanup_(rows_done) Rows rows = { 0 };

	switch (table) {
	case LINK_TABLE_WARNINGS:
		add_warnings(&rows, source->warnings);
		break;
	case LINK_TABLE_POSTURE:
		make_posture(&rows, source);
		break;
	case LINK_TABLE_ROUTES:
		rows.error = make_routes(&rows, source->network) ?: rows.error;
		break;
	case LINK_TABLE_EXPOSURE:
		rows.error = source->plan ? make_exposure(&rows, source->plan) ?: rows.error : -EINPROGRESS;
		break;
	case LINK_TABLE_ENVIRONMENT:
		if (!source->plan)
			rows.error = -EINPROGRESS;
		for (size_t i = 0; source->plan && i < source->plan->n_variables; i++)
			rows_add(&rows, 2,
				 (const char *const[]){ source->plan->variables[i].name,
							source->plan->variables[i].origin });
		break;
	case LINK_TABLE_DENIED:
		return ledger_rows(source->ledger, ret_rows, ret_n);
	case LINK_TABLE_ALLOWED:
		rows.error = source->reach ? rows.error : -EINPROGRESS;
		if (source->reach)
			make_allowed(&rows, reach_allowances(source->reach));
		break;
	case LINK_TABLE_PORTS:
		rows.error = source->plan ? rows.error : -EINPROGRESS;
		make_ports(&rows, source->ports);
		break;
	case LINK_TABLE_CHECKS:
	case LINK_TABLE_MAX:
	default:
		return -EINVAL;
	}
	if (rows.error < 0)
		return rows.error;
	*ret_rows = TAKE_PTR(rows.rows);
	*ret_n = rows.n;
	rows.n = 0;
	return 0;
}
