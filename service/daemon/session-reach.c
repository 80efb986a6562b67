/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-reach.h"

#include "service/daemon/keeper.h"

#define ENVIRONMENT "environment " /* ConfigValue.origin */
#define ROWS_MAX (2u * CONFIG_VALUES_MAX)

typedef enum ReachKind {
	REACH_SYNC,
	REACH_ALLOW,
	REACH_REVOKE,
	REACH_LIST,
} ReachKind;

struct ReachJob {
	SessionReach *reach;
	ReachKind kind;
	AllowList *list;
	char *address;
	uint64_t usec;
	size_t next_text; /* of list, to be looked at next */
	int result;       /* the first refusal */
	char *problem;
	ReachFunction function;
	void *userdata;
	ReachJob *next;
};

struct SessionReach {
	Session *session;
	char **taken; /* NULL: not known */
	bool known, asking;
	ReachJob *jobs; /* the first is under way */
};

/* ---- the list ---- */

AllowList *allow_list_new(const Config *config)
{
	AllowList *list = calloc(1, sizeof(*list));
	const ConfigValue *value;
	size_t index = 0;

	if (!list)
		return NULL;
	list->n_ref = 1;
	while ((value = config_next(config, CONFIG_ALLOW_IP, &index))) {
		if (starts_with(value->origin, ENVIRONMENT))
			continue;
		if (strings_append(&list->texts, value->text) < 0 ||
		    strings_append(&list->comments, value->comment) < 0)
			return allow_list_unref(list);
		list->n++;
	}
	return list;
}

AllowList *allow_list_ref(AllowList *list)
{
	list->n_ref++;
	return list;
}

AllowList *allow_list_unref(AllowList *list)
{
	if (!list || --list->n_ref > 0)
		return NULL;
	strings_free(list->texts);
	strings_free(list->comments);
	free(list);
	return NULL;
}

static bool has(char *const *texts, const char *text)
{
	for (size_t i = 0; texts && texts[i]; i++)
		if (streq(texts[i], text))
			return true;
	return false;
}

static void drop(char **texts, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; texts && texts[i]; i++)
		if (streq(texts[i], text))
			free(texts[i]);
		else
			texts[n++] = texts[i];
	if (texts)
		texts[n] = NULL;
}

/* ---- jobs ---- */

static ReachJob *job_free(ReachJob *job)
{
	allow_list_unref(job->list);
	free(job->address);
	free(job->problem);
	free(job);
	return NULL;
}

static void reach_run(SessionReach *reach);

/* The first job is over; its function may enqueue another, or free everything but reach. */
static void finish(SessionReach *reach, int result, const char *problem, const LinkCells *cells)
{
	ReachJob *job = reach->jobs;

	reach->jobs = job->next;
	if (job->result < 0 && result == 0) {
		result = job->result;
		problem = job->problem;
	}
	if (job->function)
		job->function(job->userdata, result, problem, cells);
	job_free(job);
}

bool session_reach_is_refusal(int result)
{
	return result != -ETIMEDOUT && result != -ECONNRESET && result != -ECANCELED && result != -ENOTCONN &&
	       result != -EPIPE && result != -EBADMSG && result != -EAGAIN && result != -EBUSY &&
	       result != -EPROTONOSUPPORT;
}

/* Whoever does not answer is not asked what else was to be said. */
static void fail_all(SessionReach *reach, int result)
{
	while (reach->jobs)
		finish(reach, result, NULL, NULL);
}

static void on_answer(void *userdata, int result, const char *problem)
{
	SessionReach *reach = userdata;
	ReachJob *job = reach->jobs;

	reach->asking = false;
	if (result == -ECANCELED)
		return; /* the session is being freed */
	if (result < 0 && !session_reach_is_refusal(result)) {
		fail_all(reach, result);
		return;
	}
	if (job->kind != REACH_SYNC) {
		finish(reach, result, problem, NULL);
		reach_run(reach);
		return;
	}
	if (result < 0 && job->result == 0) {
		job->result = result;
		job->problem = problem ? strdup(problem) : NULL;
	}
	/* What it refused to close it still has; asking again would not end. */
	if (result < 0 && job->next_text == 0) {
		finish(reach, result, problem, NULL);
	} else if (result == 0 && job->next_text == 0) {
		drop(reach->taken, job->address);
	} else if (result == 0 && strings_append(&reach->taken, job->address) < 0) {
		reach->known = false;
	}
	reach_run(reach);
}

static void on_taken(void *userdata, int result, LinkCells *cells)
{
	SessionReach *reach = userdata;

	reach->asking = false;
	if (result == -ECANCELED)
		return;
	if (result < 0) {
		fail_all(reach, result);
		return;
	}
	reach->taken = strings_free(reach->taken);
	for (size_t i = 0; i < cells->n_rows; i++) {
		char **row = cells->cells + i * cells->n_columns;

		if (streq(row[3], "1") && strings_append(&reach->taken, row[0]) < 0) {
			fail_all(reach, -ENOMEM);
			return;
		}
	}
	reach->known = true;
	reach_run(reach);
}

static void on_rows(void *userdata, int result, LinkCells *cells)
{
	SessionReach *reach = userdata;

	reach->asking = false;
	if (result == -ECANCELED)
		return;
	finish(reach, result, NULL, cells);
	reach_run(reach);
}

static int set_address(ReachJob *job, const char *address)
{
	char *copy = strdup(address);

	if (!copy)
		return -ENOMEM;
	free(job->address);
	job->address = copy;
	return 0;
}

/* Return: 1 when something was said; 0 when nothing is left to say; a negative errno. */
static int sync_step(SessionReach *reach, ReachJob *job)
{
	Keeper *keeper = reach->session->keeper;
	int r;

	if (!reach->known) {
		r = keeper_get_table(keeper, LINK_TABLE_ALLOWED, ROWS_MAX, on_taken, reach);
		return r < 0 ? r : 1;
	}
	for (size_t i = 0; job->next_text == 0 && reach->taken && reach->taken[i]; i++) {
		if (has(job->list->texts, reach->taken[i]))
			continue;
		r = set_address(job, reach->taken[i]);
		if (r >= 0)
			r = keeper_revoke(keeper, job->address, true, on_answer, reach);
		return r < 0 ? r : 1;
	}
	while (job->next_text < job->list->n) {
		size_t i = job->next_text++;

		if (has(reach->taken, job->list->texts[i]))
			continue;
		r = set_address(job, job->list->texts[i]);
		if (r >= 0)
			r = keeper_allow(keeper, job->address, job->list->comments[i], 0, true, on_answer,
					 reach);
		return r < 0 ? r : 1;
	}
	return 0;
}

static int job_step(SessionReach *reach, ReachJob *job)
{
	Keeper *keeper = reach->session->keeper;
	int r = 0;

	if (!keeper)
		return -ENOTCONN;
	switch (job->kind) {
	case REACH_SYNC:
		return sync_step(reach, job);
	case REACH_ALLOW:
		r = keeper_allow(keeper, job->address, "", job->usec, false, on_answer, reach);
		break;
	case REACH_REVOKE:
		r = keeper_revoke(keeper, job->address, false, on_answer, reach);
		break;
	case REACH_LIST:
		r = keeper_get_table(keeper, LINK_TABLE_ALLOWED, ROWS_MAX, on_rows, reach);
		break;
	}
	return r < 0 ? r : 1;
}

static void reach_run(SessionReach *reach)
{
	while (reach->jobs && !reach->asking) {
		int r = job_step(reach, reach->jobs);

		if (r > 0)
			reach->asking = true;
		else
			finish(reach, r, NULL, NULL);
	}
}

static int enqueue(Session *session, ReachJob template, const char *address, ReachJob **ret)
{
	SessionReach *reach = session->reach;
	ReachJob *job, **last;

	if (!reach)
		return -ENOTCONN;
	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = template;
	job->reach = reach;
	job->address = address ? strdup(address) : NULL;
	if (address && !job->address) {
		free(job);
		return -ENOMEM;
	}
	if (job->list)
		allow_list_ref(job->list);
	for (last = &reach->jobs; *last; last = &(*last)->next)
		;
	*last = job;
	*ret = job;
	return 0;
}

int session_reach_sync(Session *session, AllowList *list, ReachFunction function, void *userdata,
		       ReachJob **ret)
{
	return enqueue(
		session,
		(ReachJob){ .kind = REACH_SYNC, .list = list, .function = function, .userdata = userdata },
		NULL, ret);
}

int session_reach_allow(Session *session, const char *address, uint64_t usec, ReachFunction function,
			void *userdata, ReachJob **ret)
{
	return enqueue(
		session,
		(ReachJob){ .kind = REACH_ALLOW, .usec = usec, .function = function, .userdata = userdata },
		address, ret);
}

int session_reach_revoke(Session *session, const char *address, ReachFunction function, void *userdata,
			 ReachJob **ret)
{
	return enqueue(session,
		       (ReachJob){ .kind = REACH_REVOKE, .function = function, .userdata = userdata },
		       address, ret);
}

int session_reach_list(Session *session, ReachFunction function, void *userdata, ReachJob **ret)
{
	return enqueue(session, (ReachJob){ .kind = REACH_LIST, .function = function, .userdata = userdata },
		       NULL, ret);
}

void session_reach_begin(Session *session)
{
	if (session->reach)
		reach_run(session->reach);
}

void reach_job_cancel(ReachJob *job)
{
	job->function = NULL;
}

bool session_reach_has_more(const Session *session, const AllowList *list)
{
	const SessionReach *reach = session->reach;

	for (size_t i = 0; reach && reach->taken && reach->taken[i]; i++)
		if (!has(list->texts, reach->taken[i]))
			return true;
	return false;
}

bool session_reach_is(const Session *session, const AllowList *list)
{
	const SessionReach *reach = session->reach;

	if (!reach || !reach->known || reach->jobs || session_reach_has_more(session, list))
		return false;
	for (size_t i = 0; i < list->n; i++)
		if (!has(reach->taken, list->texts[i]))
			return false;
	return true;
}

int session_reach_new(Session *session, const Config *known)
{
	_cleanup_(allow_list_unrefp) AllowList *list = known ? allow_list_new(known) : NULL;
	SessionReach *reach = calloc(1, sizeof(*reach));

	if (!reach || (known && !list)) {
		free(reach);
		return -ENOMEM;
	}
	reach->session = session;
	reach->known = known;
	if (list)
		reach->taken = TAKE_PTR(list->texts);
	session->reach = reach;
	return 0;
}

SessionReach *session_reach_free(SessionReach *reach)
{
	if (!reach)
		return NULL;
	while (reach->jobs)
		finish(reach, -ESRCH, NULL, NULL);
	strings_free(reach->taken);
	free(reach);
	return NULL;
}
