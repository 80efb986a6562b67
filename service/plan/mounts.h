/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * THE PLAN: every mount and variable of one session, as a pure function of profile, configuration, request
 * and an injected view of the file system. bwrap's arguments (bwrap-args), the exposure table (exposure) and
 * the battery's expectations are all derived from this one list; nothing else adds a mount or a variable.
 *
 * bwrap applies operations in order, so ORDER IS POLICY, written at the top of mounts.c: a mask follows the
 * bind that it covers, an allow-write bind follows the masks that it reaches through, the entry-point guard
 * is last.
 */

#include "dbus/base.h"
#include "service/plan/config.h"
#include "service/plan/profile.h"
#include "service/plan/request.h"
#include "service/plan/view.h"

#define PLAN_MOUNTS_MAX 150u
#define PLAN_MOUNTS_ORDINARY 80u /* up to 25 of them for the names of an agent's state */

typedef enum EntryKind {
	ENTRY_BIND,       /* source fd at destination, with what is mounted below it */
	ENTRY_TMPFS,      /* an empty private directory */
	ENTRY_DEV,        /* bwrap's fresh /dev */
	ENTRY_PROC,       /* a private /proc */
	ENTRY_LINK,       /* a symbolic link, text in data */
	ENTRY_FILE,       /* a read-only file with the bytes of data */
	ENTRY_DIRECTORY,  /* an empty directory in a tmpfs of ours */
	ENTRY_DESCRIPTOR, /* no mount: a descriptor of the caller, a row of the exposure */
	ENTRY_KIND_MAX,
} EntryKind;

typedef enum EntryMode {
	ENTRY_RO,
	ENTRY_RW,
	ENTRY_MASKED,
	ENTRY_PRIVATE,
	ENTRY_MODE_MAX,
} EntryMode;

typedef struct Entry {
	EntryKind kind;
	EntryMode mode;
	char *source;         /* canonical path outside; NULL where there is none */
	int source_fd;        /* owned; FD_NONE in tests and where there is none */
	bool device;          /* ENTRY_BIND of a device node: by path, with device access */
	bool covers_listener; /* masks a socket or FIFO of another program, which may go at any moment */
	bool pin;             /* a directory on itself that has to stay where it is: it is watched */
	bool prepared;        /* the session has made it already: bwrap is not told */
	bool placeholder;     /* masks a name where nothing else may stand: the session makes a file there */
	char *destination;    /* canonical path inside */
	void *data;           /* ENTRY_FILE: data_size bytes; ENTRY_LINK: text */
	size_t data_size;
	mode_t permissions; /* of a tmpfs, directory (0 = 0755) or file (0 = 0444) that we make */
	const char *
		origin; /* the rule: "root", "profile claude", ... or owned_origin for a configuration line */
	char *owned_origin;
	const char *reason; /* why, in words */
} Entry;

typedef struct PlanVariable {
	char *name, *value, *origin;
} PlanVariable;

typedef struct Plan {
	Entry *entries;
	size_t n_entries;
	PlanVariable *variables;
	size_t n_variables;
	char **guarded; /* canonical directories of the entry-point guard (entry-guard.h), or NULL */
	char **warnings;
	char *program; /* the agent's path inside */
	char **argv;
	char *cwd; /* the working directory inside */
	char *workspace;
	bool private_proc;
	bool jailed;
} Plan;

/* One of the caller's descriptors that is a file. */
typedef struct PlanDescriptor {
	unsigned number;
	const char *path; /* where it is outside; NULL where that cannot be told */
	bool writable;    /* by this descriptor, or by opening it again */
} PlanDescriptor;

/* What the session found out by doing (it is the impure part) and the plan needs. */
typedef struct PlanFacts {
	const PlanNode *workspace;     /* as it was examined; NULL: not yet, and the plan looks */
	bool no_workspace;             /* an empty one: the arguments need no other */
	bool private_proc;             /* the holder could mount one */
	const char *git_config;        /* the session's rendered git configuration */
	const char *git_ignore;        /* what the person's git ignores everywhere; NULL: nothing */
	const char *git_attributes;    /* its attributes likewise */
	const char *resolver;          /* the session's resolv.conf; NULL: none to be placed */
	const char *temp_root;         /* CLAUDE_CODE_TMPDIR's directory, or NULL */
	const char *project_state;     /* where this workspace's own part of the agent's state is, canonical;
					  NULL: nowhere */
	const PlanNode *git_directory; /* of a linked worktree or submodule, as it was examined, or NULL */
	const PlanNode *git_common_directory;
	/* of the system, that only root may read: canonical, hidden from root's agents; NULL: none */
	const char *const *system_private;
	const char *const *sockets; /* listening sockets and FIFOs that this uid could open, and
				       directories full of them, to be covered;
				       NULL-terminated */
	bool terminal;              /* the session has a PTY: it is bound at /dev/console by its path */
	const char *terminal_path;  /* "/dev/pts/N" outside */
	const PlanDescriptor *descriptors;
	size_t n_descriptors;
} PlanFacts;

/*
 * Make the plan. Return: 0; a negative errno with *ret_error one of CS_ERROR_ (static) and *ret_problem the
 * sentence (cause and fix): UnsafeWorkspace, UnsafeEntryPoint, AgentMissing, PlanRefused.
 */
int plan_make(const SessionRequest *request, const Profile *profile, const PlanFacts *facts,
	      const PlanView *view, Plan *ret, const char **ret_error, char **ret_problem);
void plan_done(Plan *plan);

/* The directories below the home that every profile brings back; NULL-terminated. */
const char *const *plan_shared_directories(void);

/* What is covered below them, as paths below the home; NULL-terminated. */
const char *const *plan_share_masks(void);

const char *entry_kind_to_string(EntryKind kind);
const char *entry_mode_to_string(EntryMode mode);
