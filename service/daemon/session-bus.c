/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-bus.h"

#include "dbus/names.h"
#include "service/daemon/allow-ip.h"
#include "service/daemon/drift.h"
#include "service/daemon/manager-bus.h"
#include "service/daemon/session-properties.h"
#include "service/daemon/session-tables.h"
#include "service/daemon/sight.h"
#include "service/daemon/verify-session.h"
#include "service/link/pack.h"

/*
 * The object of a session is there for who sees it (sight.h), and for nobody else: the library then answers
 * as it does for an object that does not exist. *ret_found is the session.
 */
static int find_session(sd_bus *bus, const char *path, const char *interface, void *userdata,
			void **ret_found, sd_bus_error *reterr)
{
	Manager *manager = userdata;
	const Client *client = client_of(manager->clients, sd_bus_get_current_message(bus));
	const char *id = starts_with(path, CS_SESSION_ROOT "/");
	Session *session = id ? registry_find_shown(manager->registry, id) : NULL;

	manager_touch(manager);
	if (!client || !session || !sight_allows(client, session))
		return 0;
	/* Where nobody has subscribed, nobody has watched the file. */
	(void)drift_refresh(session);
	*ret_found = session;
	return 1;
}

static int list_sessions(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
			 sd_bus_error *reterr)
{
	Manager *manager = userdata;
	const Client *client = client_of(manager->clients, sd_bus_get_current_message(bus));
	_cleanup_(strings_freep) char **nodes = NULL;

	for (Session *s = registry_first(manager->registry); client && s; s = s->next)
		if (sight_allows(client, s) && strings_append(&nodes, s->path) < 0)
			return -ENOMEM;
	*ret_nodes = TAKE_PTR(nodes);
	return 0;
}

static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	return session_append_property(userdata, property, reply);
}

static int on_method(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Session *session = userdata;
	/* The object is the session; the vtable was registered with the manager. */
	Manager *manager = sd_bus_slot_get_userdata(sd_bus_get_current_slot(sd_bus_message_get_bus(m)));
	const AuthEntry *entry;
	LinkTable table;
	Client *client;
	int r;

	r = manager_bus_admit(manager, m, &client, &entry, reterr);
	if (r < 0)
		return r;
	if (streq(entry->member, CS_MEMBER_STOP))
		return manager_stop(manager, client, m, session->id, KEEPER_GRACE_USEC, entry->action,
				    reterr);
	if (streq(entry->member, CS_MEMBER_ALLOW_IP) || streq(entry->member, CS_MEMBER_REVOKE_IP))
		return allow_ip_session(manager, client, m, entry, session, reterr);
	if (streq(entry->member, CS_MEMBER_VERIFY) && sight_allows(client, session))
		return verify_session_begin(manager, client, m, session, reterr);
	/* Whoever found the object may see it; what it holds is not handed out on that account alone. */
	if (session_table_of_member(entry->member, &table) && sight_allows(client, session))
		return session_table_answer(manager, client, m, session, table, reterr);
	return sd_bus_error_setf(reterr, CS_ERROR_NOT_AUTHORIZED, "Nobody may call this member.");
}

#define OPEN SD_BUS_VTABLE_UNPRIVILEGED
#define CONSTANT(name, type) SD_BUS_PROPERTY(name, type, get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST)
#define CHANGING(name, type) SD_BUS_PROPERTY(name, type, get_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_ROUTES, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sssss)", routes),
				on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_EXPOSURE, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ayssss)", entries),
				on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_ENVIRONMENT, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ss)", variables),
				on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_PORTS, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(qsss)", ports),
				on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_DENIED, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(tssqsst)", attempts),
				on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_ALLOW_IP, SD_BUS_ARGS("s", address, "t", seconds, "a{sv}", options),
				SD_BUS_NO_RESULT, on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_REVOKE_IP, SD_BUS_ARGS("s", address), SD_BUS_NO_RESULT, on_method,
				OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_VERIFY, SD_BUS_ARGS("a{sv}", options),
				SD_BUS_RESULT("b", passed, "a(sssss)", rows), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_STOP, SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_method, OPEN),
	CONSTANT(SESSION_PROPERTY_ID, "s"),
	CONSTANT(SESSION_PROPERTY_AGENT, "s"),
	CONSTANT(SESSION_PROPERTY_USER, "s"),
	CONSTANT(SESSION_PROPERTY_UID, "u"),
	CONSTANT(SESSION_PROPERTY_WORKSPACE, "ay"),
	CONSTANT(SESSION_PROPERTY_STARTED, "t"),
	CHANGING(SESSION_PROPERTY_STATE, "s"),
	CHANGING(SESSION_PROPERTY_LEADER, "u"),
	CHANGING(SESSION_PROPERTY_JAILED, "b"),
	CHANGING(SESSION_PROPERTY_WARNINGS, "as"),
	CHANGING(SESSION_PROPERTY_POSTURE, "a(sss)"),
	CHANGING(SESSION_PROPERTY_EXIT_STATUS, "i"),
	CHANGING(SESSION_PROPERTY_DENIED, "t"),
	SD_BUS_SIGNAL_WITH_ARGS(CS_SIGNAL_DENIED, SD_BUS_ARGS("(tssqsst)", attempt), 0),
	SD_BUS_SIGNAL_WITH_ARGS(CS_SIGNAL_STATE_CHANGED, SD_BUS_ARGS("s", state, "i", exit_status), 0),
	SD_BUS_VTABLE_END,
};

int session_bus_register(Manager *manager)
{
	int r;

	r = sd_bus_add_fallback_vtable(manager->bus, NULL, CS_SESSION_ROOT, CS_SESSION_INTERFACE, vtable,
				       find_session, manager);
	if (r < 0)
		return r;
	return sd_bus_add_node_enumerator(manager->bus, NULL, CS_SESSION_ROOT, list_sessions, manager);
}
