/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-properties.h"

#include "dbus/wire.h"

static const struct {
	const char *name, *type;
} properties[] = {
	{ SESSION_PROPERTY_ID, "s" },           { SESSION_PROPERTY_AGENT, "s" },
	{ SESSION_PROPERTY_USER, "s" },         { SESSION_PROPERTY_UID, "u" },
	{ SESSION_PROPERTY_WORKSPACE, "ay" },   { SESSION_PROPERTY_STARTED, "t" },
	{ SESSION_PROPERTY_STATE, "s" },        { SESSION_PROPERTY_LEADER, "u" },
	{ SESSION_PROPERTY_JAILED, "b" },       { SESSION_PROPERTY_WARNINGS, "as" },
	{ SESSION_PROPERTY_POSTURE, "a(sss)" }, { SESSION_PROPERTY_EXIT_STATUS, "i" },
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
	for (size_t i = 0; r >= 0 && i < session->warnings.n_rows; i++)
		r = append_text(m, session->warnings.cells[i]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* The session's own rows, and one that only the service knows. */
static int append_posture(const Session *session, sd_bus_message *m)
{
	const size_t own = session->posture.n_rows * 3;
	_cleanup_free_ const char **cells = calloc(own + 3, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	if (own > 0)
		memcpy(cells, session->posture.cells, own * sizeof(*cells));
	cells[own] = "cgroup";
	cells[own + 1] = session->group[0] ? "group" : "none";
	cells[own + 2] = session->group[0]
				 ? "whatever is left ends with the session; no limits"
				 : "no cgroup2 hierarchy can be written: the pid namespace ends the agent";
	return wire_append_table(m, 3, cells, session->posture.n_rows + 1, SESSION_TEXT_MAX);
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
	return -ENOENT;
}
