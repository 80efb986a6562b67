/* SPDX-License-Identifier: MIT */

/* What the bus tells unasked: who owns the service's name, what the service says about its sessions. */

#include "dbus/client-events.h"
#include "dbus/client-peer.h"
#include "tui/feed-state.h"

#define BUS_DRIVER "org.freedesktop.DBus"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"
#define LOCAL_INTERFACE "org.freedesktop.DBus.Local"

/* What a change of the allow-ips of a session changes. */
#define REACH (MODEL_ROUTES | MODEL_ALLOW_IP)

static bool is_from_service(const Feed *feed, sd_bus_message *m)
{
	return feed->owner && client_is_from(m, feed->owner);
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	const char *name, *before, *owner;
	Feed *feed = userdata;

	if (!client_is_from_bus(m) || sd_bus_message_read(m, "sss", &name, &before, &owner) <= 0 ||
	    !streq(name, CS_BUS_NAME))
		return 0;
	if (*owner) {
		feed_set_owner(feed, owner);
		/* It runs: nothing has to be started. */
		feed_subscribe(feed, false);
	} else {
		feed_set_owner(feed, NULL);
		feed_end_runs(feed, "the service went away before all rows had come; run it again");
		(void)model_set_link(feed->model, LINK_NO_SERVICE,
				     "the service has gone; sessions run on. It comes back with the next "
				     "launch, or press R to start it");
	}
	feed_changed(feed);
	return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	feed_lose_bus(userdata);
	return 0;
}

/* ---- the manager ---- */

static void on_session_added(Feed *feed, sd_bus_message *m)
{
	const char *id, *path;

	if (sd_bus_message_read(m, "so", &id, &path) <= 0)
		return;
	if (strlen(id) == CS_ID_LENGTH && client_id_is_prefix(id) && !model_session(feed->model, id))
		feed_ask_details(feed, id);
}

static void on_session_removed(Feed *feed, sd_bus_message *m)
{
	const char *id, *path;

	if (sd_bus_message_read(m, "so", &id, &path) > 0)
		model_remove_session(feed->model, id);
	model_make_stale(feed->model, NULL, MODEL_ALLOW_IP);
}

static void on_allow_ip_changed(Feed *feed, sd_bus_message *m)
{
	model_make_stale(feed->model, NULL, REACH | MODEL_POLICY);
}

static void on_policy_changed(Feed *feed, sd_bus_message *m)
{
	model_make_stale(feed->model, NULL, MODEL_POLICY);
	feed->stale_list = true;
}

static void on_event(Feed *feed, sd_bus_message *m)
{
	_cleanup_(client_event_done) ClientEvent event = { 0 };
	ModelSession *session;

	if (client_read_event(m, &event) < 0 || !streq(event.kind, "allow-ip"))
		return;
	session = *event.session ? model_session(feed->model, event.session) : NULL;
	if (session)
		model_make_stale(feed->model, session, REACH);
	model_make_stale(feed->model, NULL, MODEL_ALLOW_IP);
}

/* ---- a session ---- */

static void on_denied(Feed *feed, const char *id, sd_bus_message *m)
{
	ClientTable row = { 0 };

	if (client_read_row(m, CLIENT_DENIED_ROW, &row) >= 0)
		(void)model_take_denied(feed->model, id, &row);
}

static void on_state(Feed *feed, const char *id, sd_bus_message *m)
{
	ModelSession *session = model_session(feed->model, id);
	const char *state;
	int32_t status;

	if (!session || sd_bus_message_read(m, "si", &state, &status) <= 0)
		return;
	(void)model_set_state(feed->model, id, state, status);
	model_make_stale(feed->model, session, MODEL_ROUTES | MODEL_PORTS);
}

/*
 * The count of what was denied comes a few times a second and is taken as it is; for all else the properties
 * are asked for once more.
 */
static void on_properties(Feed *feed, const char *id, sd_bus_message *m)
{
	ModelSession *session = model_session(feed->model, id);
	const char *interface, *name;
	uint64_t count;

	if (!session || sd_bus_message_read_basic(m, 's', &interface) <= 0 ||
	    !streq(interface, CS_SESSION_INTERFACE) || sd_bus_message_enter_container(m, 'a', "{sv}") <= 0)
		return;
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		if (sd_bus_message_read_basic(m, 's', &name) <= 0)
			return;
		if (!streq(name, SESSION_PROPERTY_DENIED)) {
			session->details_stale = true;
			if (sd_bus_message_skip(m, "v") < 0)
				return;
		} else if (sd_bus_message_read(m, "v", "t", &count) > 0) {
			session->denied_count = count;
			session->details.denied = count;
			model_touch(feed->model, MODEL_SESSIONS);
		} else {
			return;
		}
		if (sd_bus_message_exit_container(m) < 0)
			return;
	}
}

static const struct {
	const char *member;
	void (*take)(Feed *feed, sd_bus_message *m);
} of_manager[] = {
	{ CS_SIGNAL_SESSION_ADDED, on_session_added },
	{ CS_SIGNAL_SESSION_REMOVED, on_session_removed },
	{ CS_SIGNAL_ALLOW_IP_CHANGED, on_allow_ip_changed },
	{ CS_SIGNAL_POLICY_CHANGED, on_policy_changed },
	{ CS_SIGNAL_EVENT, on_event },
	{ CS_SIGNAL_ROW, feed_take_row },
};

static const struct {
	const char *interface, *member;
	void (*take)(Feed *feed, const char *id, sd_bus_message *m);
} of_session[] = {
	{ CS_SESSION_INTERFACE, CS_SIGNAL_DENIED, on_denied },
	{ CS_SESSION_INTERFACE, CS_SIGNAL_STATE_CHANGED, on_state },
	{ PROPERTIES_INTERFACE, "PropertiesChanged", on_properties },
};

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	const char *path = sd_bus_message_get_path(m), *id;
	Feed *feed = userdata;

	if (!is_from_service(feed, m) || !path)
		return 0;
	if (streq(path, CS_MANAGER_PATH)) {
		for (size_t i = 0; i < ELEMENTSOF(of_manager); i++)
			if (sd_bus_message_is_signal(m, CS_MANAGER_INTERFACE, of_manager[i].member))
				of_manager[i].take(feed, m);
	} else if ((id = starts_with(path, CS_SESSION_ROOT "/"))) {
		for (size_t i = 0; i < ELEMENTSOF(of_session); i++)
			if (sd_bus_message_is_signal(m, of_session[i].interface, of_session[i].member))
				of_session[i].take(feed, id, m);
	}
	feed_pump(feed);
	feed_changed(feed);
	return 0;
}

int feed_listen(Feed *feed)
{
	int r;

	r = sd_bus_match_signal(feed->bus, NULL, LOCAL_INTERFACE, LOCAL_PATH, LOCAL_INTERFACE, "Disconnected",
				on_disconnected, feed);
	if (r >= 0)
		r = sd_bus_add_match_async(feed->bus, NULL,
					   "type='signal',sender='" BUS_DRIVER "',interface='" BUS_DRIVER
					   "',member='NameOwnerChanged',arg0='" CS_BUS_NAME "'",
					   on_owner, NULL, feed);
	if (r >= 0)
		r = sd_bus_add_match_async(feed->bus, NULL,
					   "type='signal',sender='" CS_BUS_NAME
					   "',path_namespace='" CS_MANAGER_PATH "'",
					   on_signal, NULL, feed);
	return r < 0 ? r : 0;
}
