/* SPDX-License-Identifier: MIT */
#include "service/daemon/registry.h"

#include <sys/random.h>

#include "service/daemon/allow-expiry.h"
#include "service/daemon/session-reach.h"

struct Registry {
	Session *first;
};

int registry_new(Registry **ret)
{
	Registry *registry = calloc(1, sizeof(*registry));

	if (!registry)
		return -ENOMEM;
	*ret = registry;
	return 0;
}

Session *session_free(Session *session)
{
	if (!session)
		return NULL;
	session->reach = session_reach_free(session->reach);
	session->expiries = allow_expiry_free(session->expiries);
	free(session->path);
	free(session->agent);
	free(session->user);
	free(session->workspace);
	link_cells_done(&session->warnings);
	link_cells_done(&session->posture);
	denied_sum_done(&session->denied);
	denied_seen_done(&session->denied_seen);
	free(session->why);
	free(session->group);
	strings_free(session->marks);
	close_fd(session->pidfd);
	free(session);
	return NULL;
}

Registry *registry_free(Registry *registry)
{
	if (!registry)
		return NULL;
	while (registry->first) {
		Session *session = registry->first;

		registry_unlink(session);
		session_free(session);
	}
	free(registry);
	return NULL;
}

int registry_add(Registry *registry, const char *id, const char *agent, const char *user, uid_t uid,
		 const char *workspace, uint64_t started_usec, Session **ret)
{
	Session *session;

	if (registry_find(registry, id))
		return -EEXIST;
	session = calloc(1, sizeof(*session));
	if (!session)
		return -ENOMEM;
	session->registry = registry;
	session->uid = uid;
	session->started_usec = started_usec;
	session->state = SESSION_STARTING;
	session->exit_status = EXIT_STATUS_UNKNOWN;
	session->pidfd = FD_NONE;
	(void)snprintf(session->id, sizeof(session->id), "%s", id);
	session->agent = strdup(agent);
	session->user = strdup(user);
	session->workspace = strdup(workspace);
	if (asprintf(&session->path, CS_SESSION_ROOT "/%s", id) < 0)
		session->path = NULL;
	if (!session->agent || !session->user || !session->workspace || !session->path) {
		session_free(session);
		return -ENOMEM;
	}
	session->next = registry->first;
	registry->first = session;
	*ret = session;
	return 0;
}

void registry_unlink(Session *session)
{
	for (Session **s = &session->registry->first; *s; s = &(*s)->next)
		if (*s == session) {
			*s = session->next;
			break;
		}
}

Session *registry_first(Registry *registry)
{
	return registry->first;
}

Session *registry_find(Registry *registry, const char *id)
{
	for (Session *s = registry->first; s; s = s->next)
		if (streq(s->id, id))
			return s;
	return NULL;
}

Session *registry_find_shown(Registry *registry, const char *id)
{
	Session *session = registry_find(registry, id);

	return session && !session->hidden ? session : NULL;
}

size_t registry_count(Registry *registry)
{
	size_t n = 0;

	for (Session *s = registry->first; s; s = s->next)
		n++;
	return n;
}

size_t registry_count_of(Registry *registry, uid_t uid)
{
	size_t n = 0;

	for (Session *s = registry->first; s; s = s->next)
		n += s->uid == uid;
	return n;
}

bool session_visible(const Session *session, uid_t uid)
{
	return !session->hidden && (uid == 0 || session->uid == uid);
}

int session_id_make(char ret[static CS_ID_LENGTH + 1])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567"; /* RFC 4648, lower case */
	uint8_t random[CS_ID_LENGTH];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	for (size_t i = 0; i < CS_ID_LENGTH; i++)
		ret[i] = alphabet[random[i] & 31];
	ret[CS_ID_LENGTH] = '\0';
	return 0;
}
