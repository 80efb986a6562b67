/* SPDX-License-Identifier: MIT */
#include "service/session/session-state.h"

static int account_files(Session *session, StateFiles *ret)
{
	const ProjectState *project = &session->preparation.project;

	return state_files_init(ret, &(StateFilesOptions){ .profile = session->profile,
							   .view = view_functions(&session->preparation.view),
							   .home = session->request.home,
							   .agent = project->path,
							   .records = project->records,
							   .uid = session->request.uid,
							   .lock_fd = session->state_fd });
}

int session_start_state(Session *session)
{
	StateFiles files = { .lock_fd = FD_NONE };
	int r;

	/* Nothing runs that would read it or write it. */
	if (session->request.purpose == PURPOSE_DOCTOR) {
		session->state_known = true;
		return 0;
	}
	r = preparation_make_state(&session->preparation);
	if (r < 0 || session->state)
		return r;
	session->state_known = true;
	if (!session->preparation.project.path || session->state_fd < 0)
		return 0;
	r = account_files(session, &files);
	if (r == 0)
		r = state_watch_new(session->event, &files, session_state_settled, session, &session->state);
	state_files_done(&files);
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
	/* The end of the jail and init's report of it can come together, and each is the last word. */
	if (session->finished)
		return;
	session->finished = true;
	/* What the agent saved last is outside before anybody is told that it has ended. */
	session->state_last = session->state && session->released && state_watch_finish(session->state) > 0;
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
