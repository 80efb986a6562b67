/* SPDX-License-Identifier: MIT */

/*
 * The host's resolver changes while an agent runs. The jail's resolv.conf is a file that was mounted over the
 * host's, and goes with it when that is replaced by another one, as most programs do: then the host's is in
 * sight, whose name servers the jail does not reach. Or a link takes its place (systemd-resolved is installed),
 * which leads to nothing in the jail's own /run. So ours is put there again, with the "search", "domain" and
 * "options" of now. Pasta is told the host's first name server at its start only, and is started again when
 * that is another one, which ends connections; with the same server nothing of that is touched.
 */

#include "service/session/session-state.h"

#include <limits.h>

#include "service/session/jail-file.h"

#define RESOLVER_PATH "/etc/resolv.conf"
#define SETTLE_USEC (100 * USEC_PER_MSEC) /* several steps of one change */
#define LINKS_MAX 8u

static void on_changed(void *userdata);

/* Watch every name on the way to the file. Return: the last of them, or NULL. */
static char *watch_names(Session *session)
{
	_cleanup_free_ char *path = strdup(RESOLVER_PATH);

	for (unsigned i = 0; path && i < LINKS_MAX; i++) {
		_cleanup_free_ char *from = NULL;
		char target[PATH_MAX];
		ssize_t n;

		if (session->masks)
			mask_watch_beside(session->masks, path, on_changed);
		n = readlink(path, target, sizeof(target));
		if (n <= 0 || (size_t)n >= sizeof(target))
			return TAKE_PTR(path);
		from = TAKE_PTR(path);
		if (target[0] == '/')
			path = strndup(target, (size_t)n);
		else if (asprintf(&path, "%.*s/%.*s", (int)(strrchr(from, '/') - from), from, (int)n,
				  target) < 0)
			path = NULL;
	}
	return NULL;
}

static void show(Session *session, const char *last_name, const char *text)
{
	_cleanup_(strings_freep) char **warnings = NULL;
	int r;

	if (jail_file_is_seen(session->leader, RESOLVER_PATH, session->resolver_fd))
		r = jail_file_write(session->resolver_fd, text);
	else {
		session->resolver_fd = close_fd(session->resolver_fd);
		r = jail_file_put(session->leader,
				  &(JailFilePlace){ .path = RESOLVER_PATH,
						    .last_name = last_name,
						    .before = session->preparation.names.text },
				  text, &session->resolver_fd);
	}
	if (r == 0)
		return;
	(void)strings_appendf(
		&warnings,
		"/etc/resolv.conf was changed outside, and the jail's cannot follow (%s): names "
		"may not resolve inside; start the session anew",
		strerror(-r));
	session_warn_later(session, warnings);
}

void session_look_at_resolver(Session *session)
{
	const PreparationNetwork network = { .jailed = session->network.jailed,
					     .forwarder = session->network.routes.forwarder };
	_cleanup_(resolver_done) Resolver now = { 0 };
	Resolver *before = &session->preparation.names;
	_cleanup_free_ char *last_name = NULL;
	bool resolves;

	if (session->phase != PHASE_RUNNING || session->leader_fd < 0)
		return;
	last_name = watch_names(session);
	/* What is half written is looked at again when it is whole. */
	if (preparation_read_resolver(&network, &now) < 0)
		return;
	if (!jail_file_reads(session->leader, RESOLVER_PATH, now.text))
		show(session, last_name, now.text);
	if (session->wire)
		wire_tell_server(session->wire, resolver_first_ipv4(&now));
	resolver_done(before);
	*before = now;
	now = (Resolver){ 0 };
	resolves = preparation_resolves(&network, before);
	if (resolves != session->preparation.resolver) {
		session->preparation.resolver = resolves;
		session_tell(session);
	}
}

static int on_settled(sd_event_source *source, uint64_t usec, void *userdata)
{
	session_look_at_resolver(userdata);
	return 0;
}

static void on_changed(void *userdata)
{
	Session *session = userdata;
	int enabled = SD_EVENT_OFF;

	if (session->phase != PHASE_RUNNING)
		return;
	if (!session->resolver) {
		(void)sd_event_add_time_relative(session->event, &session->resolver, CLOCK_MONOTONIC,
						 SETTLE_USEC, 1, on_settled, session);
		return;
	}
	(void)sd_event_source_get_enabled(session->resolver, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	(void)sd_event_source_set_time_relative(session->resolver, SETTLE_USEC);
	(void)sd_event_source_set_enabled(session->resolver, SD_EVENT_ONESHOT);
}

void session_follow_resolver(Session *session)
{
	_cleanup_free_ char *last_name = watch_names(session);

	(void)last_name;
}
