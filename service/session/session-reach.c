/* SPDX-License-Identifier: MIT */
#include "service/session/session-state.h"

#include "service/link/pack.h"

static void on_broken(void *userdata, const char *problem)
{
	session_end_for_the_network(userdata, problem);
}

static bool was_said(const Session *session, const char *warning)
{
	for (size_t i = 0; session->warnings && session->warnings[i]; i++)
		if (streq(session->warnings[i], warning))
			return true;
	return false;
}

/* The person at the terminal has the agent on it. */
void session_warn_later(Session *session, char *const *warnings)
{
	for (size_t i = 0; warnings && warnings[i]; i++)
		if (!was_said(session, warnings[i]) &&
		    strings_count(session->warnings) < SESSION_WARNINGS_MAX)
			(void)strings_append(&session->warnings, warnings[i]);
	session_tell(session);
}

static void on_warned(void *userdata, char *const *warnings)
{
	session_warn_later(userdata, warnings);
}

int session_start_reach(Session *session)
{
	static const ReachCalls calls = { .broken = on_broken, .warned = on_warned };

	/* A start that is tried again finds the one of before, which has seen what was said since. */
	if (session->reach)
		return 0;
	return reach_new(session->event, &session->network, &session->request.config, &calls, session,
			 &session->reach);
}

int session_link_reach(void *userdata, const LinkMessage *m, char **ret_problem)
{
	const Session *session = userdata;

	if (!session->reach)
		return refuse(ret_problem, -EAGAIN, "the session is about to start; try again");
	return reach_handle(session->reach, m, ret_problem);
}
