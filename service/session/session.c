/* SPDX-License-Identifier: MIT */
#include "service/session/session-state.h"

#include <signal.h>
#include <sys/wait.h>

#include "dbus/errors.h"
#include "dbus/names.h"
#include "service/session/covers.h"
#include "service/session/memory-events.h"
#include "service/session/orphans.h"
#include "service/session/program.h"
#include "service/session/tables.h"

#define HANG_UP_USEC (5 * USEC_PER_SEC) /* from a closed terminal to the kill */
#define GRACE_MAX_USEC (60 * USEC_PER_SEC)
#define ENDING_USEC (1 * USEC_PER_SEC) /* from the kill of the leader to the kill of bwrap, and on */
#define SAYING_USEC (2 * USEC_PER_SEC)
#define ORPHANS_MSEC 2000

/* ---- what others are told ---- */

static SessionState session_state(const Session *session)
{
	if (session->phase >= PHASE_ENDING)
		return SESSION_ENDING;
	if (session->phase == PHASE_STARTING)
		return SESSION_STARTING;
	if (session->stopped)
		return SESSION_STOPPED;
	return session_is_offline(session) ? SESSION_OFFLINE : SESSION_RUNNING;
}

void session_tell(Session *session)
{
	link_server_set_status(session->link, &(LinkStatus){ .state = session_state(session),
							     .leader = session->leader,
							     .jailed = session->network.jailed,
							     .exit_status = session->status,
							     .denied = ledger_total(session->ledger) });
}

static void session_deadline(Session *session, uint64_t usec)
{
	(void)sd_event_source_set_time_relative(session->deadline, usec);
	(void)sd_event_source_set_enabled(session->deadline, SD_EVENT_ONESHOT);
}

void session_warn(Session *session, char *const *warnings)
{
	for (size_t i = 0; warnings && warnings[i]; i++)
		(void)strings_append(&session->warnings, warnings[i]);
}

/* ---- the end ---- */

static void session_leave_if_done(Session *session)
{
	if (session->phase == PHASE_SAYING && session->delivered && lifeline_is_flushed(session->lifeline))
		(void)sd_event_exit(session->event, 0);
}

void session_say(Session *session)
{
	session->phase = PHASE_SAYING;
	session->holder_source = sd_event_source_disable_unref(session->holder_source);
	holder_done(&session->holder);
	session->pid_set = agent_pid_free(session->pid_set);
	session->reports = reports_free(session->reports);
	session->leader_fd = close_fd(session->leader_fd);
	ledger_stop(session->ledger);
	if (ledger_total(session->ledger) > 0)
		link_server_denied(session->link);
	preparation_release(&session->preparation);
	doctor_finish(session->doctor);
	if (session->planned)
		covers_clear(&session->plan, session->request.uid);
	session_deadline(session, SAYING_USEC);
	/*
	 * The person need not wait until pasta, which was killed before, has put its memory away, nor until
	 * the kernel has taken the ledger's device down.
	 */
	if (!session->problem) {
		/* Init is gone without a word: it was killed, and with it everything else. */
		if (!session->status_known)
			session->status = W_EXITCODE(0, SIGKILL);
		if (!session->why)
			session->why = memory_events_sentence(
				session->memory_fd,
				config_number(&session->request.config, CONFIG_MEMORY_MAX));
		if (session->why)
			lifeline_warning(session->lifeline, session->why);
		session_say_state(session);
		lifeline_exited(session->lifeline, session->status);
	}
	network_done(&session->network);
	session->state = state_watch_free(session->state);
	session->wire = wire_free(session->wire);
	session->ports = ports_free(session->ports);
	(void)orphans_end(ORPHANS_MSEC);
	if (session->problem) {
		if (link_server_failed(session->link, session->error, session->problem) < 0)
			(void)sd_event_exit(session->event, 1);
	} else if (link_server_exited(session->link, session->status, session->why,
				      ledger_total(session->ledger)) < 0) {
		(void)sd_event_exit(session->event, 1);
	}
	session_leave_if_done(session);
}

/* The leader first: with it goes everything in its pid namespace, and bwrap, which waits for it. */
static void session_kill(Session *session, bool everything)
{
	if (session->leader_fd >= 0)
		(void)program_signal(session->leader_fd, SIGKILL);
	if (session->holder.pidfd >= 0 && (everything || session->leader_fd < 0))
		(void)program_signal(session->holder.pidfd, SIGKILL);
}

void session_end(Session *session)
{
	if (session->phase >= PHASE_ENDING)
		return;
	session->phase = PHASE_ENDING;
	session_tell(session);
	terminal_keys_done(&session->keys);
	session->query = git_query_free(session->query);
	wire_end(session->wire);
	ports_stop(session->ports);
	session->read_back = sd_event_source_disable_unref(session->read_back);
	session->flows = sd_event_source_disable_unref(session->flows);
	session_verify_end(session);
	mask_watch_stop(session->masks);
	if (session->holder.pidfd < 0 || !session->holder_source) {
		session_finished(session);
		return;
	}
	/* After a report of the exit init and bwrap end by themselves. */
	if (!session->status_known)
		session_kill(session, false);
	session_deadline(session, ENDING_USEC);
}

void session_end_because(Session *session, const char *why)
{
	if (session->phase != PHASE_RUNNING)
		return;
	if (!session->why)
		session->why = strdup(why);
	session_end(session);
}

/* The launch fails. The first cause stands. */
void session_fail(Session *session, const char *error, const char *problem)
{
	if (session->phase != PHASE_STARTING)
		return;
	doctor_failed(session->doctor, problem ?: "out of memory");
	session->error = strdup(error);
	session->problem = strdup(problem ?: "out of memory");
	if (!session->error || !session->problem) {
		(void)sd_event_exit(session->event, 1);
		return;
	}
	session_end(session);
}

void session_hang_up(Session *session, uint64_t grace_usec)
{
	uint64_t now_usec = 0;

	if (session->phase == PHASE_STARTING) {
		session_fail(session, CS_ERROR_SESSION_DIED, "the session was ended before its agent ran");
		return;
	}
	if (session->phase != PHASE_RUNNING)
		return;
	if (grace_usec == 0 || reports_send(session->reports, REPORT_HANGUP, 0) == -EPIPE) {
		session_end(session);
		return;
	}
	/* Whoever asks again may shorten the time, never lengthen it. */
	grace_usec = MIN_OF(grace_usec, GRACE_MAX_USEC);
	(void)sd_event_now(session->event, CLOCK_MONOTONIC, &now_usec);
	if (session->kill_at_usec != 0 && session->kill_at_usec <= now_usec + grace_usec)
		return;
	session->kill_at_usec = now_usec + grace_usec;
	session_deadline(session, grace_usec);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	Session *session = userdata;

	switch (session->phase) {
	case PHASE_STARTING:
		session_fail(session, CS_ERROR_JAIL_UNAVAILABLE,
			     "the jail did not start within 30 seconds; is the machine overloaded?");
		break;
	case PHASE_RUNNING:
		session_end(session);
		break;
	case PHASE_ENDING:
		session_kill(session, true);
		session_deadline(session, ENDING_USEC);
		break;
	case PHASE_SAYING:
		(void)sd_event_exit(session->event, 0);
		break;
	}
	return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	session_hang_up(userdata, HANG_UP_USEC);
	return 0;
}

/* ---- link and lifeline ---- */

static void on_link_stop(void *userdata, uint64_t grace_usec, const char *why)
{
	Session *session = userdata;

	if (session->phase == PHASE_RUNNING && why[0] && !session->why)
		session->why = strdup(why);
	session_hang_up(session, grace_usec);
}

static int on_link_table(void *userdata, LinkTable table, LinkRow **ret_rows, uint32_t *ret_n)
{
	Session *session = userdata;

	return tables_make(&(TablesSource){ .plan = session->planned ? &session->plan : NULL,
					    .network = &session->network,
					    .reach = session->reach,
					    .ledger = session->ledger,
					    .ports = session->ports,
					    .warnings = session->warnings,
					    .pid_error = session->pid_error,
					    .offline = session_is_offline(session),
					    .root = session->request.uid == 0,
					    .resolver = session->preparation.resolver },
			   table, ret_rows, ret_n);
}

static void on_link_delivered(void *userdata)
{
	Session *session = userdata;

	session->delivered = true;
	session_leave_if_done(session);
}

static void on_lifeline_signal(void *userdata, int number)
{
	Session *session = userdata;

	if (session->phase == PHASE_RUNNING)
		(void)reports_send(session->reports, REPORT_SIGNAL, number);
}

static void on_lifeline_key(void *userdata, int number)
{
	Session *session = userdata;

	if (session->phase == PHASE_RUNNING)
		(void)reports_send(session->reports, REPORT_KEY, number);
}

static void on_lifeline_resume(void *userdata, bool behind)
{
	Session *session = userdata;

	if (session->phase == PHASE_RUNNING)
		(void)reports_send(session->reports, behind ? REPORT_RESUME_BEHIND : REPORT_RESUME, 0);
}

static void on_lifeline_gone(void *userdata)
{
	session_hang_up(userdata, HANG_UP_USEC);
}

/* ---- birth and death ---- */

static int on_link_denied(void *userdata, LinkRow **ret_rows, uint32_t *ret_n, uint64_t *ret_total)
{
	const Session *session = userdata;

	*ret_total = ledger_total(session->ledger);
	return ledger_news(session->ledger, ret_rows, ret_n);
}

void session_denied(void *userdata)
{
	const Session *session = userdata;

	link_server_denied(session->link);
}

static int session_init(Session *session, int listen_fd, int lifeline_fd)
{
	static const LinkServerCalls link_calls = { .stop = on_link_stop,
						    .table = on_link_table,
						    .reach = session_link_reach,
						    .verify = session_verify_running,
						    .denied = on_link_denied,
						    .delivered = on_link_delivered };
	static const LifelineCalls lifeline_calls = { .signal = on_lifeline_signal,
						      .key = on_lifeline_key,
						      .resume = on_lifeline_resume,
						      .gone = on_lifeline_gone };
	static const int ending_signals[] = { SIGTERM, SIGINT, SIGHUP };
	int r;

	r = sd_event_add_time_relative(session->event, &session->deadline, CLOCK_MONOTONIC,
				       SESSION_START_USEC, 0, on_deadline, session);
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(ending_signals); i++)
		r = sd_event_add_signal(session->event, &session->signals[i], ending_signals[i], on_signal,
					session);
	if (r >= 0)
		r = lifeline_new(session->event, lifeline_fd, &lifeline_calls, session, &session->lifeline);
	if (r >= 0)
		r = link_server_new(session->event, listen_fd, &link_calls, session, &session->link);
	return r;
}

int session_new(sd_event *event, int listen_fd, int lifeline_fd, Session **ret)
{
	_cleanup_(session_freep) Session *session = NULL;
	int r;

	session = malloc(sizeof(*session));
	if (!session)
		return -ENOMEM;
	*session = (Session){ .event = sd_event_ref(event),
			      .keys = TERMINAL_KEYS_INIT,
			      .network = NETWORK_INIT,
			      .holder = HOLDER_INIT,
			      .preparation = PREPARATION_INIT,
			      .guard_fd = FD_NONE,
			      .state_fd = FD_NONE,
			      .memory_fd = FD_NONE,
			      .tail = TAIL_INIT,
			      .leader_fd = FD_NONE,
			      .resolver_fd = FD_NONE,
			      .expectations_fd = FD_NONE,
			      .master_fd = FD_NONE };
	r = session_init(session, listen_fd, lifeline_fd);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(session);
	return 0;
}

void session_refuse(Session *session, const char *error, const char *problem)
{
	session_fail(session, error, problem);
}

/* In this order: what watches, what runs, what is held. */
Session *session_free(Session *session)
{
	if (!session)
		return NULL;
	(void)sd_event_source_disable_unref(session->deadline);
	(void)sd_event_source_disable_unref(session->read_back);
	(void)sd_event_source_disable_unref(session->flows);
	(void)sd_event_source_disable_unref(session->resolver);
	(void)sd_event_source_disable_unref(session->holder_source);
	(void)sd_event_source_disable_unref(session->tail_source);
	for (size_t i = 0; i < ELEMENTSOF(session->signals); i++)
		(void)sd_event_source_disable_unref(session->signals[i]);
	(void)git_query_free(session->query);
	(void)wire_free(session->wire);
	(void)ledger_free(session->ledger);
	(void)ports_free(session->ports);
	(void)host_changes_free(session->host);
	if (session->leader_fd >= 0)
		(void)program_signal(session->leader_fd, SIGKILL);
	holder_done(&session->holder);
	(void)agent_pid_free(session->pid_set);
	(void)reports_free(session->reports);
	(void)close_fd(session->leader_fd);
	(void)close_fd(session->resolver_fd);
	(void)close_fd(session->guard_fd);
	(void)state_watch_free(session->state);
	(void)close_fd(session->state_fd);
	(void)close_fd(session->memory_fd);
	session_verify_done(session);
	(void)lifeline_free(session->lifeline);
	(void)link_server_free(session->link);
	terminal_keys_done(&session->keys);
	tail_done(&session->tail);
	(void)mask_watch_free(session->masks);
	(void)doctor_free(session->doctor);
	if (session->planned)
		plan_done(&session->plan);
	preparation_done(&session->preparation);
	(void)reach_free(session->reach);
	network_done(&session->network);
	session_request_done(&session->request);
	session->warnings = strings_free(session->warnings);
	free(session->misplaced);
	free(session->bwrap);
	free(session->pasta);
	free(session->git);
	free(session->error);
	free(session->problem);
	free(session->made_mounts);
	free(session->why);
	(void)sd_event_unref(session->event);
	free(session);
	return NULL;
}
