/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A workspace's own part of an agent's state, which the jail has in the place of the host's:
 *
 *   ~/.local/state/claude-sandbox/projects/KEY/          workspace-key.h
 *       workspace                                        whose it is, for people
 *       .claude/                                         what agents see as ~/.claude
 *       .claude.records/                                 of its account files (state-files.h)
 *
 * No agent sees what lies above the last. In it, whatever an agent wrote earlier, or another session of the
 * same workspace writes now, is hostile: it is gone through by descriptors alone (project-names.h), and what
 * is mounted in it is looked at again once the jail is made (mask-watch.h).
 *
 * A lock on the directory KEY counts the sessions. The only one removes what is of a session, and moves to
 * the host what its agents made of the kinds that the host has too: before its agent starts what a killed
 * session left, and after its end.
 */

#include "service/plan/profile.h"
#include "service/plan/view.h"

typedef struct ProjectStateOptions { /* all borrowed */
	PlanView view;
	const Profile *profile;
	const char *home;      /* of passwd */
	const char *workspace; /* canonical */
	const char *cwd;       /* of the agent, canonical */
	uid_t uid;
	bool all_transcripts; /* those of all workspaces are shown */
} ProjectStateOptions;

typedef struct ProjectState {
	ProjectStateOptions options;
	int key_fd, state_fd;
	char *path;        /* canonical; NULL: there is no such directory */
	char *records;     /* beside it */
	char **places;     /* below it: what something was mounted on (project-places.h) */
	char *transcripts; /* profile_find_transcripts(), or NULL */
	char ***warnings;  /* borrowed; NULL once its agent starts */
} ProjectState;

#define PROJECT_STATE_INIT ((ProjectState){ .key_fd = FD_NONE, .state_fd = FD_NONE })

/*
 * Find or make it, and in it what the plan mounts something on. Where it cannot be had the session goes on
 * without, with a line in *warnings. What options borrows must last until project_state_release(). Return: 0
 * or -ENOMEM.
 */
int project_state_open(const ProjectStateOptions *options, ProjectState *ret, char ***warnings);
/* Nothing of the jail runs any more. */
void project_state_release(ProjectState *state);

/* project-publish.c: move to the host what is its too. The caller is alone. */
void project_state_publish(const ProjectState *state);
/* Copy from the host those transcripts of this workspace that cannot be mounted. */
void project_state_fetch(const ProjectState *state, bool alone);
/*
 * The host's directory of that path below the home. make: with what is missing on the way. Return: a descriptor
 * or a negative errno.
 */
int project_host_open(const ProjectState *state, const char *below, bool make);
