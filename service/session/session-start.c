/* SPDX-License-Identifier: MIT */
#include "service/session/session-state.h"

#include <signal.h>
#include <sys/epoll.h>

#include "dbus/causes.h"
#include "dbus/errors.h"
#include "dbus/names.h"
#include "service/link/pack.h"
#include "service/session/covers.h"
#include "service/session/disturbance.h"
#include "service/session/jail-exec.h"
#include "service/session/program.h"
#include "service/session/verify-facts.h"

#define STARTS_AGAIN_MAX \
	3u /* a program that renames things once or twice; against one that never stops nothing helps */

static void fail_with_fix(Session *session, const char *error, char **problem, int r)
{
	/* What the plan refuses by its rules is no fault of the machine's. */
	if (r != -EPERM || streq(error, CS_ERROR_JAIL_UNAVAILABLE))
		error_add_fix(problem, r);
	session_fail(session, error, *problem ?: strerror(-r));
}

static int on_tail(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Session *session = userdata;

	if (tail_read(&session->tail) <= 0)
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

static void session_execute(Session *session)
{
	_cleanup_close_ int report_fd = FD_NONE, error_fd = FD_NONE;
	_cleanup_free_ char *problem = NULL;
	int r;

	doctor_reach(session->doctor, DOCTOR_CHAIN_MOUNTS);
	free(session->made_mounts);
	session->made_mounts = verify_facts_mounts();
	r = mask_watch_new(session->event, &session->plan, session_unmasked, session, &session->warnings,
			   &session->masks);
	if (r == 0)
		r = reports_new(session->event, &session_reports_calls, session, &session->reports,
				&report_fd);
	if (r == 0)
		r = tail_open(&session->tail, &error_fd);
	if (r == 0)
		r = sd_event_add_io(session->event, &session->tail_source, session->tail.fd, EPOLLIN, on_tail,
				    session);
	if (r == 0)
		r = session_verify_hand_over(session, &problem);
	if (r == 0)
		r = jail_execute(
			&(JailExec){ .request = &session->request,
				     .plan = &session->plan,
				     .keys = &session->keys,
				     .stand_in = session->stand_in.program ? &session->stand_in : NULL,
				     .report_fd = report_fd,
				     .error_fd = error_fd },
			&session->holder, &problem);
	session->executed = true;
	/* A second start has its own outcome. */
	if (r < 0 && !session_was_disturbed(session, problem))
		fail_with_fix(session, CS_ERROR_JAIL_UNAVAILABLE, &problem, r);
}

static void session_make_plan(Session *session)
{
	const PreparationNetwork network = { .jailed = session->network.jailed,
					     .forwarder = session->network.routes.forwarder,
					     .private_proc = session->private_proc };
	_cleanup_free_ char *problem = NULL;
	const char *error = CS_ERROR_PLAN_REFUSED;
	int r;

	doctor_reach(session->doctor, DOCTOR_CHAIN_PLAN);
	r = preparation_plan(&session->preparation, &network, &session->keys, &session->plan, &error,
			     &problem);
	if (r < 0) {
		if (streq(error, CS_ERROR_UNSAFE_ENTRY_POINT))
			doctor_say_sentence(session->doctor, DOCTOR_ENTRY_PLANTED, ROW_FAIL,
					    problem ?: strerror(-r));
		fail_with_fix(session, error, &problem, r);
		return;
	}
	session->planned = true;
	session_doctor_plan(session);
	session_warn(session, session->preparation.warnings);
	session_warn(session, session->plan.warnings);
}

void session_disturbed(Session *session, const char *line)
{
	_cleanup_free_ char *problem = NULL;

	if (session->again < STARTS_AGAIN_MAX) {
		session_begin_again(session);
		return;
	}
	(void)refuse(&problem, -EAGAIN,
		     "what the jail is made of was replaced each time while it was made (%s): another "
		     "program, or an agent, keeps renaming it; end that one ('claude-sandbox "
		     "sessions' lists agents) and start again",
		     line);
	session_fail(session, CS_ERROR_JAIL_UNAVAILABLE, problem);
}

/* The jail is made, and is not what was planned. The holder's end starts anew. */
static void session_misplaced(Session *session, const Entry *entry)
{
	if (asprintf(&session->misplaced, "%s is not in its place", entry->destination) < 0) {
		session->misplaced = NULL;
		session_fail(session, CS_ERROR_JAIL_UNAVAILABLE, NULL);
		return;
	}
	(void)program_signal(session->holder.pidfd, SIGKILL);
}

/* Init waits for this word and for nothing else. */
static void session_go(Session *session)
{
	_cleanup_free_ char *problem = NULL;
	const Entry *misplaced;
	int r = session_enter_masks(session, &misplaced);

	if (r < 0) {
		(void)refuse(&problem, r, "the jail's mounts cannot be looked at before the agent starts: %s",
			     strerror(-r));
		fail_with_fix(session, CS_ERROR_JAIL_UNAVAILABLE, &problem, r);
		return;
	}
	if (misplaced) {
		session_misplaced(session, misplaced);
		return;
	}
	r = session_verify_expect(session, &problem);
	if (r < 0) {
		fail_with_fix(session, CS_ERROR_JAIL_UNAVAILABLE, &problem, r);
		return;
	}
	/* The last moment in which the jail has its mounts for certain. */
	r = session->state ? state_watch_enter(session->state, session->waiting) : 0;
	if (r < 0)
		(void)strings_appendf(
			&session->warnings,
			"what programs put in the place of ~/%s is lost at the end: the jail's home "
			"cannot be held (%s); start again",
			session->profile->home_file, strerror(-r));
	r = reports_send(session->reports, REPORT_GO, 0);
	session->released = true;
	/* Init is gone already: why, its own report or bwrap's last words say. */
	if (r < 0 && r != -EPIPE)
		session_fail(session, CS_ERROR_JAIL_UNAVAILABLE, strerror(-r));
}

/*
 * git answers, /proc is tried, the wire comes and the agent's state is there in any order; the plan needs the
 * first two, the agent all. The mounts need no wire: bwrap makes them beside pasta's start, and init waits. Init says that it
 * waits, and only then the agent's PID can be set.
 */
void session_advance(Session *session)
{
	if (session->phase == PHASE_STARTING && session->git_known && session->proc_known &&
	    !session->planned)
		session_make_plan(session);
	if (session->phase == PHASE_STARTING && session->planned && !session->executed)
		session_execute(session);
	if (session->phase == PHASE_STARTING && session->executed && session->wire_known &&
	    session->state_known && session->ready && !session->released && !session->misplaced)
		session_go(session);
}

static void on_git_answered(void *userdata, GitIdentity *identity)
{
	Session *session = userdata;

	preparation_set_git(&session->preparation, identity);
	session->query = git_query_free(session->query);
	session->git_known = true;
	session_doctor_git(session);
	session_advance(session);
}

/* ---- the agent's state ---- */

void session_state_known(Session *session)
{
	session->state_known = true;
	session_warn(session, state_watch_warnings(session->state));
	session_advance(session);
}

/* ---- the sequence ---- */

static int start_ports(Session *session, char **ret_problem)
{
	return ports_new(session->event,
			 &(PortsOptions){ .config = &session->request.config,
					  .jailed = session->network.jailed,
					  .holder_pidfd = session->holder.pidfd,
					  .uid = session->request.uid },
			 &session->warnings, &session->ports, ret_problem);
}

static int find_programs(Session *session, char **ret_problem)
{
	int r;

	r = program_find("bwrap", "bubblewrap", &session->bwrap, ret_problem);
	if (r == 0 && session->network.jailed)
		r = program_find("pasta", "passt", &session->pasta, ret_problem);
	/* Without git there is no identity, and that is all. */
	if (r == 0)
		(void)program_find("git", "git", &session->git, NULL);
	return r;
}

static int start_ledger(Session *session, const char **ret_error, char **ret_problem)
{
	int r;

	if (!session->network.jailed)
		return 0;
	*ret_error = CS_ERROR_JAIL_UNAVAILABLE;
	r = ledger_new(session->event, &session->network, session_denied, session, &session->ledger);
	return r < 0 ? refuse(ret_problem, r, "what is denied cannot be watched: %s", strerror(-r)) : 0;
}

static int start_holder(Session *session, char **ret_problem)
{
	int r;

	r = holder_start(&session->holder,
			 &(HolderOptions){ .uid = session->request.uid,
					   .gid = session->request.gid,
					   .jailed = session->network.jailed,
					   .routes = &session->network.routes,
					   .bwrap = session->bwrap,
					   .arguments = jail_exec_arguments(),
					   .descriptors = session->descriptors },
			 &session->network.sockets, ret_problem);
	if (r < 0) {
		session_doctor_holder(session, *ret_problem ?: strerror(-r));
		return r;
	}
	session->network.ledger_problem = TAKE_PTR(*ret_problem);
	session_doctor_holder(session, NULL);
	return session_watch_holder(session);
}

static void start_git(Session *session)
{
	Preparation *preparation = &session->preparation;

	if (session->git && S_ISDIR(preparation->workspace.mode) && preparation_find_git(preparation) == 0 &&
	    git_query_start(session->event,
			    &(GitOptions){ .path = session->git,
					   .home = session->request.home,
					   .places = &preparation->places,
					   .holder_pidfd = session->holder.pidfd,
					   .network = session->network.jailed },
			    on_git_answered, session, &session->query) == 0)
		return;
	session->git_known = true;
	session_doctor_git(session);
}

static int on_proc_tried(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Session *session = userdata;
	int r = holder_proc_outcome(fd);

	session->proc_source = sd_event_source_disable_unref(session->proc_source);
	session->proc_known = true;
	session->private_proc = r == 0;
	session_doctor_proc(session, r);
	if (r < 0 && config_procfs(&session->request.config) == PROCFS_PRIVATE) {
		_cleanup_free_ char *problem = NULL;

		doctor_reach(session->doctor, DOCTOR_CHAIN_PROC);
		(void)refuse(&problem, r, BECAUSE(PROC_MASKED), strerror(-r));
		fail_with_fix(session, CS_ERROR_JAIL_UNAVAILABLE, &problem, r);
		return 0;
	}
	session_advance(session);
	return 0;
}

static int try_proc(Session *session, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	session->proc_known = config_procfs(&session->request.config) == PROCFS_OUTER;
	if (session->proc_known) {
		doctor_say(session->doctor, DOCTOR_CHAIN_PROC, ROW_NOTE, NULL, "not tried: procfs = outer");
		return 0;
	}
	r = holder_try_proc(&session->holder, &fd, ret_problem);
	if (r < 0)
		return r;
	r = sd_event_add_io(session->event, &session->proc_source, fd, EPOLLIN, on_proc_tried, session);
	if (r < 0)
		return r;
	(void)sd_event_source_set_io_fd_own(session->proc_source, true);
	TAKE_FD(fd);
	return 0;
}

static int session_take(Session *session, const int fds[static KEYS_MAX], const char **ret_error,
			char **ret_problem)
{
	int r;

	*ret_error = CS_ERROR_BAD_REQUEST;
	r = terminal_keys_take(&session->keys, fds, &session->request, ret_problem);
	if (r < 0)
		return r;
	session->profile = profile_find(session->request.agent);
	if (!session->profile)
		return refuse(ret_problem, -EINVAL, "no agent is called '%s'", session->request.agent);
	*ret_error = CS_ERROR_JAIL_UNAVAILABLE;
	return session_verify_open(session, ret_problem);
}

static int session_sequence(Session *session, const char **ret_error, char **ret_problem)
{
	int r;

	/* Before the host is looked at: what changes meanwhile is noticed. */
	doctor_reach(session->doctor, DOCTOR_CHAIN_ROUTES);
	*ret_error = CS_ERROR_JAIL_UNAVAILABLE;
	r = session_watch_host(session);
	if (r < 0)
		return refuse(ret_problem, r, "the host's network cannot be watched: %s", strerror(-r));
	r = network_prepare(&session->network, &session->request.config, ret_error, ret_problem);
	if (r == 0) {
		session_doctor_network(session);
		doctor_reach(session->doctor, DOCTOR_CHAIN_PROGRAMS);
		r = find_programs(session, ret_problem);
	}
	if (r == 0)
		r = start_holder(session, ret_problem);
	doctor_reach(r == 0 ? session->doctor : NULL, DOCTOR_CHAIN_ROUTES);
	if (r == 0)
		r = network_lock(&session->network, &session->holder, ret_error, ret_problem);
	if (r == 0)
		r = start_ledger(session, ret_error, ret_problem);
	if (r < 0)
		return r;
	if (session->network.jailed)
		doctor_passed(session->doctor, DOCTOR_CHAIN_ROUTES, "%zu routes, tried and read back",
			      session->network.routes.n_rows);

	r = session_start_reach(session);
	if (r < 0)
		return r;
	/* From here on pasta, git and the attempt at /proc run beside what follows. */
	*ret_error = CS_ERROR_JAIL_UNAVAILABLE;
	r = try_proc(session, ret_problem);
	if (r < 0)
		return r;
	session_warn(session, session->request.warnings);
	session_warn(session, session->network.routes.warnings);
	session_warn(session, session->network.denial.warnings);
	doctor_reach(session->doctor, DOCTOR_CHAIN_WIRE);
	r = session_start_wire(session, ret_problem);
	if (r == 0)
		r = start_ports(session, ret_problem);
	doctor_reach(r == 0 ? session->doctor : NULL, DOCTOR_CHAIN_PLAN);
	if (r == 0)
		r = preparation_init(&session->preparation, &session->request, session->profile,
				     session->guard_fd, ret_problem);
	if (r < 0)
		return r;
	start_git(session);
	*ret_error = CS_ERROR_PLAN_REFUSED;
	r = session_start_state(session);
	if (r < 0)
		return r;
	return 0;
}

void session_begin(Session *session, SessionInput *input)
{
	const char *error = CS_ERROR_JAIL_UNAVAILABLE;
	_cleanup_free_ char *problem = NULL;
	int r;

	session->request = input->request;
	input->request = (SessionRequest){ 0 };
	session->descriptors = input->descriptors;
	session->guard_fd = input->guard_fd;
	session->state_fd = input->state_fd;
	session->memory_fd = input->memory_fd;
	r = session_take(session, input->fds, &error, &problem);
	if (r == 0)
		r = session_begin_doctor(session);
	if (r == 0)
		r = session_sequence(session, &error, &problem);
	if (r < 0) {
		fail_with_fix(session, error, &problem, r);
		return;
	}
	session_advance(session);
}

/* As before session_sequence(); what launch gave and the request stay. In the order of session_free(). */
static void session_forget_start(Session *session)
{
	session->read_back = sd_event_source_disable_unref(session->read_back);
	session->flows = sd_event_source_disable_unref(session->flows);
	session->holder_source = sd_event_source_disable_unref(session->holder_source);
	session->tail_source = sd_event_source_disable_unref(session->tail_source);
	session->proc_source = sd_event_source_disable_unref(session->proc_source);
	session->query = git_query_free(session->query);
	session->wire = wire_free(session->wire);
	session->ledger = ledger_free(session->ledger);
	session->ports = ports_free(session->ports);
	session->host = host_changes_free(session->host);
	holder_done(&session->holder);
	session->pid_set = agent_pid_free(session->pid_set);
	session->reports = reports_free(session->reports);
	tail_done(&session->tail);
	session->tail = TAIL_INIT;
	session->masks = mask_watch_free(session->masks);
	if (session->planned) {
		covers_clear(&session->plan, session->request.uid);
		plan_done(&session->plan);
	}
	preparation_done(&session->preparation);
	session->preparation = PREPARATION_INIT;
	network_done(&session->network);
	session->warnings = strings_free(session->warnings);
	freep(&session->misplaced);
	freep(&session->bwrap);
	freep(&session->pasta);
	freep(&session->git);
	session->private_proc = session->proc_known = session->planned = session->wire_known = false;
	session->git_known = session->wire_down = session->executed = session->ready = session->released =
		false;
	session->pid_error = 0;
	session->waiting = 0;
}

void session_begin_again(Session *session)
{
	const char *error = CS_ERROR_JAIL_UNAVAILABLE;
	_cleanup_free_ char *problem = NULL;
	int r;

	session_forget_start(session);
	session->again++;
	/* The state is not looked at anew. */
	if (session->state_known)
		session_warn(session, state_watch_warnings(session->state));
	r = session_sequence(session, &error, &problem);
	if (r < 0) {
		fail_with_fix(session, error, &problem, r);
		return;
	}
	session_advance(session);
}

bool session_was_disturbed(Session *session, const char *line)
{
	Disturbance disturbance = DISTURBANCE_NONE;

	if (session->planned)
		disturbance = start_disturbance(&session->plan, line ?: "");
	if (disturbance == DISTURBANCE_NONE ||
	    (disturbance == DISTURBANCE_POSSIBLE && session->again >= STARTS_AGAIN_MAX))
		return false;
	session_disturbed(session, line ?: "bwrap ended without a word");
	return true;
}
