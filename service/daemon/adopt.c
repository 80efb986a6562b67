/* SPDX-License-Identifier: MIT */
#include "service/daemon/adopt.h"

#include "service/daemon/link-client.h"
#include "service/daemon/log.h"
#include "service/daemon/proc.h"
#include "service/daemon/run-dir.h"

/* Nobody is there any more: what is left of it goes. */
static void sweep(Manager *manager, const char *id, const char *why)
{
	int r;

	if (cgroups_has(manager->cgroups, id))
		cgroups_end(manager->cgroups, id);
	r = run_dir_remove_session(id);
	log_line("session %s is cleared away: %s%s%s", id, why, r < 0 ? "; its directory stays: " : "",
		 r < 0 ? strerror(-r) : "");
}

/*
 * Open the process of a record and make sure that it is that process. The pidfd is asked last, so that what
 * was read belongs to it. Return: a descriptor, or -ESRCH and other negative errnos.
 */
static int open_process(const Record *record)
{
	_cleanup_close_ int pidfd = pidfd_of(record->pid);
	ProcStat stat;
	int r;

	if (pidfd < 0)
		return pidfd;
	r = proc_stat(record->pid, &stat);
	if (r < 0)
		return r;
	if (stat.start_ticks != record->start_ticks || !pidfd_alive(pidfd))
		return -ESRCH;
	return TAKE_FD(pidfd);
}

static int take_over(Manager *manager, const Record *record, int pidfd, int link_fd)
{
	_cleanup_close_ int owned_link_fd = link_fd, owned_pidfd = pidfd;
	Session *session;
	int r;

	r = registry_add(manager->registry, record->id, record->agent, record->user, record->uid,
			 record->workspace, record->started_usec, &session);
	if (r < 0)
		return r;
	session->pid = record->pid;
	session->pidfd = TAKE_FD(owned_pidfd);
	session->cgroup = cgroups_has(manager->cgroups, record->id);
	r = keeper_new(manager->event, manager->cgroups, session, &manager_keeper_events, manager);
	if (r >= 0)
		r = keeper_attach(session->keeper, TAKE_FD(owned_link_fd));
	if (r < 0) {
		keeper_free(session->keeper);
		registry_unlink(session);
		session_free(session);
	}
	return r;
}

static void adopt_one(void *userdata, const char *id)
{
	_cleanup_close_ int pidfd = FD_NONE, link_fd = FD_NONE;
	_cleanup_(record_done) Record record = { 0 };
	Manager *manager = userdata;
	int r;

	/* Ours, kept over a time without the name. */
	if (registry_find(manager->registry, id))
		return;
	r = run_dir_read_record(id, &record);
	if (r < 0) {
		sweep(manager, id, r == -ENOENT ? "it never had a record" : "its record cannot be used");
		return;
	}
	pidfd = open_process(&record);
	if (pidfd < 0) {
		pidfd = FD_NONE;
		sweep(manager, id, "its process has ended");
		return;
	}
	link_fd = run_dir_connect_link(id);
	if (link_fd < 0) {
		link_fd = FD_NONE;
		sweep(manager, id, "nobody listens on its socket");
		return;
	}
	if (link_peer_check(link_fd, record.pid, record.uid) < 0) {
		sweep(manager, id, "somebody else listens on its socket");
		return;
	}
	r = take_over(manager, &record, TAKE_FD(pidfd), TAKE_FD(link_fd));
	if (r < 0) {
		/* It stays where it is, for the next service. */
		log_line("session %s cannot be taken over: %s", id, strerror(-r));
		return;
	}
	log_line("session %s is taken over: agent %s of %s (uid %u)", id, record.agent, record.user,
		 record.uid);
}

void adopt_sessions(Manager *manager)
{
	int r;

	r = run_dir_each_session(adopt_one, manager);
	if (r < 0)
		log_line("the sessions of an earlier service cannot be listed: %s", strerror(-r));
}
