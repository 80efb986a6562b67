/* SPDX-License-Identifier: MIT */
#include "service/daemon/allow-call.h"

#include "dbus/wire.h"
#include "service/daemon/call.h"

/* For a file with very many changes: a session may answer so often in a second, each time within its two. */
#define FOLLOW_USEC (60 * USEC_PER_SEC)

static size_t calls_count(const Manager *manager, uid_t uid, size_t *ret_all)
{
	size_t n = 0, all = 0;

	for (const AllowCall *c = manager->allow_calls; c; c = c->next) {
		if (!c->client)
			continue;
		all++;
		n += c->client->uid == uid;
	}
	*ret_all = all;
	return n;
}

int allow_call_new(Manager *manager, AllowKind kind, Client *client, sd_bus_message *m, AllowCall **ret,
		   sd_bus_error *reterr)
{
	AllowCall *call;
	size_t all;
	int r;

	if (client && client->uid != 0 &&
	    (calls_count(manager, client->uid, &all) >= ALLOW_CALLS_OF_USER_MAX || all >= ALLOW_CALLS_MAX))
		return sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"Too many calls about addresses wait for an answer; try again later.");
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	*call = (AllowCall){ .manager = manager, .kind = kind, .next = manager->allow_calls };
	manager->allow_calls = call;
	if (client)
		call->client = client_ref(client);
	r = m ? call_keep(m, &call->call) : 0;
	if (r < 0) {
		allow_call_free(call);
		return r;
	}
	*ret = call;
	return 0;
}

AllowCall *allow_call_free(AllowCall *call)
{
	for (AllowCall **c = &call->manager->allow_calls; *c; c = &(*c)->next)
		if (*c == call) {
			*c = call->next;
			break;
		}
	for (AllowWait *wait = call->waits, *next; wait; wait = next) {
		next = wait->next;
		if (wait->job)
			reach_job_cancel(wait->job);
		free(wait);
	}
	auth_query_cancel(call->query);
	client_unref(call->client);
	sd_bus_message_unref(call->call);
	sd_event_source_disable_unref(call->timer);
	allow_list_unref(call->list);
	for (size_t i = 0; i < call->n_cells; i++)
		free(call->cells[i]);
	free(call->cells);
	free(call->address);
	free(call->comment);
	free(call);
	return NULL;
}

void allow_call_refuse(AllowCall *call, const char *name, const char *sentence)
{
	if (call->call)
		(void)sd_bus_reply_method_errorf(call->call, name, "%s", sentence);
	allow_call_free(call);
}

AllowWait *allow_call_expect(AllowCall *call, const Session *session)
{
	AllowWait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return NULL;
	wait->call = call;
	wait->result = -ETIMEDOUT;
	memcpy(wait->id, session->id, sizeof(wait->id));
	wait->next = call->waits;
	call->waits = wait;
	call->n_asked++;
	call->n_waiting++;
	return wait;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	AllowCall *call = userdata;

	call->done(call);
	return 0;
}

static void wait_ended(AllowCall *call)
{
	/* Not from within the session's answer, whose sender may be ended by what is done. */
	if (--call->n_waiting == 0 && call->timer)
		(void)sd_event_source_set_time(call->timer, 0);
}

void allow_wait_done(void *userdata, int result, const char *problem, const LinkCells *cells)
{
	AllowWait *wait = userdata;

	wait->job = NULL;
	wait->result = result;
	wait_ended(wait->call);
}

void allow_call_wait(AllowCall *call)
{
	Manager *manager = call->manager;
	int r;

	r = sd_event_add_time_relative(manager->event, &call->timer, CLOCK_MONOTONIC,
				       call->n_waiting == 0         ? 0
				       : call->kind == ALLOW_FOLLOW ? FOLLOW_USEC
								    : LINK_ANSWER_USEC,
				       1, on_time, call);
	if (r < 0) {
		call->done(call);
		return;
	}
	for (AllowWait *wait = call->waits, *next; wait; wait = next) {
		Session *session = registry_find(manager->registry, wait->id);

		next = wait->next;
		if (session)
			session_reach_begin(session);
	}
}
