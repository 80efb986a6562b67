/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Transcripts that an agent keeps by date, all projects together (TRANSCRIPTS_DATED):
 * sessions/2026/12/01/rollout-NAME.jsonl, with the current directory in the first line. Those of this workspace
 * are copied: at the launch from the host into the project's directory, the newest first; at the end back, new
 * and longer ones. Whatever an agent has written is hostile: names are checked as strictly as they are written
 * above, the first line must name this workspace, and of two the longer one wins. One that the host has no more
 * and no session has touched since was deleted there, and does not come back.
 */

#include "service/session/project-copy.h"
#include "service/session/project-state.h"

/* host_fd: the host's directory of transcripts. replace: no other session of the workspace runs. */
void project_dated_fetch(const ProjectState *state, int host_fd, bool replace, CopyBudget *budget);
void project_dated_publish(const ProjectState *state, CopyBudget *budget);
/* All that is there now is on the host too, or was. */
void project_dated_settle(const ProjectState *state);
/* Are there any to publish? */
bool project_dated_has(const ProjectState *state);
