/* SPDX-License-Identifier: MIT */
#include "service/daemon/adopt.h"

#include <signal.h>

#include "service/daemon/allow-expiry.h"
#include "service/daemon/drift.h"
#include "service/daemon/link-client.h"
#include "service/daemon/log.h"
#include "service/daemon/proc.h"
#include "service/daemon/run-dir.h"
#include "service/daemon/session-reach.h"

/* For the first words of a session that was taken over; link.h, LINK_ANSWER_USEC. */
#define SETTLE_USEC LINK_ANSWER_USEC

/* Nobody is there any more: what is left of it goes. record: NULL where it has none. */
static void sweep(Manager *manager, const char *id, const Record *record, const char *why)
{
	_cleanup_free_ char *group = NULL;
	int r;

	if (run_dir_read_group(id, &group) >= 0)
		cgroups_end(manager->cgroups, group);
	r = run_dir_remove_session(id);
	if (record && session_id_valid(record->id))
		audit_exit_unseen(manager->audit, record);
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
	session->awaited = true;
	session->posture_known = true; /* its first service wrote it down */
	if (run_dir_read_group(record->id, &session->group) >= 0) {
		if (cgroups_has(manager->cgroups, session->group))
			session->limits = cgroups_limits(manager->cgroups, session->group);
		else
			free(TAKE_PTR(session->group));
	}
	r = keeper_new(manager->event, manager->turns, manager->cgroups, session, &manager_keeper_events,
		       manager);
	if (r >= 0)
		r = session_reach_new(session, NULL);
	if (r >= 0)
		r = keeper_attach(session->keeper, TAKE_FD(owned_link_fd));
	if (r < 0) {
		keeper_free(session->keeper);
		registry_unlink(session);
		session_free(session);
		return r;
	}
	keeper_connected(session->keeper);
	return 0;
}

/*
 * Connect to a session and see that it is the one of the record. Return: a descriptor; -EPERM with *ret_why
 * when the session has made it impossible; other negative errnos when it is our own fault.
 */
static int open_link(const Record *record, const char **ret_why)
{
	_cleanup_close_ int fd = run_dir_connect_link(record->id);

	switch (fd) {
	case -ENOMEM:
	case -ENOBUFS:
	case -EMFILE:
	case -ENFILE:
		return fd;
	}
	*ret_why = "nobody listens on its socket";
	if (fd < 0)
		return -EPERM;
	*ret_why = "somebody else listens on its socket";
	if (link_peer_check(fd, record->pid, record->uid) < 0)
		return -EPERM;
	return TAKE_FD(fd);
}

static void adopt_one(void *userdata, const char *id)
{
	_cleanup_close_ int pidfd = FD_NONE, link_fd = FD_NONE;
	_cleanup_(record_done) Record record = { 0 };
	Manager *manager = userdata;
	const char *why = NULL;
	Session *adopted;
	int r;

	/* Ours, kept over a time without the name. */
	if (registry_find(manager->registry, id))
		return;
	r = run_dir_read_record(id, &record);
	if (r == -ENOENT || r == -EBADMSG) {
		sweep(manager, id, NULL,
		      r == -ENOENT ? "it never had a record" : "its record cannot be used");
		return;
	}
	if (r >= 0)
		r = pidfd = open_process(&record);
	if (r == -ESRCH) {
		sweep(manager, id, &record, "its process has ended");
		return;
	}
	if (r >= 0)
		r = link_fd = open_link(&record, &why);
	if (r == -EPERM && why) {
		/* Its user did that. A session that nobody can list or stop must not go on. */
		(void)pidfd_kill(pidfd, SIGKILL);
		sweep(manager, id, &record, why);
		return;
	}
	if (r >= 0)
		r = take_over(manager, &record, TAKE_FD(pidfd), TAKE_FD(link_fd));
	if (r < 0) {
		/* It stays where it is, for the next service. */
		log_line("session %s cannot be taken over: %s", id, strerror(-r));
		return;
	}
	adopted = registry_find(manager->registry, id);
	(void)drift_refresh(adopted);
	audit_adopted(manager->audit, adopted, adopted->marks);
	allow_expiry_restore(manager->event, manager->audit, adopted);
}

static void settle(Manager *manager)
{
	manager->settling = sd_event_source_disable_unref(manager->settling);
	for (Session *s = registry_first(manager->registry); s; s = s->next)
		s->awaited = false;
	clients_release(manager->clients);
}

static int on_settle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	settle(userdata);
	return 0;
}

void adopt_sessions(Manager *manager)
{
	int r;

	if (manager->machine_started)
		audit_exits_unseen(manager->audit);
	manager->machine_started = false;
	r = run_dir_each_session(adopt_one, manager);
	if (r < 0)
		log_line("the sessions of an earlier service cannot be listed: %s", strerror(-r));

	manager->settling = sd_event_source_disable_unref(manager->settling);
	r = sd_event_add_time_relative(manager->event, &manager->settling, CLOCK_MONOTONIC, SETTLE_USEC,
				       20 * USEC_PER_MSEC, on_settle_time, manager);
	if (r < 0)
		settle(manager);
}

bool adopt_awaits(Manager *manager, const Client *client)
{
	for (Session *s = registry_first(manager->registry); s; s = s->next)
		if (s->awaited && session_visible(s, client->uid))
			return true;
	return false;
}
