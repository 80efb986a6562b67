/* SPDX-License-Identifier: MIT */

/* ListAllowIp: what the file says, and what the sessions that the caller may see say of their own. */

#include <time.h>

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/allow-call.h"
#include "service/daemon/config-file.h"
#include "service/daemon/sight.h"

#define CELL_MAX 512u

static int add_row(AllowCall *call, const char *address, const char *comment, const char *origin)
{
	const char *const texts[] = { address, comment, origin };

	if (call->n_cells + ELEMENTSOF(texts) > call->allocated_cells) {
		size_t allocated = call->allocated_cells * 2 + 3 * ELEMENTSOF(texts);
		char **grown = reallocarray(call->cells, allocated, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		call->cells = grown;
		call->allocated_cells = allocated;
	}
	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		char *copy = strdup(texts[i]);

		if (!copy)
			return -ENOMEM;
		call->cells[call->n_cells++] = copy;
	}
	return 0;
}

/* "session ID", or "session ID until 2000-01-01T00:00:00Z" for an end in usec since 1970. */
static char *session_origin(const char *id, const char *end)
{
	unsigned long long usec = strtoull(end, NULL, 10);
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	char *origin = NULL, text[64];
	struct tm tm;

	if (usec == 0 || !gmtime_r(&seconds, &tm) ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return asprintf(&origin, "session %s", id) < 0 ? NULL : origin;
	return asprintf(&origin, "session %s until %s", id, text) < 0 ? NULL : origin;
}

/* address, comment, end, configured: of the session's own, and only what is an address. */
static int add_session_row(AllowCall *call, const char *id, char *const *row)
{
	_cleanup_free_ char *canonical = NULL, *origin = NULL;

	if (!streq(row[3], "0") || config_address_text(row[0], &canonical, NULL) < 0)
		return 0;
	origin = session_origin(id, row[2]);
	return origin ? add_row(call, canonical, row[1], origin) : -ENOMEM;
}

static void on_session_rows(void *userdata, int result, const char *problem, const LinkCells *cells)
{
	AllowWait *wait = userdata;
	size_t n = result == 0 && cells ? MIN_OF(cells->n_rows, (size_t)2 * ALLOW_ROWS_OF_SESSION_MAX) : 0;

	for (size_t i = 0; i < n; i++)
		if (add_session_row(wait->call, wait->id, cells->cells + i * cells->n_columns) < 0)
			break;
	allow_wait_done(wait, result, NULL, NULL);
}

static void on_listed(AllowCall *call)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call->call, &reply);
	if (r >= 0)
		r = wire_append_table(reply, 3, (const char *const *)call->cells, call->n_cells / 3,
				      CELL_MAX);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	if (r < 0)
		(void)sd_bus_reply_method_errno(call->call, r, NULL);
	allow_call_free(call);
}

static int ask_sessions(AllowCall *call)
{
	for (Session *s = registry_first(call->manager->registry); s; s = s->next) {
		AllowWait *wait;
		int r;

		if (!sight_allows(call->client, s) || !s->keeper || !keeper_is_connected(s->keeper))
			continue;
		wait = allow_call_expect(call, s);
		if (!wait)
			return -ENOMEM;
		r = session_reach_list(s, on_session_rows, wait, &wait->job);
		if (r < 0)
			allow_wait_done(wait, r, NULL, NULL);
	}
	return 0;
}

int allow_ip_list(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		  sd_bus_error *reterr)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_free_ char *problem = NULL;
	const ConfigValue *value;
	AllowCall *call;
	size_t index = 0;
	int r;

	r = config_file_read(CS_CONFIG_PATH, &config, &problem);
	if (r < 0 && r != -ENOMEM)
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_CONFIGURATION, "%s", problem ?: strerror(-r));
	if (r >= 0)
		r = allow_call_new(manager, ALLOW_LIST, client, m, &call, reterr);
	if (r < 0)
		return r;
	call->done = on_listed;
	while (r >= 0 && (value = config_next(&config, CONFIG_ALLOW_IP, &index)))
		r = add_row(call, value->text, value->comment, value->origin);
	if (r >= 0)
		r = ask_sessions(call);
	if (r < 0) {
		allow_call_free(call);
		return r;
	}
	allow_call_wait(call);
	return 1;
}
