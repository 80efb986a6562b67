/* SPDX-License-Identifier: MIT */
#include "service/daemon/verify-session.h"

#include "dbus/names.h"
#include "service/daemon/call.h"
#include "service/daemon/request.h"
#include "service/daemon/session-tables.h"
#include "service/daemon/verify-call.h"

typedef struct Waiting Waiting;

struct Waiting {
	Client *client;
	sd_bus_message *call;
	char *row_call;
	Waiting *next;
};

/* One run of the checks, and who waits for it. */
struct VerifyRun {
	Manager *manager;
	Session *session;
	bool probes, begun;
	RowList rows;
	Waiting *waiting;
	VerifyRun *next;
};

static void waiting_free(Waiting *waiting)
{
	client_unref(waiting->client);
	sd_bus_message_unref(waiting->call);
	free(waiting->row_call);
	free(waiting);
}

static void run_free(VerifyRun *run)
{
	for (VerifyRun **r = &run->manager->verify_runs; *r; r = &(*r)->next)
		if (*r == run) {
			*r = run->next;
			break;
		}
	for (Waiting *waiting = run->waiting, *next; waiting; waiting = next) {
		next = waiting->next;
		waiting_free(waiting);
	}
	row_list_done(&run->rows);
	free(run);
}

static void answer_error(sd_bus_message *call, const Session *session, int error)
{
	if (error == -EINPROGRESS)
		(void)sd_bus_reply_method_errorf(
			call, CS_ERROR_SESSION_SILENT,
			"The session %s is about to start and cannot be checked yet; try again.",
			session->id);
	else if (error == -EPROTONOSUPPORT)
		(void)sd_bus_reply_method_errorf(call, CS_ERROR_SESSION_SILENT, SESSION_FOREIGN_FORMAT,
						 session->id);
	else
		(void)sd_bus_reply_method_errorf(call, CS_ERROR_NO_SUCH_SESSION,
						 "The session %s ends and is not checked any more; "
						 "'claude-sandbox sessions' lists what "
						 "runs.",
						 session->id);
}

/* Was there nothing to check? Everything else is an answer: a jail that keeps the checks from ending fails.
 */
static bool never_began(int result)
{
	return result == -EINPROGRESS || result == -ECANCELED || result == -ECONNRESET ||
	       result == -ENOTCONN || result == -EPIPE || result == -EPROTONOSUPPORT;
}

/* Takes the run. */
static void run_answer(VerifyRun *run, int result, const char *problem)
{
	_cleanup_free_ char *silent = NULL;

	if (result == -ETIMEDOUT && !problem)
		(void)refuse(&silent, result, "the session %s fell silent ('claude-sandbox stop %s' ends it)",
			     run->session->id, run->session->id);
	const VerifyEnd end = {
		.failed = result == LINK_CHECK_FAILED,
		.why = result == 0 || result == LINK_CHECK_FAILED ? NULL
		       : problem                                  ? problem
		       : result == -ETIMEDOUT                     ? silent ?: "the session fell silent"
								  : strerror(-result),
	};

	const Signals *signals = &run->manager->signals;
	const Row *last = NULL;
	int passed = never_began(result) ? result : verify_conclude(&run->rows, &end, &last);

	for (Waiting *waiting = run->waiting; waiting; waiting = waiting->next) {
		if (passed >= 0 && last && waiting->row_call)
			row_send(signals, waiting->client, waiting->row_call, last, false);
		if (never_began(result))
			answer_error(waiting->call, run->session, result);
		else if (passed < 0 || verify_reply(waiting->call, &run->rows, passed) < 0)
			(void)sd_bus_reply_method_errorf(waiting->call, SD_BUS_ERROR_FAILED,
							 "The answer could not be sent; try again.");
	}
	run_free(run);
}

static void begin_next(Manager *manager, const Session *session);

static void on_done(void *userdata, int result, const char *problem)
{
	VerifyRun *run = userdata;
	Manager *manager = run->manager;
	const Session *session = run->session;

	run_answer(run, result, problem);
	begin_next(manager, session);
}

static VerifyRun *run_of(const Manager *manager, const Session *session)
{
	for (VerifyRun *run = manager->verify_runs; run; run = run->next)
		if (run->session == session && run->begun)
			return run;
	return NULL;
}

/* The oldest one about session that has not begun, where none is under way. */
static void begin_next(Manager *manager, const Session *session)
{
	while (!run_of(manager, session)) {
		VerifyRun *oldest = NULL;
		int r;

		for (VerifyRun *run = manager->verify_runs; run; run = run->next)
			if (run->session == session)
				oldest = run;
		if (!oldest || (oldest->session->keeper && oldest->session->state == SESSION_STARTING))
			return;
		oldest->begun = true;
		r = oldest->session->keeper
			    ? keeper_verify(oldest->session->keeper, oldest->probes, on_done, oldest)
			    : -ENOTCONN;
		if (r >= 0)
			return;
		run_answer(oldest, r, NULL);
	}
}

static unsigned calls_of(const Manager *manager, uid_t uid)
{
	unsigned n = 0;

	for (const VerifyRun *run = manager->verify_runs; run; run = run->next)
		for (const Waiting *w = run->waiting; w; w = w->next)
			n += w->client->uid == uid;
	return n;
}

static VerifyRun *find_unbegun(const Manager *manager, const Session *session, bool probes)
{
	for (VerifyRun *run = manager->verify_runs; run; run = run->next)
		if (run->session == session && run->probes == probes && !run->begun)
			return run;
	return NULL;
}

static VerifyRun *run_new(Manager *manager, Session *session, bool probes)
{
	VerifyRun *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	*run = (VerifyRun){
		.manager = manager, .session = session, .probes = probes, .next = manager->verify_runs
	};
	manager->verify_runs = run;
	return run;
}

int verify_session_begin(Manager *manager, Client *client, sd_bus_message *call, Session *session,
			 sd_bus_error *reterr)
{
	_cleanup_free_ char *row_call = NULL;
	uint64_t probes = 0;
	const OptionSpec options[] = { { CS_OPTION_CALL, 's', NULL, &row_call },
				       { CS_OPTION_PROBES, 'b', &probes, NULL } };
	Waiting *waiting;
	VerifyRun *run;
	int r;

	r = options_read(call, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	if (client->uid != 0 && calls_of(manager, client->uid) >= VERIFY_CALLS_OF_USER_MAX)
		return sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"%u calls of yours wait for sessions to be checked; try again later.",
			VERIFY_CALLS_OF_USER_MAX);
	waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	waiting->client = client_ref(client);
	waiting->row_call = TAKE_PTR(row_call);
	r = call_keep(call, &waiting->call);
	run = r < 0 ? NULL : find_unbegun(manager, session, probes) ?: run_new(manager, session, probes);
	if (!run) {
		waiting_free(waiting);
		return r < 0 ? r : -ENOMEM;
	}
	waiting->next = run->waiting;
	run->waiting = waiting;
	begin_next(manager, session);
	return 1;
}

void verify_session_changed(Manager *manager, const Session *session)
{
	begin_next(manager, session);
}

/* Whatever was begun is answered: its link has ended. */
void verify_session_ended(Manager *manager, const Session *session)
{
	for (VerifyRun *run = manager->verify_runs, *next; run; run = next) {
		next = run->next;
		if (run->session == session)
			run_answer(run, -ENOTCONN, NULL);
	}
}

void verify_session_rows(Manager *manager, Session *session, const LinkRow *rows, uint32_t n)
{
	VerifyRun *run = run_of(manager, session);

	for (uint32_t i = 0; run && i < n; i++) {
		if (row_list_add_said(&run->rows, &rows[i]) < 0)
			continue;
		for (const Waiting *waiting = run->waiting; waiting; waiting = waiting->next)
			if (waiting->row_call)
				row_send(&manager->signals, waiting->client, waiting->row_call,
					 &run->rows.rows[run->rows.n - 1], false);
	}
}

void verify_session_client_gone(Manager *manager, const Client *client)
{
	for (VerifyRun *run = manager->verify_runs; run; run = run->next)
		for (Waiting **w = &run->waiting; *w;) {
			Waiting *gone = *w;

			if (gone->client != client) {
				w = &gone->next;
				continue;
			}
			*w = gone->next;
			waiting_free(gone);
		}
}

void verify_session_end_all(Manager *manager)
{
	for (VerifyRun *run = manager->verify_runs; run; run = run->next) {
		for (Waiting *waiting = run->waiting, *next; waiting; waiting = next) {
			next = waiting->next;
			(void)sd_bus_reply_method_errorf(waiting->call, CS_ERROR_SHUTTING_DOWN,
							 "The service is stopping; try again.");
			waiting_free(waiting);
		}
		run->waiting = NULL;
	}
}
