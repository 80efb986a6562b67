/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-properties.h"

#include <inttypes.h>

#include "dbus/wire.h"

#define FOREIGN "another version of claude-sandbox started the session than the service is now"

static const struct {
	const char *name, *type;
} properties[] = {
	{ SESSION_PROPERTY_ID, "s" },           { SESSION_PROPERTY_AGENT, "s" },
	{ SESSION_PROPERTY_USER, "s" },         { SESSION_PROPERTY_UID, "u" },
	{ SESSION_PROPERTY_WORKSPACE, "ay" },   { SESSION_PROPERTY_STARTED, "t" },
	{ SESSION_PROPERTY_STATE, "s" },        { SESSION_PROPERTY_LEADER, "u" },
	{ SESSION_PROPERTY_JAILED, "b" },       { SESSION_PROPERTY_WARNINGS, "as" },
	{ SESSION_PROPERTY_POSTURE, "a(sss)" }, { SESSION_PROPERTY_EXIT_STATUS, "i" },
	{ SESSION_PROPERTY_DENIED, "t" },
};

const char *session_property_type(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(properties); i++)
		if (streq(properties[i].name, name))
			return properties[i].type;
	return NULL;
}

static int append_text(sd_bus_message *m, const char *text)
{
	_cleanup_free_ char *shown = wire_text(text, SESSION_TEXT_MAX);

	return shown ? sd_bus_message_append_basic(m, 's', shown) : -ENOMEM;
}

static int append_warnings(const Session *session, sd_bus_message *m)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "s");
	if (r >= 0 && session->foreign)
		r = append_text(m, FOREIGN "; it can be stopped, and start it anew to see and change more");
	for (size_t i = 0; r >= 0 && i < session->warnings.n_rows; i++)
		r = append_text(m, session->warnings.cells[i]);
	for (size_t i = 0; r >= 0 && session->marks && session->marks[i]; i++)
		r = append_text(m, session->marks[i]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Return: to be freed, or NULL without memory. */
static char *cgroup_detail(const Session *session)
{
	_cleanup_free_ char *tasks = NULL, *memory = NULL;
	char *detail;

	if (!session->group)
		return strdup(
			session->in_callers_group
				? "no group can be made below the caller's, whose limits hold: the pid "
				  "namespace "
				  "ends the agent"
				: "no cgroup2 hierarchy can be written: the pid namespace ends the agent");
	if (session->limits.tasks_max > 0 &&
	    asprintf(&tasks, "at most %" PRIu64 " tasks", session->limits.tasks_max) < 0) {
		tasks = NULL;
		return NULL;
	}
	if (session->limits.memory_max > 0 &&
	    asprintf(&memory, "%" PRIu64 " bytes of memory", session->limits.memory_max) < 0) {
		memory = NULL;
		return NULL;
	}
	if (asprintf(&detail, "whatever is left ends with the session; %s%s%s%s",
		     tasks ?: "no limit of tasks here", memory ? " and " : "", memory ?: "",
		     memory ? "" : ", none of memory") < 0)
		return NULL;
	return detail;
}

/* The session's own rows, and those that only the service knows. */
static int append_posture(const Session *session, sd_bus_message *m)
{
	const size_t own = session->posture.n_rows * 3;
	_cleanup_free_ const char **cells = calloc(own + 9, sizeof(*cells));
	_cleanup_free_ char *detail = NULL;

	if (!cells)
		return -ENOMEM;
	if (own > 0)
		memcpy(cells, session->posture.cells, own * sizeof(*cells));
	detail = cgroup_detail(session);
	if (!detail)
		return -ENOMEM;
	cells[own] = "cgroup";
	cells[own + 1] = session->group ? "group" : session->in_callers_group ? "caller's" : "none";
	cells[own + 2] = detail;
	cells[own + 3] = "policy";
	cells[own + 4] = session->marks ? "laxer" : "today's";
	cells[own + 5] =
		session->marks ? session->marks[0] : "nothing that the configuration does not give now";
	cells[own + 6] = "link";
	cells[own + 7] = "foreign";
	cells[own + 8] = FOREIGN ": what it says of its layers is not understood";
	return wire_append_table(m, 3, cells, session->posture.n_rows + (session->foreign ? 3 : 2),
				 SESSION_TEXT_MAX);
}

int session_append_property(const Session *session, const char *name, sd_bus_message *m)
{
	if (streq(name, SESSION_PROPERTY_ID))
		return sd_bus_message_append(m, "s", session->id);
	if (streq(name, SESSION_PROPERTY_AGENT))
		return append_text(m, session->agent);
	if (streq(name, SESSION_PROPERTY_USER))
		return append_text(m, session->user);
	if (streq(name, SESSION_PROPERTY_UID))
		return sd_bus_message_append(m, "u", session->uid);
	if (streq(name, SESSION_PROPERTY_WORKSPACE))
		return wire_append_bytes(m, session->workspace);
	if (streq(name, SESSION_PROPERTY_STARTED))
		return sd_bus_message_append(m, "t", session->started_usec);
	if (streq(name, SESSION_PROPERTY_STATE))
		return sd_bus_message_append(m, "s", session_state_to_string(session->state));
	if (streq(name, SESSION_PROPERTY_LEADER))
		return sd_bus_message_append(m, "u", session->leader);
	if (streq(name, SESSION_PROPERTY_JAILED))
		return sd_bus_message_append(m, "b", session->jailed);
	if (streq(name, SESSION_PROPERTY_WARNINGS))
		return append_warnings(session, m);
	if (streq(name, SESSION_PROPERTY_POSTURE))
		return append_posture(session, m);
	if (streq(name, SESSION_PROPERTY_EXIT_STATUS))
		return sd_bus_message_append(m, "i", session->exit_status);
	if (streq(name, SESSION_PROPERTY_DENIED))
		return sd_bus_message_append(m, "t", session->attempts);
	return -ENOENT;
}
