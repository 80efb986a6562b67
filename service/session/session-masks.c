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

int session_enter_masks(Session *session, const Entry **ret_misplaced)
{
	_cleanup_close_ int leader_fd = program_pidfd_below(session->waiting, session->holder.pid);
	int r = leader_fd < 0 ? -ESRCH : mask_watch_enter(session->masks, session->waiting), alive;

	/* If it lives now, the pid was its own when the watch was told; if not, nothing needs a watch. */
	alive = leader_fd < 0 ? -ESRCH : program_signal(leader_fd, 0);
	*ret_misplaced = NULL;
	if (alive < 0 || r == -ESRCH) {
		mask_watch_stop(session->masks);
		return 0;
	}
	if (r == 0)
		*ret_misplaced = mask_watch_first(session->masks);
	return r;
}
