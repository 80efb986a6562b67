/* SPDX-License-Identifier: MIT */

/* What the jail's first process says, and the end of the bwrap that holds it. */

#include "service/session/session-state.h"

#include <sys/epoll.h>

#include "dbus/errors.h"
#include "dbus/names.h"
#include "service/session/program.h"

static void on_pid_set(void *userdata, int error)
{
	Session *session = userdata;

	session->pid_set = agent_pid_free(session->pid_set);
	session->pid_error = error;
	session->ready = true;
	session_advance(session);
}

/* Nothing of the agent runs yet. Without a PID of its own the agent works, so no error ends the launch. */
static void on_ready(Session *session, pid_t leader)
{
	_cleanup_close_ int leader_fd = FD_NONE;
	int r;

	if (session->phase != PHASE_STARTING || session->ready || session->pid_set || leader <= 1)
		return;
	r = leader_fd = program_pidfd_below(leader, session->holder.pid);
	/* One that has ended has said why. */
	if (r < 0 && r != -ESRCH) {
		session_fail(session, CS_ERROR_JAIL_UNAVAILABLE,
			     "the jail's init cannot be watched; start again");
		return;
	}
	if (r >= 0)
		session->waiting = leader;
	if (r >= 0)
		r = agent_pid_start(session->event, leader, leader_fd, leader, on_pid_set, session,
				    &session->pid_set);
	if (r < 0)
		on_pid_set(session, -r);
}

static void on_executed(Session *session, pid_t leader)
{
	if (session->phase != PHASE_STARTING || !session->released || leader <= 1)
		return;
	session->leader_fd = program_pidfd_below(leader, session->holder.pid);
	/* An agent that exits at once may have taken init along already; the report of that comes next. */
	if (session->leader_fd < 0 && session->leader_fd != -ESRCH) {
		session_fail(session, CS_ERROR_JAIL_UNAVAILABLE,
			     "the jail's init cannot be watched; start again");
		return;
	}
	doctor_passed(session->doctor, DOCTOR_CHAIN_MOUNTS, "bwrap made them");
	doctor_passed(session->doctor, DOCTOR_CHAIN_AGENT, "it was started");
	ledger_enter(session->ledger, leader);
	session->leader = leader;
	session->phase = PHASE_RUNNING;
	/* A copy that stays open here would keep pipes from ending and the PTY from hanging up. */
	terminal_keys_done(&session->keys);
	(void)sd_event_source_set_enabled(session->deadline, SD_EVENT_OFF);
	for (size_t i = 0; session->warnings && session->warnings[i]; i++)
		lifeline_warning(session->lifeline, session->warnings[i]);
	lifeline_started(session->lifeline);
	session_tell(session);
	link_server_started(session->link);
	session_verify_begin(session);
	if (session->masks && mask_watch_start(session->masks) < 0)
		session_end_because(session, "the session was ended: what it hides cannot be watched");
	if (session->phase == PHASE_RUNNING)
		session_follow_resolver(session);
}

static void on_init_failed(Session *session, InitStage stage, int error)
{
	static const char *const stages[INIT_STAGE_MAX] = {
		[INIT_STAGE_ORDERS] = "the orders cannot be read",
		[INIT_STAGE_SESSION] = "no session of processes can be made",
		[INIT_STAGE_TERMINAL] = "the terminal cannot be taken",
		[INIT_STAGE_SECCOMP] = "the seccomp filter cannot be installed",
		[INIT_STAGE_FORK] = "no process for the agent",
		[INIT_STAGE_DIRECTORY] = "the working directory cannot be entered inside",
		[INIT_STAGE_EXECUTE] = "the agent cannot be executed",
	};
	const char *program = session->stand_in.program ?: session->plan.program;
	bool missing = stage == INIT_STAGE_EXECUTE && error == ENOENT && !session->stand_in.program;
	_cleanup_free_ char *problem = NULL;

	doctor_passed(session->doctor, DOCTOR_CHAIN_MOUNTS, "bwrap made them");
	doctor_reach(session->doctor, DOCTOR_CHAIN_AGENT);
	if (stage == INIT_STAGE_DIRECTORY && error == EACCES)
		(void)refuse(
			&problem, -error,
			"%s (%s): its mode, or that of a directory above it, keeps you out; give yourself "
			"leave (chmod u+rwx), or start elsewhere",
			stages[stage], session->plan.cwd);
	else
		(void)refuse(&problem, -error, "%s (%s): %s", stages[stage],
			     stage == INIT_STAGE_DIRECTORY ? session->plan.cwd : program, strerror(error));
	error_add_fix(&problem, -error);
	session_fail(session, missing ? CS_ERROR_AGENT_MISSING : CS_ERROR_JAIL_UNAVAILABLE, problem);
}

static void on_report(void *userdata, const Report *report, pid_t leader)
{
	Session *session = userdata;

	switch (report->kind) {
	case REPORT_READY:
		on_ready(session, leader);
		break;
	case REPORT_EXECUTED:
		on_executed(session, leader);
		break;
	case REPORT_FAILED:
		on_init_failed(session, report->stage, report->number);
		break;
	case REPORT_STOPPED:
	case REPORT_CONTINUED:
		if (session->phase != PHASE_RUNNING)
			break;
		session->stopped = report->kind == REPORT_STOPPED;
		if (session->stopped)
			lifeline_stopped(session->lifeline, report->number);
		else
			lifeline_continued(session->lifeline);
		session_tell(session);
		break;
	case REPORT_EXITED:
		if (session->phase != PHASE_RUNNING)
			break;
		session->status = report->number;
		session->status_known = true;
		session_end(session);
		break;
	case REPORT_SIGNAL:
	case REPORT_RESUME:
	case REPORT_RESUME_BEHIND:
	case REPORT_KEY:
	case REPORT_HANGUP:
	case REPORT_GO:
	case REPORT_KIND_MAX:
		/* What only we say. Whoever sends that is not init as it was made. */
		session_end_because(session,
				    "the session was ended: the jail's first process does not keep to its "
				    "part; reinstall the programs if they are of several versions");
		break;
	}
}

static void on_reports_closed(void *userdata)
{
	Session *session = userdata;

	/* While it starts, bwrap's last words say more; they come with its end. */
	if (session->phase == PHASE_RUNNING)
		session_end(session);
}

const ReportsCalls session_reports_calls = { .report = on_report, .closed = on_reports_closed };

/* While it starts. */
static void on_bwrap_failed(Session *session)
{
	_cleanup_free_ char *line = NULL, *problem = NULL;

	if (session->misplaced) {
		session_disturbed(session, session->misplaced);
		return;
	}
	(void)tail_read(&session->tail);
	line = tail_last_line(&session->tail);
	if (session_was_disturbed(session, line))
		return;
	doctor_reach(session->doctor, DOCTOR_CHAIN_MOUNTS);
	/* Its complaint about an option that it does not know. */
	if (line && strstr(line, "bind-fd"))
		(void)refuse(&problem, -ECHILD, BECAUSE(BWRAP_OLD));
	else
		(void)refuse(&problem, -ECHILD, BECAUSE(BWRAP_ENDED), line ?: "without a word");
	session_fail(session, CS_ERROR_JAIL_UNAVAILABLE, problem);
}

/* The holder, or the bwrap that it became, has ended. */
static int on_holder_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Session *session = userdata;

	if (program_reap(fd, NULL) == 0)
		return 0;
	session->holder_source = sd_event_source_disable_unref(session->holder_source);
	session->holder.pidfd = close_fd(session->holder.pidfd);
	if (session->reports)
		reports_drain(session->reports);
	if (session->phase == PHASE_STARTING) {
		on_bwrap_failed(session);
		return 0;
	}
	/* Without a holder session_end() goes on to the same. */
	if (session->phase == PHASE_ENDING)
		session_finished(session);
	else
		session_end(session);
	return 0;
}

int session_watch_holder(Session *session)
{
	return sd_event_add_io(session->event, &session->holder_source, session->holder.pidfd, EPOLLIN,
			       on_holder_ended, session);
}
