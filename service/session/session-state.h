/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The session's insides, for session.c (its life and end), session-start.c (its start), session-init.c (the
 * jail's first process), session-network.c, session-reach.c, session-verify.c (checks of its jail) and
 * session-keep.c (its agent's state) alone.
 */

#include "service/plan/mounts.h"
#include "service/session/agent-pid.h"
#include "service/session/bait.h"
#include "service/session/doctor.h"
#include "service/session/holder.h"
#include "service/session/ledger.h"
#include "service/session/host-changes.h"
#include "service/session/jail-exec.h"
#include "service/session/lifeline.h"
#include "service/session/link-server.h"
#include "service/session/mask-watch.h"
#include "service/session/network.h"
#include "service/session/ports.h"
#include "service/session/preparation.h"
#include "service/session/reach.h"
#include "service/session/reports.h"
#include "service/session/session.h"
#include "service/session/state-watch.h"
#include "service/session/tail.h"
#include "service/session/verify-rows.h"
#include "service/session/verify-run.h"
#include "service/session/wire.h"

/*
 * STARTING  read the host → holder → deny, self-test, read back → then at once: the wire, git, the agent's
 *           state, a try at /proc → plan (when git has answered) → bwrap → go (when the wire is up, or cannot
 *           be, the state is there, and init is ready and its agent's PID is set) → init reports the
 * agent RUNNING   until the agent's exit is reported, or the jail's init is gone, or the terminal, or a stop
 * ENDING    nothing may go on running: kill what does not end, reap; then bring the agent's state out
 * SAYING    everything is gone; the service and launch are told, for two seconds at most
 *
 * Only STARTING fails (LINK_FAILED); afterwards there is an exit status. The order of the denial is in
 * network.c.
 */

/* Of those that come while the agent runs there are no more in all. */
#define SESSION_WARNINGS_MAX 64u
#define SESSION_START_USEC (30 * USEC_PER_SEC)

typedef enum Phase {
	PHASE_STARTING,
	PHASE_RUNNING,
	PHASE_ENDING,
	PHASE_SAYING,
} Phase;

struct Session {
	sd_event *event;
	Phase phase;
	SessionRequest request;
	const Profile *profile;
	struct rlimit descriptors;
	int guard_fd;  /* what this user's sessions lock, for life */
	int state_fd;  /* and while they write the agent's state */
	int memory_fd; /* whom limits of memory killed; or FD_NONE */

	LinkServer *link;
	Lifeline *lifeline;
	Reports *reports;
	TerminalKeys keys;

	char *bwrap, *pasta, *git; /* paths; git may be missing */
	Network network;
	Reach *reach; /* since the network is closed */
	Holder holder;
	Wire *wire;
	Ledger *ledger; /* NULL where there is none */
	Ports *ports;   /* NULL where none cross */
	HostChanges *host;
	GitQuery *query;
	Preparation preparation;
	Plan plan;
	MaskWatch *masks;
	StateWatch *state; /* NULL for agents without such state */
	Tail tail;         /* of bwrap's standard error */

	AgentPid *pid_set;

	bool private_proc, proc_known, planned, wire_known, git_known, state_known, wire_down, executed,
		ready, released, stopped;
	char *made_mounts; /* the machine's, of when the jail was made */
	int pid_error;     /* why the agent has no PID of its own: a positive errno, or 0 */
	char *misplaced;   /* a mount of the jail that is not in its place: it starts anew when it is down */
	unsigned again;    /* how often the start was begun again */
	bool finished;     /* session_finished() was called */
	bool state_last;   /* the agent's state is brought out, after the end */
	pid_t leader;      /* the jail's init */
	pid_t waiting;     /* the same, since it waits for the word; 0 before */
	int leader_fd;
	int resolver_fd; /* of the jail's resolv.conf, when it is not the plan's */

	char *error, *problem; /* of a launch that failed */
	char *why;             /* the session itself ended the agent that ran */
	uint64_t kill_at_usec; /* CLOCK_MONOTONIC, after a hang-up; 0 before */
	bool status_known, delivered;
	int status; /* as wait(2) encodes it */
	char **warnings;

	Doctor *doctor; /* NULL for agents: the functions of doctor.h do nothing then */

	/* Of a session that was made to check its jail. */
	VerifyRows *rows;
	StandIn stand_in;
	int expectations_fd,
		master_fd; /* an empty memfd until the agent would start; the terminal's master */
	sd_event_source *master;

	/* Of one that is checked while its agent goes on. */
	VerifyRun *verify;
	uint32_t verify_serial;
	Bait *bait; /* of either, as long as checks run */

	uint64_t flows_not_before_usec;
	sd_event_source *deadline, *read_back, *flows, *resolver, *holder_source, *tail_source, *proc_source,
		*signals[3];
};

/* The launch fails; everything ends. The first cause stands; after the start it does nothing. problem may be
 * NULL. */
void session_fail(Session *session, const char *error, const char *problem);
/* All that the agent needs may be there: go on. */
void session_advance(Session *session);
/*
 * session-network.c: notice what happens to the host's network from now on; start the wire, when there is to
 * be one. Return: 0; a negative errno with *ret_problem.
 */
int session_watch_host(Session *session);
int session_start_wire(Session *session, char **ret_problem);
/* session-resolver.c: follow the host's resolv.conf from now on; look at it now. */
void session_follow_resolver(Session *session);
void session_look_at_resolver(Session *session);
/* No packet leaves, or the host has nowhere to send it. */
bool session_is_offline(const Session *session);
/* The network is not what was meant: nothing may go on running in it. */
void session_end_for_the_network(Session *session, const char *cause);
/* What may be reached can be changed from now on. Return: 0 or a negative errno. */
int session_start_reach(Session *session);
/* Warnings that come while the agent runs, for whoever asks for the table. NULL-terminated or NULL. */
void session_warn_later(Session *session, char *const *warnings);
/* As LinkServerCalls.reach. */
int session_link_reach(void *userdata, const LinkMessage *m, char **ret_problem);
/* Whatever still runs is to end. */
void session_end(Session *session);
/* The same, for a cause that the person and the service's log are told: cause and fix. The status is
 * SIGKILL's. */
void session_end_because(Session *session, const char *why);
/*
 * session-masks.c: hold what is hidden in the jail, whose init waits for the word. Return: 0, with *ret_misplaced a mount
 * that is not where the plan has it, or NULL, also where init has gone; a negative errno when the jail lives and cannot be
 * looked at: then no agent may start.
 */
int session_enter_masks(Session *session, const Entry **ret_misplaced);
/* session_end_because(), for an entry that no longer lies at its place. userdata: the session. */
void session_unmasked(void *userdata, const Entry *entry);
/* Hang the agent up; what is left after grace_usec is killed. */
void session_hang_up(Session *session, uint64_t grace_usec);
/*
 * Start a second time, from the namespaces on: those of the first went with a bwrap that ended. Once, and
 * only while the agent has not run.
 */
void session_begin_again(Session *session);
/* The same, or the launch fails where that did not help. line: what was found. */
void session_disturbed(Session *session, const char *line);
/* Attempts were denied that the service does not know. userdata: the session. */
void session_denied(void *userdata);
/*
 * The jail could not be made; line: what was said of it, or NULL. If others moved something meanwhile, that
 * is planned for anew, where it is now, or the launch fails since it went on. Return: whether it was that.
 */
bool session_was_disturbed(Session *session, const char *line);
/* Tell the service what the state is now. */
void session_tell(Session *session);
void session_warn(Session *session, char *const *warnings);
/* Be called back when the holder, or the bwrap that it became, ends. Return: 0 or a negative errno. */
int session_watch_holder(Session *session);
/* The work of the state's watch that was awaited, before the agent or after it, is done. userdata: the
 * session.
 */
void session_state_settled(void *userdata);
/*
 * session-keep.c: bring in what a person changed outside since the last session; session_state_settled()
 * comes when it is not done at once. Return: 0; a negative errno with *ret_problem.
 */
int session_start_state(Session *session);
/*
 * session-doctor.c, all of it for sessions of PURPOSE_DOCTOR alone: report what can be found out before a
 * start, and choose the agent. Return: 0 or -ENOMEM.
 */
int session_begin_doctor(Session *session);
/* What the host's network is, and what of the jail needs no trying. */
void session_doctor_network(const Session *session);
/* Namespaces and devices were made, or not. problem: NULL, or why not. */
void session_doctor_holder(const Session *session, const char *problem);
/* problem: why there is no wire, or NULL: it is up. */
void session_doctor_wire(const Session *session, const char *problem);
void session_doctor_proc(const Session *session, int error);
void session_doctor_git(const Session *session);
void session_doctor_plan(const Session *session);
/* Tell launch what of the state was not kept. */
void session_say_state(const Session *session);
/* The agent may start, as far as its state goes. */
void session_state_known(Session *session);
/* Nothing of the jail runs any more: bring the agent's state out, then session_say(). */
void session_finished(Session *session);
/*
 * session-verify.c: the checks run in the agent's place. Its terminal is made before the plan; its
 * descriptors are handed over with the jail's; what it expects is written when everything is there, right
 * before it starts; what it said last is read when it has ended. Return: 0; a negative errno with
 * *ret_problem.
 */
int session_verify_open(Session *session, char **ret_problem);
int session_verify_hand_over(Session *session, char **ret_problem);
int session_verify_expect(Session *session, char **ret_problem);
void session_verify_begin(Session *session);
void session_verify_end(Session *session);
void session_verify_done(Session *session);
/* As LinkServerCalls.verify: check the jail that runs. */
int session_verify_running(void *userdata, uint32_t serial, bool probes, char **ret_problem);
/* The last words. */
void session_say(Session *session);
extern const ReportsCalls session_reports_calls;
