/* SPDX-License-Identifier: MIT */
#include "service/daemon/manager-bus.h"

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/allow-ip.h"
#include "service/daemon/audit-bus.h"
#include "service/daemon/config-file.h"
#include "service/daemon/doctor-call.h"
#include "service/daemon/launch.h"
#include "service/daemon/request.h"
#include "service/daemon/session-properties.h"
#include "service/daemon/sight.h"
#include "service/daemon/verify-call.h"

/* Of one cell of a table about the configuration: a path is the longest that it holds. */
#define CELL_MAX (2 * CS_PATH_BYTES_MAX)
#define SUBSCRIBERS_OF_USER_MAX 16u

typedef int (*MemberFunction)(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
			      sd_bus_error *reterr);

int manager_bus_admit(Manager *manager, sd_bus_message *m, Client **ret_client, const AuthEntry **ret_entry,
		      sd_bus_error *reterr)
{
	const AuthEntry *entry = auth_find(sd_bus_message_get_interface(m), sd_bus_message_get_member(m));
	Client *client = client_of(manager->clients, m);

	manager_touch(manager);
	/* What begins nothing is still answered: its sender cannot know. */
	if (manager->stopping && entry->rule != AUTH_OPEN)
		return sd_bus_error_setf(reterr, CS_ERROR_SHUTTING_DOWN,
					 "The service is stopping; try again.");
	if (!client)
		return sd_bus_error_setf(reterr, CS_ERROR_NOT_AUTHORIZED, "The bus does not know who calls.");
	switch (entry->rule) {
	case AUTH_OPEN:
	case AUTH_ACTION:
	case AUTH_OWNER:
		*ret_client = client;
		*ret_entry = entry;
		return 0;
	case AUTH_DENIED:
		break;
	}
	return sd_bus_error_setf(reterr, CS_ERROR_NOT_AUTHORIZED, "Nobody may call this member.");
}

static int read_configuration(Manager *manager, Config *ret, sd_bus_error *reterr)
{
	_cleanup_free_ char *problem = NULL;
	int r;

	r = config_file_read_checked(CS_CONFIG_PATH, manager->users, ret, &problem);
	if (r == -ENOMEM)
		return sd_bus_error_set_errno(reterr, r);
	if (r < 0) {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_CONFIGURATION, "%s", problem ? problem : strerror(-r));
		return r;
	}
	return 0;
}

/* A table under construction; cells are copies. */
typedef struct Table {
	char **cells;
	size_t n;
	bool no_memory;
} Table;

static void table_done(Table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->cells[i]);
	free(table->cells);
}

static void table_add(void *userdata, const char *first, const char *second, const char *third)
{
	const char *const texts[] = { first, second, third };
	Table *table = userdata;
	char **larger;

	larger = reallocarray(table->cells, table->n + ELEMENTSOF(texts), sizeof(*larger));
	if (!larger) {
		table->no_memory = true;
		return;
	}
	table->cells = larger;
	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		table->cells[table->n] = strdup(texts[i] ? texts[i] : "");
		if (!table->cells[table->n]) {
			table->no_memory = true;
			return;
		}
		table->n++;
	}
}

static int reply_table(sd_bus_message *m, const Table *table)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	if (table->no_memory)
		return -ENOMEM;
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = wire_append_table(reply, 3, (const char *const *)table->cells, table->n / 3, CELL_MAX);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 1;
}

static int on_get_policy(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
			 sd_bus_error *reterr)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_(table_done) Table table = { 0 };
	int r;

	r = read_configuration(manager, &config, reterr);
	if (r < 0)
		return r;
	config_policy(&config, table_add, &table);
	return reply_table(m, &table);
}

static int append_session(sd_bus_message *m, const Session *session)
{
	static const char *const members[] = { SESSION_PROPERTY_AGENT,   SESSION_PROPERTY_USER,
					       SESSION_PROPERTY_UID,     SESSION_PROPERTY_WORKSPACE,
					       SESSION_PROPERTY_STARTED, SESSION_PROPERTY_STATE };
	int r;

	r = sd_bus_message_open_container(m, 'r', "sossuayts");
	if (r >= 0)
		r = sd_bus_message_append(m, "so", session->id, session->path);
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(members); i++)
		r = session_append_property(session, members[i], m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int reply_sessions(Manager *manager, Client *client, sd_bus_message *m)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(sossuayts)");
	for (Session *s = registry_first(manager->registry); r >= 0 && s; s = s->next)
		if (sight_allows(client, s))
			r = append_session(reply, s);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 1;
}

static int on_list_sessions(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
			    sd_bus_error *reterr)
{
	return reply_sessions(manager, client, m);
}

static int on_list_all_sessions(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
				sd_bus_error *reterr)
{
	return sight_widen(manager, client, m, reply_sessions, reterr);
}

static int on_subscribe(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
			sd_bus_error *reterr)
{
	/* Each change of each session goes to each of them. */
	if (!client->subscribed &&
	    clients_subscribed(manager->clients, client->uid) >= SUBSCRIBERS_OF_USER_MAX)
		return sd_bus_error_setf(reterr, CS_ERROR_LIMITS_EXCEEDED,
					 "%u connections of yours have subscribed already; close one.",
					 SUBSCRIBERS_OF_USER_MAX);
	client->subscribed = true;
	manager_subscribers_changed(manager);
	return sd_bus_reply_method_return(m, NULL);
}

static int on_unsubscribe(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
			  sd_bus_error *reterr)
{
	client->subscribed = false;
	manager_subscribers_changed(manager);
	return sd_bus_reply_method_return(m, NULL);
}

static int on_stop_session(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
			   sd_bus_error *reterr)
{
	uint64_t grace = KEEPER_GRACE_USEC;
	const OptionSpec options[] = { { "grace", 't', &grace } };
	const char *id;
	int r;

	r = sd_bus_message_read(m, "s", &id);
	if (r < 0)
		return r;
	r = options_read(m, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	if (grace > KEEPER_GRACE_MAX_USEC)
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
					 "The option 'grace' is at most %llu microseconds.",
					 (unsigned long long)KEEPER_GRACE_MAX_USEC);
	return manager_stop(manager, client, m, id, grace, entry->action, reterr);
}

static int on_launch(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		     sd_bus_error *reterr)
{
	return launch_begin(manager, client, m, entry->action, &launch_of_agent, reterr);
}

static int on_verify(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		     sd_bus_error *reterr)
{
	return launch_begin(manager, client, m, entry->action, &launch_of_verify, reterr);
}

static int on_doctor(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		     sd_bus_error *reterr)
{
	return doctor_begin(manager, client, m, entry->action, reterr);
}

static const struct {
	const char *member;
	MemberFunction function;
} members[] = {
	{ CS_MEMBER_LAUNCH, on_launch },
	{ CS_MEMBER_VERIFY, on_verify },
	{ CS_MEMBER_DOCTOR, on_doctor },
	{ CS_MEMBER_LIST_ALLOW_IP, allow_ip_list },
	{ CS_MEMBER_ADD_ALLOW_IP, allow_ip_add },
	{ CS_MEMBER_REMOVE_ALLOW_IP, allow_ip_remove },
	{ CS_MEMBER_LIST_SESSIONS, on_list_sessions },
	{ CS_MEMBER_LIST_EVENTS, audit_bus_list },
	{ CS_MEMBER_LIST_ALL_SESSIONS, on_list_all_sessions },
	{ CS_MEMBER_SUBSCRIBE, on_subscribe },
	{ CS_MEMBER_UNSUBSCRIBE, on_unsubscribe },
	{ CS_MEMBER_STOP_SESSION, on_stop_session },
	{ CS_MEMBER_GET_POLICY, on_get_policy },
};

static int on_method(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Manager *manager = userdata;
	const AuthEntry *entry;
	Client *client;
	int r;

	r = manager_bus_admit(manager, m, &client, &entry, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(members); i++)
		if (streq(members[i].member, entry->member))
			return members[i].function(manager, client, m, entry, reterr);
	return sd_bus_error_setf(reterr, CS_ERROR_NOT_AUTHORIZED, "Nobody may call this member.");
}

static int get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
		    sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	return sd_bus_message_append(reply, "s", streq(property, "Version") ? CS_VERSION : CS_CONFIG_PATH);
}

static int get_config_error(sd_bus *bus, const char *path, const char *interface, const char *property,
			    sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_free_ char *problem = NULL, *shown = NULL;
	Manager *manager = userdata;
	int r;

	r = config_file_read_checked(CS_CONFIG_PATH, manager->users, &config, &problem);
	shown = wire_text(r >= 0 ? "" : problem ? problem : strerror(-r), CELL_MAX);
	return shown ? sd_bus_message_append(reply, "s", shown) : -ENOMEM;
}

static int get_sessions(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	Manager *manager = userdata;
	const Client *client = client_of(manager->clients, sd_bus_get_current_message(bus));

	manager_touch(manager);
	return sd_bus_message_append(reply, "u",
				     client ? signals_count_visible(&manager->signals, client) : 0);
}

#define OPEN SD_BUS_VTABLE_UNPRIVILEGED

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LAUNCH,
				SD_BUS_ARGS("s", agent, "aay", argv, "aay", environment, "ay", cwd, "a{uh}",
					    fds, "a{sv}", options),
				SD_BUS_RESULT("s", id, "o", session, "h", lifeline), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_DOCTOR, SD_BUS_ARGS("a{sv}", options),
				SD_BUS_RESULT("a(sssss)", rows), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_VERIFY,
				SD_BUS_ARGS("s", agent, "aay", environment, "ay", cwd, "a{sv}", options),
				SD_BUS_RESULT("b", passed, "a(sssss)", rows), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_ALLOW_IP, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sss)", addresses),
				on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_ADD_ALLOW_IP,
				SD_BUS_ARGS("s", address, "s", comment, "a{sv}", options),
				SD_BUS_RESULT("as", unconfirmed), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_REMOVE_ALLOW_IP, SD_BUS_ARGS("s", address),
				SD_BUS_RESULT("as", unconfirmed), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_SESSIONS, SD_BUS_NO_ARGS,
				SD_BUS_RESULT("a(sossuayts)", sessions), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_EVENTS, SD_BUS_ARGS("s", session, "a{sv}", options),
				SD_BUS_RESULT("a" CS_EVENT_SIGNATURE, events), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_LIST_ALL_SESSIONS, SD_BUS_NO_ARGS,
				SD_BUS_RESULT("a(sossuayts)", sessions), on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_SUBSCRIBE, SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_UNSUBSCRIBE, SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_STOP_SESSION, SD_BUS_ARGS("s", id, "a{sv}", options),
				SD_BUS_NO_RESULT, on_method, OPEN),
	SD_BUS_METHOD_WITH_ARGS(CS_MEMBER_GET_POLICY, SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sss)", settings),
				on_method, OPEN),
	SD_BUS_PROPERTY("Version", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ConfigPath", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ConfigError", "s", get_config_error, 0, 0),
	SD_BUS_PROPERTY("Sessions", "u", get_sessions, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_SIGNAL_WITH_ARGS(CS_SIGNAL_SESSION_ADDED, SD_BUS_ARGS("s", id, "o", session), 0),
	SD_BUS_SIGNAL_WITH_ARGS(CS_SIGNAL_SESSION_REMOVED, SD_BUS_ARGS("s", id, "o", session), 0),
	SD_BUS_SIGNAL(CS_SIGNAL_ALLOW_IP_CHANGED, "", 0),
	SD_BUS_SIGNAL(CS_SIGNAL_POLICY_CHANGED, "", 0),
	SD_BUS_SIGNAL_WITH_ARGS(CS_SIGNAL_EVENT, SD_BUS_ARGS(CS_EVENT_SIGNATURE, event), 0),
	SD_BUS_SIGNAL_WITH_ARGS(CS_SIGNAL_ROW, SD_BUS_ARGS("s", call, "(sssss)", row), 0),
	SD_BUS_VTABLE_END,
};

int manager_bus_register(Manager *manager)
{
	return sd_bus_add_object_vtable(manager->bus, NULL, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, vtable,
					manager);
}
