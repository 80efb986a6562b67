/* SPDX-License-Identifier: MIT */
#include "service/session/session-state.h"

int session_start_state(Session *session, char **ret_problem)
{
	int r;

	/* Nothing runs that would read it or write it. */
	if (session->request.purpose == PURPOSE_DOCTOR) {
		session->state_known = true;
		return 0;
	}
	r = preparation_make_state(&session->preparation, ret_problem);
	if (r < 0 || session->state)
		return r;
	session->state_known = true;
	if (!session->profile->home_file || session->state_fd < 0)
		return 0;
	r = state_watch_new(session->event,
			    &(StateFiles){ .view = view_functions(&session->preparation.view),
					   .home = session->request.home,
					   .directory = session->profile->state,
					   .name = session->profile->home_file,
					   .uid = session->request.uid,
					   .lock_fd = session->state_fd },
			    session_state_settled, session, &session->state);
	if (r == 0)
		session->state_known = state_watch_begin(session->state) == 0;
	return r;
}

static bool was_said(const Session *session, const char *warning)
{
	for (size_t i = 0; session->warnings && session->warnings[i]; i++)
		if (streq(session->warnings[i], warning))
			return true;
	return false;
}

void session_say_state(const Session *session)
{
	char *const *warnings = state_watch_warnings(session->state);

	/* One at the launch has been said, and need not be said again. */
	for (size_t i = 0; warnings && warnings[i]; i++)
		if (!was_said(session, warnings[i]))
			lifeline_warning(session->lifeline, warnings[i]);
}

void session_finished(Session *session)
{
	/* What the agent saved last is outside before anybody is told that it has ended. */
	session->state_last = session->state && session->leader > 0 && !session->state_last &&
			      state_watch_finish(session->state) > 0;
	if (!session->state_last)
		session_say(session);
}

void session_state_settled(void *userdata)
{
	Session *session = userdata;

	if (session->state_last)
		session_say(session);
	else
		session_state_known(session);
}
