/* SPDX-License-Identifier: MIT */
#include "service/daemon/keeper.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/log.h"
#include "service/daemon/proc.h"
#include "service/daemon/run-dir.h"

/* After its link has ended, and beyond the grace that it was given. */
#define LATE_USEC (2 * USEC_PER_SEC)
/* Between two signals about one session. */
#define QUIET_USEC (100 * USEC_PER_MSEC)
#define WARNINGS_MAX 256u
#define POSTURE_MAX 64u
#define WHY_MAX 2048u

struct Keeper {
	sd_event *event;
	Turns *turns;
	Cgroups *cgroups;
	Session *session;
	const KeeperEvents *events;
	void *userdata;
	LinkClient *link;
	sd_event_source *process, *kill_timer, *quiet, *together;
	unsigned changes; /* not told yet */
	LinkTable asking; /* LINK_TABLE_MAX: nothing */
	bool ask_again, told, silent, connected, started;
	uint64_t new_usec; /* the second in which so many new destinations came */
	uint32_t n_new;
	uint64_t n_together; /* more of them, not told yet */
};

static void refresh(Keeper *keeper);

static int on_quiet(sd_event_source *source, uint64_t usec, void *userdata);

static void tell(Keeper *keeper)
{
	unsigned changes = keeper->changes;

	keeper->changes = 0;
	keeper->events->changed(keeper->userdata, keeper->session, changes);
}

/*
 * The first change is told at once, the next ones together: each goes to every subscriber, and a session may
 * change its state as often as it likes.
 */
static void note(Keeper *keeper, unsigned changes)
{
	keeper->changes |= changes;
	if (keeper->changes == 0 || keeper->quiet)
		return;
	tell(keeper);
	(void)sd_event_add_time_relative(keeper->event, &keeper->quiet, CLOCK_MONOTONIC, QUIET_USEC,
					 20 * USEC_PER_MSEC, on_quiet, keeper);
}

static int on_quiet(sd_event_source *source, uint64_t usec, void *userdata)
{
	Keeper *keeper = userdata;

	keeper->quiet = sd_event_source_disable_unref(keeper->quiet);
	note(keeper, 0);
	return 0;
}

static bool cells_equal(const LinkCells *a, const LinkCells *b)
{
	if (a->n_rows != b->n_rows || (a->n_rows > 0 && a->n_columns != b->n_columns))
		return false;
	for (size_t i = 0; i < a->n_rows * a->n_columns; i++)
		if (!streq(a->cells[i], b->cells[i]))
			return false;
	return true;
}

static void on_table(void *userdata, int result, LinkCells *cells)
{
	Keeper *keeper = userdata;
	Session *session = keeper->session;
	LinkTable table = keeper->asking;
	LinkCells *kept = table == LINK_TABLE_WARNINGS ? &session->warnings : &session->posture;
	bool changed = false;

	keeper->asking = LINK_TABLE_MAX;
	if (result == -ECANCELED || result == -ECONNRESET)
		return;
	if (result < 0 && !keeper->silent) {
		keeper->silent = true;
		log_line("session %s does not answer: %s", session->id, strerror(-result));
	}
	if (result == 0 && !cells_equal(kept, cells)) {
		link_cells_done(kept);
		*kept = *cells;
		*cells = (LinkCells){ 0 };
		changed = true;
	}
	/* The next question first: whoever hears of the change may end the session. */
	if (table == LINK_TABLE_WARNINGS) {
		keeper->asking = LINK_TABLE_POSTURE;
		if (link_client_get_table(keeper->link, LINK_TABLE_POSTURE, POSTURE_MAX, on_table, keeper) <
		    0)
			keeper->asking = LINK_TABLE_MAX;
	} else if (keeper->ask_again) {
		keeper->ask_again = false;
		refresh(keeper);
	}
	if (changed)
		note(keeper, table == LINK_TABLE_WARNINGS ? KEEPER_WARNINGS : KEEPER_POSTURE);
}

/* Warnings, then Posture; once more when something was said meanwhile. */
static void refresh(Keeper *keeper)
{
	if (!keeper->link)
		return;
	if (keeper->asking != LINK_TABLE_MAX) {
		keeper->ask_again = true;
		return;
	}
	keeper->asking = LINK_TABLE_WARNINGS;
	if (link_client_get_table(keeper->link, LINK_TABLE_WARNINGS, WARNINGS_MAX, on_table, keeper) < 0)
		keeper->asking = LINK_TABLE_MAX;
}

/* It never becomes less. */
static unsigned take_attempts(Session *session, const LinkMessage *m)
{
	if (m->denied <= session->attempts)
		return 0;
	session->attempts = m->denied;
	return KEEPER_ATTEMPTS;
}

static unsigned take_state(Session *session, const LinkMessage *m)
{
	unsigned changes = 0;

	if (session->state != m->state)
		changes |= KEEPER_STATE;
	if (session->leader != m->leader)
		changes |= KEEPER_LEADER;
	if (session->jailed != m->jailed)
		changes |= KEEPER_JAILED;
	session->state = m->state;
	session->leader = m->leader;
	session->jailed = m->jailed;
	return changes | take_attempts(session, m);
}

static unsigned take_exit(Session *session, const LinkMessage *m)
{
	unsigned changes = 0;

	if (session->state != SESSION_ENDING)
		changes |= KEEPER_STATE;
	if (session->exit_status != m->exit_status)
		changes |= KEEPER_EXIT_STATUS;
	session->state = SESSION_ENDING;
	session->exit_status = m->exit_status;
	return changes | take_attempts(session, m);
}

/* The session's own statement: one line of the log, whatever it holds, and a detail of its end. */
static void say_why(Session *session, const char *text)
{
	/* Once: a line of the log for each packet would be a flood of them. */
	if (session->why)
		return;
	session->why = wire_text(text, WHY_MAX);
	log_line("session %s of uid %u says why its agent ended: %s", session->id, session->uid,
		 session->why ?: "no memory");
}

static void tell_together(Keeper *keeper)
{
	uint64_t n = keeper->n_together;

	keeper->together = sd_event_source_disable_unref(keeper->together);
	keeper->n_together = 0;
	if (n > 0)
		keeper->events->destination(keeper->userdata, keeper->session, NULL, n);
}

static int on_together(sd_event_source *source, uint64_t usec, void *userdata)
{
	tell_together(userdata);
	return 0;
}

/* Each is a line of the log: a scan must not become as many of them. */
static void take_destination(Keeper *keeper, const LinkRow *row)
{
	uint64_t now = 0;

	(void)sd_event_now(keeper->event, CLOCK_MONOTONIC, &now);
	if (now - keeper->new_usec >= USEC_PER_SEC) {
		keeper->new_usec = now;
		keeper->n_new = 0;
	}
	if (keeper->n_new < KEEPER_NEW_MAX) {
		keeper->n_new++;
		keeper->events->destination(keeper->userdata, keeper->session, row, 1);
		return;
	}
	keeper->n_together++;
	if (!keeper->together &&
	    sd_event_add_time_relative(keeper->event, &keeper->together, CLOCK_MONOTONIC, USEC_PER_SEC,
				       50 * USEC_PER_MSEC, on_together, keeper) < 0)
		tell_together(keeper);
}

static void take_denied(Keeper *keeper, const LinkMessage *m)
{
	Session *session = keeper->session;

	denied_sum_add(&session->denied, m->rows, m->n_rows);
	for (uint32_t i = 0; i < m->n_rows; i++)
		if (denied_seen_add(&session->denied_seen, &m->rows[i]))
			take_destination(keeper, &m->rows[i]);
	keeper->events->denied(keeper->userdata, session, m->rows, m->n_rows);
}

static void take_message(Keeper *keeper, const LinkMessage *m)
{
	Session *session = keeper->session;
	unsigned changes = 0;

	switch (m->kind) {
	case LINK_HELLO:
	case LINK_STATE:
		changes = take_state(session, m);
		if (session->foreign)
			changes |= KEEPER_WARNINGS | KEEPER_POSTURE;
		else if (m->state != SESSION_STARTING && m->state != SESSION_ENDING)
			refresh(keeper);
		break;
	case LINK_EXITED:
		changes = take_exit(session, m);
		if (m->text && *m->text)
			say_why(session, m->text);
		break;
	case LINK_DENIED:
		take_denied(keeper, m);
		changes = take_attempts(session, m);
		break;
	case LINK_ROWS:
		keeper->events->rows(keeper->userdata, session, m->serial != 0, m->rows, m->n_rows);
		return;
	case LINK_STARTED:
		/* Once: whoever waits for its end gives it a time from now on. */
		if (keeper->started)
			return;
		keeper->started = true;
		refresh(keeper);
		keeper->events->started(keeper->userdata, session);
		return;
	case LINK_FAILED:
		keeper->events->failed(keeper->userdata, session, m->error, m->text);
		return;
	default:
		return;
	}
	note(keeper, changes);
}

void keeper_connected(Keeper *keeper)
{
	if (keeper->connected)
		return;
	keeper->connected = true;
	keeper->events->connected(keeper->userdata, keeper->session);
}

bool keeper_is_connected(const Keeper *keeper)
{
	return keeper->connected;
}

/*
 * Of another version: the programs were exchanged while it ran, or while the service did. One that was taken
 * over goes on. What was just started could not be told anything: the launch fails. Return: does it go on?
 */
static bool take_stranger(Keeper *keeper, uint32_t version)
{
	_cleanup_free_ char *problem = NULL;
	Session *session = keeper->session;

	session->foreign = true;
	log_line("session %s of uid %u speaks version %u of the link, the service version %u", session->id,
		 session->uid, version, LINK_VERSION);
	if (keeper->connected)
		return true;
	(void)refuse(&problem, 0,
		     "The installed programs are of another version than the service that runs; restart it "
		     "(systemctl restart claude-sandboxd, or end its process: the next call starts it).");
	keeper->events->failed(keeper->userdata, session, CS_ERROR_JAIL_UNAVAILABLE, problem);
	keeper_kill(keeper);
	return false;
}

static void on_message(void *userdata, const LinkMessage *m)
{
	Keeper *keeper = userdata;
	Session *session = keeper->session;

	if (m->kind == LINK_HELLO && m->version != LINK_VERSION && !take_stranger(keeper, m->version))
		return;

	if (session->awaited && (m->kind == LINK_HELLO || m->kind == LINK_STATE)) {
		unsigned changes = take_state(session, m);

		session->awaited = false;
		keeper->events->greeted(keeper->userdata, session);
		keeper->changes |= changes;
	}
	if (m->kind == LINK_HELLO)
		keeper_connected(keeper);
	take_message(keeper, m);
}

static int on_kill_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	Keeper *keeper = userdata;

	log_line("session %s has not ended in time; it is killed", keeper->session->id);
	keeper_kill(keeper);
	return 0;
}

static void kill_after(Keeper *keeper, uint64_t usec)
{
	uint64_t now = 0, earlier = UINT64_MAX;

	/* Nobody may put off an end that was set before. */
	if (keeper->kill_timer && sd_event_now(keeper->event, CLOCK_MONOTONIC, &now) >= 0 &&
	    sd_event_source_get_time(keeper->kill_timer, &earlier) >= 0 && earlier <= now + usec)
		return;
	keeper->kill_timer = sd_event_source_disable_unref(keeper->kill_timer);
	if (sd_event_add_time_relative(keeper->event, &keeper->kill_timer, CLOCK_MONOTONIC, usec,
				       50 * USEC_PER_MSEC, on_kill_time, keeper) < 0)
		keeper_kill(keeper);
}

static void on_closed(void *userdata, int error)
{
	Keeper *keeper = userdata;

	if (error == -EBADMSG) {
		log_line("session %s breaks the protocol; it is killed", keeper->session->id);
		keeper_kill(keeper);
	} else {
		kill_after(keeper, LATE_USEC);
	}
	keeper->link = link_client_free(keeper->link);
}

static const LinkClientEvents link_events = { .message = on_message, .closed = on_closed };

static int on_process(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Keeper *keeper = userdata;
	Session *session = keeper->session;
	siginfo_t info;
	int r;

	keeper->process = sd_event_source_disable_unref(keeper->process);
	/* Its last words may still be waiting; one of them may be how the agent ended. */
	if (keeper->link)
		link_client_drain(keeper->link);
	keeper->link = link_client_free(keeper->link);
	tell_together(keeper);
	/* An adopted session is not our child. */
	(void)waitid(P_PIDFD, (id_t)session->pidfd, &info, WEXITED | WNOHANG);

	if (session->group)
		cgroups_end(keeper->cgroups, session->group);
	r = run_dir_remove_session(session->id);
	if (r < 0 && r != -ENOENT)
		log_line("the directory of session %s cannot be removed: %s", session->id, strerror(-r));
	if (session->state != SESSION_ENDING) {
		session->state = SESSION_ENDING;
		keeper->changes |= KEEPER_STATE;
	}
	if (keeper->changes)
		tell(keeper);
	keeper->events->ended(keeper->userdata, session);
	return 0;
}

int keeper_new(sd_event *event, Turns *turns, Cgroups *cgroups, Session *session, const KeeperEvents *events,
	       void *userdata)
{
	Keeper *keeper = calloc(1, sizeof(*keeper));
	int r;

	if (!keeper)
		return -ENOMEM;
	*keeper = (Keeper){
		.event = sd_event_ref(event),
		.turns = turns,
		.cgroups = cgroups,
		.session = session,
		.events = events,
		.userdata = userdata,
		.asking = LINK_TABLE_MAX,
	};
	r = sd_event_add_io(event, &keeper->process, session->pidfd, EPOLLIN, on_process, keeper);
	/* What the link still holds comes first all the same: it is read at the end. */
	if (r >= 0)
		r = sd_event_source_set_priority(keeper->process, PRIORITY_SERVED);
	if (r < 0) {
		keeper_free(keeper);
		return r;
	}
	session->keeper = keeper;
	return 0;
}

Keeper *keeper_free(Keeper *keeper)
{
	if (!keeper)
		return NULL;
	link_client_free(keeper->link);
	sd_event_source_disable_unref(keeper->process);
	sd_event_source_disable_unref(keeper->kill_timer);
	sd_event_source_disable_unref(keeper->quiet);
	sd_event_source_disable_unref(keeper->together);
	sd_event_unref(keeper->event);
	if (keeper->session->keeper == keeper)
		keeper->session->keeper = NULL;
	free(keeper);
	return NULL;
}

int keeper_attach(Keeper *keeper, int fd)
{
	return link_client_new(keeper->event, keeper->turns, keeper->session->uid, fd, &link_events, keeper,
			       &keeper->link);
}

static void on_stop_answer(void *userdata, int result, const char *problem)
{
	Keeper *keeper = userdata;

	if (result < 0 && result != -ECANCELED && result != -ECONNRESET)
		keeper_kill(keeper);
}

void keeper_stop(Keeper *keeper, uint64_t grace_usec, const char *why)
{
	kill_after(keeper, grace_usec + LATE_USEC);
	if (keeper->told)
		return;
	keeper->told = true;
	/* Without a link, it is about to have none any more or not to have one yet: the time decides. */
	if (keeper->link && link_client_stop(keeper->link, grace_usec, why, on_stop_answer, keeper) < 0)
		keeper_kill(keeper);
}

int keeper_get_table(Keeper *keeper, LinkTable table, uint32_t max_rows, LinkTableFunction function,
		     void *userdata)
{
	return keeper->link ? link_client_get_table(keeper->link, table, max_rows, function, userdata)
			    : -ENOTCONN;
}

int keeper_tell(Keeper *keeper, const LinkMessage *m, LinkDoneFunction function, void *userdata)
{
	return keeper->link ? link_client_tell(keeper->link, m, function, userdata) : -ENOTCONN;
}

int keeper_verify(Keeper *keeper, bool probes, LinkDoneFunction function, void *userdata)
{
	return keeper->link ? link_client_verify(keeper->link, probes, function, userdata) : -ENOTCONN;
}

void keeper_kill(Keeper *keeper)
{
	Session *session = keeper->session;
	int r;

	r = pidfd_kill(session->pidfd, SIGKILL);
	if (r < 0 && r != -ESRCH)
		log_line("session %s cannot be killed: %s", session->id, strerror(-r));
}
