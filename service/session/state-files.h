/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where the state of an agent lies that saves one file of the home, and whether anything has changed.
 *
 *   host    ~/.claude.json              the person's, for a Claude outside; a link of the home is followed
 *   agent   ~/.claude/.claude.json      the sessions', in a directory that every agent writes
 *   record  ~/.local/state/claude-sandbox/claude.json, .next, .seen
 *                                       what both last had in common, the next such, and the stamps of both
 */

#include "service/plan/view.h"
#include "service/session/state-file.h"

typedef struct StateFiles { /* all borrowed */
	PlanView view;
	const char *home;      /* of passwd */
	const char *directory; /* of the home, which agents write: ".claude" */
	const char *name;      /* ".claude.json" */
	uid_t uid;
	int lock_fd; /* what this user's sessions lock (flock(2)) while they write: SPAWN_FD_STATE */
} StateFiles;

typedef struct StatePlaces {
	int home_fd, agent_fd, host_fd, record_fd; /* directories; record_fd FD_NONE where it is not made */
	char *host_name, *host_path;               /* in host_fd; absolute, for messages */
	char *base_name, *next_name, *seen_name;   /* in record_fd */
} StatePlaces;

#define STATE_PLACES_INIT \
	((StatePlaces){ .home_fd = FD_NONE, .agent_fd = FD_NONE, .host_fd = FD_NONE, .record_fd = FD_NONE })

void state_places_done(StatePlaces *places);
/*
 * make: the record's directory, where it is missing. Return: 0; a negative errno with *ret_problem (may be
 * NULL), -ENOENT without one when there is no directory of the agent's and nothing to keep.
 */
int state_places_open(const StateFiles *files, bool make, StatePlaces *ret, char **ret_problem);

/* Is everything as it was when both files were last known to be the same? Cheap: names are looked up, nothing
 * is read but the record's stamps. */
bool state_files_unchanged(const StateFiles *files);
/* Both files, with these stamps, are the same. Return: 0 or a negative errno. */
int state_seen_write(const StatePlaces *places, const StateStamp *agent, const StateStamp *host);
