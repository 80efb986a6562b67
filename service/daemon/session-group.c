/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-group.h"

#include <fcntl.h>

#include "service/daemon/log.h"
#include "service/daemon/run-dir.h"
#include "service/link/pack.h"

/* Also without a directory: the end of the line is what the child waits for. */
static void let_go(SessionGroup *group)
{
	_cleanup_free_ char *directory = NULL;

	if (group->go_fd < 0)
		return;
	directory = group->path ? cgroups_directory(group->cgroups, group->path) : NULL;
	/* A child that has died is its keeper's business. */
	(void)dprintf(group->go_fd, "%s\n", directory ?: "");
	group->go_fd = close_fd(group->go_fd);
}

static void describe(SessionGroup *group)
{
	Session *session = group->session;

	free(session->group);
	session->group = group->path ? strdup(group->path) : NULL;
	if (session->group)
		session->limits = cgroups_limits(group->cgroups, session->group);
	session->in_callers_group = !group->path && group->directory_fd >= 0;
}

/* Return: 0, -EOPNOTSUPP where there is none, -ENOMEM; others where its name cannot be written down. */
static int make(SessionGroup *group, const char *id)
{
	int fd = cgroups_make(group->cgroups, &group->wish, &group->path);

	if (fd < 0)
		return fd;
	group->directory_fd = fd;
	return group->path ? run_dir_write_group(id, group->path) : 0;
}

/* systemd has not taken it: a group of ours, before the child does anything. */
static void fall_back(SessionGroup *group)
{
	Session *session = group->session;
	int r;

	free(group->path);
	group->path = NULL;
	r = make(group, session->id);
	if (r >= 0 && group->directory_fd >= 0)
		r = cgroups_enter(group->directory_fd, session->pid);
	if (r >= 0)
		return;
	if (r != -EOPNOTSUPP)
		log_line("session %s gets no control group: %s", session->id, strerror(-r));
	if (group->path)
		cgroups_end(group->cgroups, group->path);
	free(group->path);
	group->path = NULL;
}

static void on_scope(void *userdata, int result, const char *problem)
{
	SessionGroup *group = userdata;
	_cleanup_free_ char *found = NULL;

	group->query = NULL;
	/* What counts is where it is. */
	found = cgroups_of(group->session->pid);
	if (!found || !streq(found, group->path)) {
		log_line("systemd makes no scope for session %s: %s", group->session->id,
			 problem       ? problem
			 : result == 0 ? "the process is not in it"
				       : strerror(-result));
		fall_back(group);
	}
	describe(group);
	let_go(group);
}

int session_group_begin(Cgroups *cgroups, const CgroupWish *wish, const char *id, SessionGroup **ret)
{
	_cleanup_(session_group_freep) SessionGroup *group = malloc(sizeof(*group));
	int pipe_fds[2], r;

	if (!group)
		return -ENOMEM;
	*group = (SessionGroup){ .cgroups = cgroups,
				 .wish = *wish,
				 .caller = wish->caller ? strdup(wish->caller) : NULL,
				 .directory_fd = FD_NONE,
				 .wait_fd = FD_NONE,
				 .go_fd = FD_NONE };
	group->wish.caller = group->caller;
	if (wish->caller && !group->caller)
		return -ENOMEM;
	group->path = cgroups_plan_scope(cgroups, wish);
	if (group->path) {
		if (pipe2(pipe_fds, O_CLOEXEC) < 0)
			return -errno;
		group->scope = true;
		group->wait_fd = pipe_fds[0];
		group->go_fd = pipe_fds[1];
		r = run_dir_write_group(id, group->path);
	} else {
		r = make(group, id);
		if (r < 0 && !group->path && r != -ENOMEM) {
			if (r != -EOPNOTSUPP)
				log_line("session %s gets no control group: %s", id, strerror(-r));
			r = 0;
		}
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(group);
	return 0;
}

void session_group_settle(SessionGroup *group, sd_bus *bus, Session *session)
{
	const ScopePlan plan = { .group = group->path,
				 .uid = session->uid,
				 .pid = session->pid,
				 .memory_max = group->wish.memory_max,
				 .tasks_max = group->wish.tasks_max };
	int r;

	group->session = session;
	group->wait_fd = close_fd(group->wait_fd);
	if (!group->scope) {
		describe(group);
		return;
	}
	r = scope_start(bus, &plan, on_scope, group, &group->query);
	if (r < 0)
		on_scope(group, r, NULL);
}

SessionGroup *session_group_free(SessionGroup *group)
{
	if (!group)
		return NULL;
	scope_cancel(group->query);
	if (!group->session && group->path && !group->scope)
		cgroups_end(group->cgroups, group->path);
	close_fd(group->directory_fd);
	close_fd(group->wait_fd);
	close_fd(group->go_fd);
	free(group->path);
	free(group->caller);
	free(group);
	return NULL;
}

static int warn_of(Cgroups *cgroups, const CgroupWish *wish, const char *controller, const char *name,
		   const char *origin, char ***ret_warnings)
{
	if (!origin || cgroups_offers(cgroups, wish, controller))
		return 0;
	return strings_appendf(
		ret_warnings,
		"%s: %s does not hold: this machine offers no limit of control groups for it here "
		"(cgroup2, controller %s)",
		origin, name, controller);
}

int session_group_warn(Cgroups *cgroups, const CgroupWish *wish, const char *memory, const char *tasks,
		       char ***ret_warnings)
{
	int r = warn_of(cgroups, wish, "memory", "memory-max", memory, ret_warnings);

	return r < 0 ? r : warn_of(cgroups, wish, "pids", "tasks-max", tasks, ret_warnings);
}
