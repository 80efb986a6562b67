/* SPDX-License-Identifier: MIT */
#include "service/session/session-state.h"

#include <signal.h>

#include "service/session/program.h"

static char *why_unguarded(const Entry *entry)
{
	char *why;

	return asprintf(&why,
			"the session was ended: %s was moved, removed or replaced, which kept agents from "
			"putting a program ahead of /usr/local/bin on PATH; look at what is there now, then "
			"start it anew",
			entry->destination) < 0
		       ? NULL
		       : why;
}

void session_unmasked(void *userdata, const Entry *entry)
{
	_cleanup_free_ char *why = NULL;

	if (entry->pin || entry->placeholder)
		why = why_unguarded(entry);
	else if (asprintf(&why,
			  "the session was ended: %s is hidden from the agent, and was replaced from "
			  "outside, "
			  "which uncovers it; start it anew",
			  entry->destination) < 0)
		why = NULL;
	session_end_because(userdata, why ?: "the session was ended: a hidden place was uncovered");
}

/* Return: a mount that is not in its place, or NULL. */
const Entry *session_enter_masks(Session *session)
{
	_cleanup_close_ int leader_fd = program_pidfd_below(session->waiting, session->holder.pid);
	int r = leader_fd < 0 ? -ESRCH : mask_watch_enter(session->masks, session->waiting);

	/* If it lives now, the pid was its own when the watch was told; if not, nothing needs a watch. */
	if (r == 0 || r == -EACCES)
		r = program_signal(leader_fd, 0) ?: r;
	if (r == 0)
		return mask_watch_first(session->masks);
	mask_watch_stop(session->masks);
	if (r != -ESRCH)
		(void)strings_appendf(&session->warnings,
				      "nothing is noticed that replaces, from outside, what is hidden from "
				      "the agent (%s)",
				      strerror(-r));
	return NULL;
}
