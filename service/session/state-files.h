/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The account files of an agent: what all its sessions share with the person's own agent. An agent saves them by
 * renaming, which a mount of the file would refuse, so each exists twice and is kept the same:
 *
 *   host    ~/.claude/settings.json       the person's; a link there is followed, see state_places_open()
 *   agent   AGENT/settings.json           in the directory that sessions have in the place of ~/.claude
 *   record  RECORDS/settings.json         what both had in common last; .next, what they will have; .seen, the stamps
 *                                         of both. No agent sees it
 *
 * The file that the person's agent has in the home (~/.claude.json) is AGENT/.claude.json; in the jail's home a
 * link leads there.
 */

#include "service/plan/profile.h"
#include "service/plan/view.h"
#include "service/session/state-file.h"

typedef struct StateName {
	char *agent;  /* below the agent's directory: "settings.json", "agent/auth.json" */
	char *host;   /* below the home: ".claude/settings.json" */
	char *record; /* in the records' directory */
	bool json;    /* merged by key; the others are taken whole */
	bool locked;  /* agents make NAME.lock while they save it */
} StateName;

/* A directory or file that an agent makes while it does what no other may do at the same time. */
typedef struct StateLockName {
	char *agent, *host; /* as in StateName */
} StateLockName;

typedef struct StateFiles {
	PlanView view;         /* borrowed */
	char *home;            /* of passwd */
	char *state;           /* below it: the person's directory of the agent's state */
	char *agent, *records; /* absolute */
	char *link; /* a name in the jail's home that is a link into the agent's directory; or NULL */
	StateName *names;
	size_t n_names;
	StateLockName *locks; /* those that are to be seen on both sides (state-mirror.h) */
	size_t n_locks;
	uid_t uid;
	int lock_fd; /* borrowed; what this user's sessions lock (flock(2)) while they write: SPAWN_FD_STATE */
} StateFiles;

typedef struct StateFilesOptions {
	const Profile *profile;
	PlanView view;
	const char *home, *agent, *records;
	bool home_file_alone; /* of the account files, keep the one in the home */
	uid_t uid;
	int lock_fd;
} StateFilesOptions;

/* Return: 0 or -ENOMEM. */
int state_files_init(StateFiles *files, const StateFilesOptions *options);
void state_files_done(StateFiles *files);

typedef struct StatePlaces {
	int root_fd;            /* the agent's directory */
	int agent_fd, host_fd;  /* directories of both files; FD_NONE where they are missing */
	int lock_fd;            /* of the person's own name, before a link is followed: where locks lie */
	int record_fd;          /* FD_NONE where it is not made */
	const char *agent_name; /* in agent_fd */
	const char *lock_name;  /* in lock_fd */
	char *host_name;        /* in host_fd */
	char *host_path;        /* absolute, for messages */
	char *next_name, *seen_name; /* in record_fd, beside StateName.record */
} StatePlaces;

#define STATE_PLACES_INIT                    \
	((StatePlaces){ .root_fd = FD_NONE,  \
			.agent_fd = FD_NONE, \
			.host_fd = FD_NONE,  \
			.lock_fd = FD_NONE,  \
			.record_fd = FD_NONE })

void state_places_done(StatePlaces *places);
/*
 * Where one file lies. A link that the person has in its place is followed: no agent writes that directory. Further
 * links are followed as the plan follows them (view.h), and never into a credential store. make: the records'
 * directory, where it is missing. Return: 0; a negative errno with *ret_problem (may be NULL), -ENOENT without one
 * when there is no directory of the agent's and nothing to keep.
 */
int state_places_open(const StateFiles *files, const StateName *name, bool make, StatePlaces *ret,
		      char **ret_problem);
/* Make the directories of a side that are missing, as the agent would. Return: 0 or a negative errno. */
int state_places_make_agent(const StateName *name, StatePlaces *places);
int state_places_make_host(const StateFiles *files, const StateName *name, StatePlaces *places);

/* The directory of name below the agent's directory; nothing is followed. Return: a descriptor; -errno. */
int state_agent_directory(int root_fd, const char *name);
/* What follows the last slash. */
const char *state_base_name(const char *path);

/* Is everything as it was when both were last known to be the same? Cheap: names are looked up, nothing is read but
 * the stamps. */
bool state_file_unchanged(const StateFiles *files, const StateName *name);
bool state_files_unchanged(const StateFiles *files);
/* Of all their stamps: the same one as before when nothing was changed. */
uint64_t state_files_digest(const StateFiles *files);
/* Both, with these stamps, are the same. Return: 0 or a negative errno. */
int state_seen_write(const StatePlaces *places, const StateStamp *agent, const StateStamp *host);
