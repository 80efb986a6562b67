/* SPDX-License-Identifier: MIT */
#include "service/daemon/launch-start.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "dbus/errors.h"
#include "dbus/names.h"
#include "service/daemon/log.h"
#include "service/daemon/proc.h"
#include "service/daemon/run-dir.h"
#include "service/daemon/session-reach.h"
#include "service/daemon/spawn.h"
#include "service/plan/request.h"

#define ID_ATTEMPTS 8

/* What is made for a session before there is one; taken apart again unless it is taken over. */
typedef struct Making {
	Manager *manager;
	Launch *launch;
	char id[CS_ID_LENGTH + 1];
	bool directory;
	int link_fd, request_fd, lifeline_fd, guard_fd, state_fd;
	char **warnings; /* of the service, which the session says */
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
	User user; /* borrowed strings */
	uint64_t started_usec;
} Making;

static void making_done(Making *making)
{
	close_fd(making->link_fd);
	close_fd(making->guard_fd);
	close_fd(making->state_fd);
	close_fd(making->request_fd);
	close_fd(making->lifeline_fd);
	free(making->groups);
	strings_free(making->warnings);
	if (making->directory)
		(void)run_dir_remove_session(making->id);
}

/* The gids that no session carries. Return: 0 with *ret to be freed, or a negative errno. */
static int denied_groups(const Launch *launch, gid_t **ret, size_t *ret_n, char **ret_problem)
{
	_cleanup_(strings_freep) char **names = config_deny_groups(&launch->config);
	_cleanup_free_ gid_t *gids = NULL;
	size_t n = 0;

	if (!names)
		return -ENOMEM;
	while (names[n])
		n++;
	gids = calloc(n + 1, sizeof(*gids));
	if (!gids)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; names[i]; i++) {
		int r = users_group(launch->manager->users, names[i], &gids[n]);

		/* Of the default list; one that the file names may be misspelt, and would be carried in. */
		if (r == -ENOENT && !config_next(&launch->config, CONFIG_DENY_GROUP, &(size_t){ 0 }))
			continue;
		if (r == -ENOENT)
			return refuse(ret_problem, r,
				      "There is no group %s, which deny-group in %s names; correct the name.",
				      names[i], CS_CONFIG_PATH);
		/* A group that cannot be looked up cannot be denied. */
		if (r < 0)
			return refuse(ret_problem, r, "The group %s (deny-group) cannot be looked up: %s.",
				      names[i], strerror(-r));
		n++;
	}
	*ret = TAKE_PTR(gids);
	*ret_n = n;
	return 0;
}

static bool gid_in(const gid_t *gids, size_t n, gid_t gid)
{
	for (size_t i = 0; i < n; i++)
		if (gids[i] == gid)
			return true;
	return false;
}

/*
 * The caller's groups, as the bus says, less those that are denied. The first group is the one that the
 * process has, but only if the bus says so too.
 */
static int make_identity(Making *making, char **ret_problem)
{
	const Client *client = making->launch->client;
	_cleanup_free_ gid_t *denied = NULL;
	size_t n_denied = 0;
	const User *user;
	int r;

	r = denied_groups(making->launch, &denied, &n_denied, ret_problem);
	if (r < 0)
		return r;
	/* Borrowed until the name service is asked again, which nothing below does. */
	r = users_find(making->manager->users, client->uid, &user);
	if (r < 0)
		return r;
	making->user = *user;
	making->groups = calloc(client->n_groups + 1, sizeof(gid_t));
	if (!making->groups)
		return -ENOMEM;
	for (size_t i = 0; i < client->n_groups; i++)
		if (!gid_in(denied, n_denied, client->groups[i]))
			making->groups[making->n_groups++] = client->groups[i];

	if (gid_in(making->groups, making->n_groups, making->launch->facts.gid))
		making->gid = making->launch->facts.gid;
	else if (gid_in(making->groups, making->n_groups, user->gid))
		making->gid = user->gid;
	else
		return refuse(
			ret_problem, -EPERM,
			"Your primary group may not be carried into a session (deny-group); change it with "
			"newgrp, or let an administrator allow it.");
	return 0;
}

static int make_directory(Making *making, char **ret_problem)
{
	Manager *manager = making->manager;
	int r;

	r = run_dir_open_locks(making->user.uid, &making->guard_fd, &making->state_fd, ret_problem);
	if (r < 0)
		return r;
	if (making->launch->profile->temp_root) {
		_cleanup_free_ char *problem = NULL;

		/* Any user can be first in /var/tmp. That must not end everybody's launches: the session goes
		 * without, and says so. */
		if (run_dir_make_temp(making->user.uid, making->gid, &problem) < 0)
			log_line("no place for temporary files: %s", problem ? problem : "out of memory");
	}
	for (int i = 0; i < ID_ATTEMPTS; i++) {
		r = session_id_make(making->id);
		if (r < 0)
			break;
		r = registry_find(manager->registry, making->id) ? -EEXIST : run_dir_make_session(making->id);
		if (r != -EEXIST)
			break;
	}
	if (r >= 0) {
		making->directory = true;
		r = making->link_fd = run_dir_bind_link(making->id);
	}
	if (r < 0)
		return refuse(ret_problem, r, "The session's directory below %s cannot be made: %s.",
			      CS_SESSIONS_DIR, strerror(-r));
	return 0;
}

/* The origin of what the configuration says about key; NULL where it is silent. */
static const char *origin_of(const Config *config, ConfigKey key)
{
	const ConfigValue *value = config_next(config, key, &(size_t){ 0 });

	return value ? value->origin : NULL;
}

static int make_cgroup(Making *making, char **ret_problem)
{
	Launch *launch = making->launch;
	const char *memory = origin_of(&launch->config, CONFIG_MEMORY_MAX),
		   *tasks = origin_of(&launch->config, CONFIG_TASKS_MAX);
	const CgroupWish wish = {
		.by_name = memory || tasks,
		.uid = making->user.uid,
		.caller = launch->facts.cgroup,
		.memory_max = config_number(&launch->config, CONFIG_MEMORY_MAX),
		.tasks_max = config_number(&launch->config, CONFIG_TASKS_MAX),
	};
	int r;

	r = session_group_begin(making->manager->cgroups, &wish, making->id, &launch->group);
	if (r >= 0)
		r = session_group_warn(making->manager->cgroups, &wish, memory, tasks, &making->warnings);
	return r >= 0 || r == -ENOMEM
		       ? r
		       : refuse(ret_problem, r, "The session's files below %s cannot be made: %s.",
				CS_SESSIONS_DIR, strerror(-r));
}

static int make_lifeline(Making *making, char **ret_problem)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return refuse(ret_problem, -errno, "The lifeline cannot be made: %s; end other sessions.",
			      strerror(errno));
	making->lifeline_fd = pair[0];
	making->launch->lifeline_fd = pair[1];
	return 0;
}

static int make_request(Making *making, char **ret_problem)
{
	Launch *launch = making->launch;
	_cleanup_free_ uint8_t *data = NULL;
	/* Everything is borrowed: this one is never done away with. */
	SessionRequest request = {
		.purpose = launch->kind->purpose,
		.probes = launch->probes,
		.id = making->id,
		.agent = launch->request.agent,
		.uid = making->user.uid,
		.gid = making->gid,
		.user = making->user.name,
		.home = making->user.home,
		.login_shell = making->user.shell,
		.argv = launch->request.argv,
		.environment = launch->request.environment,
		.cwd = launch->request.cwd,
		.descriptors = launch->request.descriptors,
		.terminals = launch->request.terminals,
		.background = launch->request.background,
		.file_mode_mask = launch->facts.umask,
		.ignored_signals = launch->facts.ignored_signals,
		.inherited = launch->facts.inherited,
		.started_usec = making->started_usec,
		.config = launch->config,
		.warnings = making->warnings,
	};
	size_t size = 0;
	int r;

	memcpy(request.further, launch->request.further, sizeof(request.further));
	r = session_request_encode(&request, &data, &size);
	if (r >= 0)
		r = making->request_fd = sealed_memfd("claude-sandbox-request", data, size);
	if (r < 0)
		return refuse(ret_problem, r, "The request cannot be handed on: %s.", strerror(-r));
	return 0;
}

static void on_started_too_late(Launch *launch)
{
	launch->refusal = CS_ERROR_JAIL_UNAVAILABLE;
	launch->sentence = "The session has not started within 60 seconds; 'claude-sandbox log' may say why.";
	keeper_kill(launch->session->keeper);
	launch_refuse(launch, launch->refusal, launch->sentence);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	on_started_too_late(userdata);
	return 0;
}

static void launch_abort(Launch *launch, const char *error, const char *sentence)
{
	keeper_kill(launch->session->keeper);
	launch_refuse(launch, error, sentence);
}

static int on_listening(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Launch *launch = userdata;
	Session *session = launch->session;
	_cleanup_free_ char *problem = NULL;
	_cleanup_close_ int link_fd = FD_NONE;
	int r;

	r = spawn_read_pipe(fd, &problem);
	if (r == 0)
		return 0;
	launch->listening = sd_event_source_disable_unref(launch->listening);
	launch->listening_fd = close_fd(launch->listening_fd);
	if (r < 0) {
		launch_abort(launch, r == -EINVAL ? CS_ERROR_BAD_REQUEST : CS_ERROR_JAIL_UNAVAILABLE,
			     problem);
		return 0;
	}

	link_fd = run_dir_connect_link(session->id);
	if (link_fd < 0) {
		/* It is gone, and then its end is the answer; or it only closed the pipe. */
		r = TAKE_FD(link_fd);
		if (r == -ECONNREFUSED) {
			keeper_kill(session->keeper);
			return 0;
		}
		log_line("session %s cannot be reached: %s", session->id, strerror(-r));
		(void)refuse(&problem, r, "The session cannot be reached on its socket below %s: %s",
			     CS_SESSIONS_DIR, strerror(-r));
		error_add_fix(&problem, r);
		launch_abort(launch, CS_ERROR_JAIL_UNAVAILABLE, problem);
		return 0;
	}
	if (link_peer_check(link_fd, session->pid, session->uid) < 0) {
		log_line("session %s lets somebody else listen", session->id);
		launch_abort(launch, CS_ERROR_SESSION_DIED,
			     "Another process listens in the session's place.");
		return 0;
	}
	if (keeper_attach(session->keeper, TAKE_FD(link_fd)) < 0)
		launch_abort(launch, SD_BUS_ERROR_NO_MEMORY,
			     "The service has no memory for the session; try again.");
	return 0;
}

static int spawn_child(Making *making, pid_t *ret_pid, int *ret_pidfd, char **ret_problem)
{
	Launch *launch = making->launch;
	_cleanup_free_ char *directory =
		launch->group->path ? cgroups_directory(making->manager->cgroups, launch->group->path) : NULL;
	const SpawnPlan plan = {
		.program = CS_SESSION_PATH,
		.uid = making->user.uid,
		.gid = making->gid,
		.groups = making->groups,
		.n_groups = making->n_groups,
		.facts = &launch->facts,
		.request = &launch->request,
		.link_fd = making->link_fd,
		.guard_fd = making->guard_fd,
		.state_fd = making->state_fd,
		.request_fd = making->request_fd,
		.lifeline_fd = making->lifeline_fd,
		.cgroup_fd = launch->group->directory_fd,
		.wait_fd = launch->group->wait_fd,
		.go_fd = launch->group->go_fd,
		.group_directory = directory,
	};
	int r;

	r = spawn_session(&plan, ret_pid, ret_pidfd, &launch->listening_fd);
	if (r < 0)
		return refuse(ret_problem, r, "No process can be made for the session: %s.", strerror(-r));
	return 0;
}

static int write_record(const Session *session)
{
	Record record = {
		.id = (char *)session->id,
		.agent = session->agent,
		.user = session->user,
		.workspace = session->workspace,
		.uid = session->uid,
		.started_usec = session->started_usec,
		.pid = session->pid,
	};
	ProcStat stat;
	int r;

	r = proc_stat(session->pid, &stat);
	if (r < 0)
		return r;
	record.start_ticks = stat.start_ticks;
	return run_dir_write_record(session->id, &record);
}

static int watch_start(Launch *launch)
{
	sd_event *event = launch->manager->event;
	int r;

	r = sd_event_add_io(event, &launch->listening, launch->listening_fd, EPOLLIN, on_listening, launch);
	/* What the child says of its failure is read before its end is seen, which says nothing. */
	if (r >= 0)
		r = sd_event_source_set_priority(launch->listening, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &launch->deadline, CLOCK_MONOTONIC,
					       LAUNCH_DEADLINE_USEC, USEC_PER_SEC, on_deadline, launch);
	return r;
}

static int start(Making *making, char **ret_problem)
{
	Launch *launch = making->launch;
	Manager *manager = launch->manager;
	Session *session = NULL;
	siginfo_t info;
	int r;

	r = make_identity(making, ret_problem);
	if (r >= 0)
		r = make_directory(making, ret_problem);
	if (r >= 0)
		r = make_cgroup(making, ret_problem);
	if (r >= 0)
		r = make_lifeline(making, ret_problem);
	if (r >= 0)
		r = make_request(making, ret_problem);
	if (r >= 0)
		r = registry_add(manager->registry, making->id, launch->request.agent, making->user.name,
				 making->user.uid, launch->request.cwd, making->started_usec, &session);
	if (r < 0)
		return r;
	r = session_reach_new(session, &launch->config);
	if (r >= 0)
		r = spawn_child(making, &session->pid, &session->pidfd, ret_problem);
	if (r >= 0) {
		r = keeper_new(manager->event, manager->turns, manager->cgroups, session,
			       &manager_keeper_events, manager);
		if (r < 0) {
			(void)pidfd_kill(session->pidfd, SIGKILL);
			(void)waitid(P_PIDFD, (id_t)session->pidfd, &info, WEXITED);
		}
	}
	if (r < 0) {
		registry_unlink(session);
		session_free(session);
		return r;
	}

	/* The keeper clears up from here on, whatever happens. */
	making->directory = false;
	launch->session = session;
	session->hidden = launch->kind->purpose != PURPOSE_AGENT;
	r = run_dir_write_policy(session->id, &launch->config);
	/* Without a record the next service takes nothing over, and there is nobody left to answer. */
	if (r >= 0 && !session->hidden)
		r = write_record(session);
	if (r < 0)
		(void)refuse(ret_problem, r, "The session's files below %s cannot be written: %s.",
			     CS_SESSIONS_DIR, strerror(-r));
	else
		r = watch_start(launch);
	session_group_settle(launch->group, manager->bus, session);
	if (r < 0) {
		keeper_kill(session->keeper);
		return *ret_problem
			       ? r
			       : refuse(ret_problem, r, "The session cannot be watched: %s.", strerror(-r));
	}
	if (session->hidden)
		return 0;
	audit_launch(manager->audit, session, launch->widened,
		     !launch->widened    ? NULL
		     : session->uid == 0 ? "root"
					 : "polkit");
	return 0;
}

void launch_start(Launch *launch)
{
	_cleanup_(making_done) Making making = {
		.manager = launch->manager,
		.launch = launch,
		.link_fd = FD_NONE,
		.guard_fd = FD_NONE,
		.state_fd = FD_NONE,
		.request_fd = FD_NONE,
		.lifeline_fd = FD_NONE,
		.started_usec = clock_usec(CLOCK_REALTIME),
	};
	_cleanup_free_ char *problem = NULL;
	int r;

	r = start(&making, &problem);
	if (r < 0) {
		error_add_fix(&problem, r);
		launch_refuse(launch, r == -EPERM ? CS_ERROR_NOT_AUTHORIZED : CS_ERROR_JAIL_UNAVAILABLE,
			      problem ? problem : strerror(-r));
		return;
	}
	/* What was handed on is the session's now. */
	launch_forget_request(launch);
	signals_session(&launch->manager->signals, launch->session, true);
}
