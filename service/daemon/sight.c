/* SPDX-License-Identifier: MIT */
#include "service/daemon/sight.h"

#include "base/clock.h"
#include "service/daemon/call.h"
#include "service/daemon/log.h"

#define SEE_MESSAGE "Authentication is required to see and stop the coding agents of other users"

/* One question about one connection. */
struct Sight {
	Manager *manager;
	Client *client;
	sd_bus_message
		*call; /* waits for reply; NULL: the first message that the client's queue holds does */
	SightReply reply;
	AuthQuery *query;
	Sight *next;
};

bool sight_is_wide(const Client *client)
{
	return client->uid == 0 ||
	       (client->wide_until_usec > 0 && clock_usec(CLOCK_BOOTTIME) < client->wide_until_usec);
}

bool sight_allows(const Client *client, const Session *session)
{
	return !session->hidden && (session_visible(session, client->uid) || sight_is_wide(client));
}

static void sight_free(Sight *sight)
{
	for (Sight **s = &sight->manager->sights; *s; s = &(*s)->next)
		if (*s == sight) {
			*s = sight->next;
			break;
		}
	auth_query_cancel(sight->query);
	client_unref(sight->client);
	sd_bus_message_unref(sight->call);
	free(sight);
}

static size_t sights_count(const Manager *manager, uid_t uid)
{
	size_t n = 0;

	for (const Sight *s = manager->sights; s; s = s->next)
		n += s->client->uid == uid;
	return n;
}

/* In the library's words for an object that is not there. */
static void answer_unseen(sd_bus_message *m)
{
	(void)sd_bus_reply_method_errorf(m, SD_BUS_ERROR_UNKNOWN_OBJECT, "Unknown object '%s'.",
					 sd_bus_message_get_path(m));
}

static void answer_yes(Sight *sight)
{
	sd_bus_message *call = sight->call;
	int r;

	sight->client->wide_until_usec = clock_usec(CLOCK_BOOTTIME) + SIGHT_USEC;
	log_line("uid %u may see the sessions of other users", sight->client->uid);
	if (!call)
		return;
	r = sight->reply(sight->manager, sight->client, call);
	if (r < 0)
		(void)sd_bus_reply_method_errno(call, r, NULL);
}

static void on_decided(void *userdata, int result, const char *reason)
{
	Sight *sight = userdata;
	Clients *clients = sight->client->clients;

	sight->query = NULL;
	if (!sight->call)
		sight->client->asks_to_see = false;
	if (result >= 0) {
		answer_yes(sight);
	} else if (sight->call) {
		(void)sd_bus_reply_method_errorf(sight->call, auth_error_name(result), "%s", reason);
	} else {
		_cleanup_message_ sd_bus_message *m = client_take_held(sight->client);

		if (m)
			answer_unseen(m);
	}
	sight_free(sight);
	clients_release(clients);
}

/* Takes nothing when it fails. Return: as auth_ask(). */
static int sight_ask(Manager *manager, Client *client, sd_bus_message *m, Sight **ret)
{
	const AuthQuestion question = { .actions = { CS_ACTION_MANAGE_SESSIONS }, .message = SEE_MESSAGE };
	Sight *sight = calloc(1, sizeof(*sight));
	int r;

	if (!sight)
		return -ENOMEM;
	*sight = (Sight){ .manager = manager, .client = client_ref(client), .next = manager->sights };
	manager->sights = sight;
	r = auth_ask_question(manager->auth, client, m, &question, on_decided, sight, &sight->query);
	if (r < 0) {
		sight_free(sight);
		return r;
	}
	*ret = sight;
	return r;
}

bool sight_holds(Manager *manager, Client *client, sd_bus_message *m)
{
	const char *path = sd_bus_message_get_path(m),
		   *id = path ? starts_with(path, CS_SESSION_ROOT "/") : NULL;
	Session *session = id ? registry_find_shown(manager->registry, id) : NULL;
	Sight *sight;

	if (!session || sight_allows(client, session) || manager->stopping)
		return false;
	if (!sd_bus_message_get_expect_reply(m) || sights_count(manager, client->uid) >= SIGHTS_OF_USER_MAX)
		return false;
	if (sight_ask(manager, client, m, &sight) < 0)
		return false;
	client->asks_to_see = true;
	return true;
}

int sight_widen(Manager *manager, Client *client, sd_bus_message *call, SightReply reply,
		sd_bus_error *reterr)
{
	Sight *sight;
	int r;

	if (sight_is_wide(client))
		return reply(manager, client, call);
	if (sights_count(manager, client->uid) >= SIGHTS_OF_USER_MAX)
		return sd_bus_error_setf(reterr, CS_ERROR_LIMITS_EXCEEDED,
					 "%u calls of yours wait for leave to see other users' sessions; try "
					 "again later.",
					 SIGHTS_OF_USER_MAX);
	r = sight_ask(manager, client, call, &sight);
	if (r < 0)
		return r;
	sight->reply = reply;
	r = call_keep(call, &sight->call);
	if (r < 0) {
		sight_free(sight);
		return r;
	}
	return 1;
}

void sight_forget(Manager *manager, const Client *client)
{
	for (Sight *sight = manager->sights, *next; sight; sight = next) {
		next = sight->next;
		if (client && sight->client != client)
			continue;
		if (!client && sight->call)
			(void)sd_bus_reply_method_errorf(sight->call, CS_ERROR_SHUTTING_DOWN,
							 "The service is stopping; try again.");
		sight->client->asks_to_see = false;
		sight_free(sight);
	}
}
