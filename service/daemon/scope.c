/* SPDX-License-Identifier: MIT */
#include "service/daemon/scope.h"

#include <systemd/sd-event.h>

#include "dbus/wire.h"

#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD_NAME ".Manager"
/* From SIGTERM to SIGKILL, when the slice is stopped: a session needs five for its agent. */
#define STOP_USEC (10 * USEC_PER_SEC)

struct ScopeQuery {
	sd_bus_slot *match, *call;
	sd_event_source *timer;
	ScopePlan plan; /* but for its group, which is the caller's */
	bool plain;     /* asked without what systemd may not know */
	char *unit;
	char *job; /* known from the answer */
	ScopeFunction function;
	void *userdata;
	/* A job may be done before its number is known. */
	char *done_job, *done_result;
};

ScopeQuery *scope_cancel(ScopeQuery *query)
{
	if (!query)
		return NULL;
	sd_bus_slot_unref(query->match);
	sd_bus_slot_unref(query->call);
	sd_event_source_disable_unref(query->timer);
	free(query->unit);
	free(query->job);
	free(query->done_job);
	free(query->done_result);
	free(query);
	return NULL;
}

static void query_finish(ScopeQuery *query, int result, const char *problem)
{
	ScopeFunction function = query->function;
	void *userdata = query->userdata;

	function(userdata, result, problem);
	scope_cancel(query);
}

static void query_look(ScopeQuery *query)
{
	if (!query->job || !query->done_job || !streq(query->job, query->done_job))
		return;
	if (streq(query->done_result, "done"))
		query_finish(query, 0, NULL);
	else
		query_finish(query, -ECANCELED, query->done_result);
}

static int on_removed(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	ScopeQuery *query = userdata;
	const char *job, *unit, *result;
	uint32_t id;

	if (sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0 || !streq(unit, query->unit))
		return 0;
	free(query->done_job);
	free(query->done_result);
	query->done_job = strdup(job);
	query->done_result = strdup(result);
	if (query->done_job && query->done_result)
		query_look(query);
	return 0;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr);

static int append_properties(sd_bus_message *m, const ScopePlan *plan, bool plain)
{
	char slice[sizeof("user-4294967295.slice")];
	int r;

	(void)snprintf(slice, sizeof(slice), "user-%u.slice", plan->uid);
	r = sd_bus_message_open_container(m, 'a', "(sv)");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "Description", "s", "A coding agent in its jail");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "Slice", "s", slice);
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, (uint32_t)plan->pid);
	/* Gone as soon as it is empty, however it ended. */
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "CollectMode", "s", "inactive-or-failed");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "TimeoutStopUSec", "t", STOP_USEC);
	/* Else it stops the whole session when the kernel kills one process in it for its memory. Older ones have
	 * this for services alone. */
	if (r >= 0 && !plain)
		r = sd_bus_message_append(m, "(sv)", "OOMPolicy", "s", "continue");
	if (r >= 0 && plan->tasks_max > 0)
		r = sd_bus_message_append(m, "(sv)", "TasksMax", "t", plan->tasks_max);
	if (r >= 0 && plan->memory_max > 0)
		r = sd_bus_message_append(m, "(sv)(sv)", "MemoryMax", "t", plan->memory_max, "MemorySwapMax",
					  "t", UINT64_C(0));
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int query_call(ScopeQuery *query, sd_bus *bus)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
					   "StartTransientUnit");
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, false);
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", query->unit, "fail");
	if (r >= 0)
		r = append_properties(m, &query->plan, query->plain);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	return r < 0 ? r : sd_bus_call_async(bus, &query->call, m, on_answer, query, SCOPE_USEC);
}

/* A property that this systemd does not have for a scope. */
static bool knows_less(const sd_bus_error *error)
{
	return sd_bus_error_has_names(error, SD_BUS_ERROR_PROPERTY_READ_ONLY, SD_BUS_ERROR_UNKNOWN_PROPERTY,
				      SD_BUS_ERROR_INVALID_ARGS);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	ScopeQuery *query = userdata;
	const char *job;

	if (error && !query->plain && knows_less(error)) {
		query->plain = true;
		query->call = sd_bus_slot_unref(query->call);
		if (query_call(query, sd_bus_message_get_bus(reply)) >= 0)
			return 0;
	}
	if (error || sd_bus_message_read(reply, "o", &job) < 0) {
		query_finish(query, -ECANCELED, error && error->message ? error->message : "no job");
		return 0;
	}
	query->job = strdup(job);
	if (!query->job)
		query_finish(query, -ENOMEM, NULL);
	else
		query_look(query);
	return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	query_finish(userdata, -ETIMEDOUT, "no answer");
	return 0;
}

int scope_start(sd_bus *bus, const ScopePlan *plan, ScopeFunction function, void *userdata, ScopeQuery **ret)
{
	ScopeQuery *query;
	int r;

	query = calloc(1, sizeof(*query));
	if (!query)
		return -ENOMEM;
	query->function = function;
	query->userdata = userdata;
	query->plan = *plan;
	query->plan.group = NULL;
	query->unit = strdup(strrchr(plan->group, '/') + 1);
	if (!query->unit) {
		scope_cancel(query);
		return -ENOMEM;
	}
	/* The bus works in order: the match is there before the job can be done. */
	r = sd_bus_match_signal_async(bus, &query->match, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
				      "JobRemoved", on_removed, NULL, query);
	if (r >= 0)
		r = query_call(query, bus);
	if (r >= 0)
		r = sd_event_add_time_relative(sd_bus_get_event(bus), &query->timer, CLOCK_MONOTONIC,
					       SCOPE_USEC, 0, on_timeout, query);
	if (r < 0) {
		scope_cancel(query);
		return r;
	}
	*ret = query;
	return 0;
}
