/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A plan under construction, shared by the files that each add their part (mounts-*.c) and by nobody else.
 * The order of the parts stands at the top of mounts.c.
 */

#include "service/plan/mount-list.h"
#include "service/plan/workspace-rules.h"

/* The agent: where it was found, and what it needs beside its program. */
typedef struct PlanAgent {
	PlanNode program;  /* until it is bound */
	char *path;        /* where the program lies, canonical */
	char *package;     /* the directory that it belongs to, canonical; NULL when it needs none */
	char *interpreter; /* what starts it, canonical, where "/" does not show it; or NULL */
	char *starter;     /* the text of a script that starts it with that interpreter; or NULL */
	char **links;      /* those of the person that led there */
} PlanAgent;

typedef struct Stores Stores; /* mounts-stores.c */

typedef struct Allowed {
	char *path;         /* canonical */
	const char *origin; /* of the configuration */
} Allowed;

typedef struct PlanBuild {
	const SessionRequest *request;
	const Profile *profile;
	const PlanFacts *facts;
	const PlanView *view;
	Plan *plan;
	char *home;   /* the home of passwd, canonical */
	char **homes; /* every home to be hidden, canonical, the shortest first, none twice */
	PlanAgent agent;
	PlanNode workspace; /* until it is bound */
	Stores *stores;     /* those of the person that lie elsewhere than their names say */
	Allowed *allowed;   /* what allow-write gives */
	size_t n_allowed;
	const char *error; /* one of CS_ERROR_, once something was refused */
	char *problem;
} PlanBuild;

/* What build_expose() accepts. */
typedef enum ExposeTypes {
	EXPOSE_DIRECTORY = 1 << 0,
	EXPOSE_FILE = 1 << 1,
	EXPOSE_SOCKET = 1 << 2, /* and FIFOs */
} ExposeTypes;

/*
 * Refuse the launch: error is one of CS_ERROR_, the rest its sentence. Return: -EPERM or -ENOMEM, never 0, so
 * that a refusal is one statement.
 */
int build_refuse(PlanBuild *build, const char *error, const char *format, ...) _printf_(3, 4);

/*
 * Bind path (as a person would spell it) at its canonical place, and recreate the links on the way there that
 * a private directory of ours hides. What is odd (a link that may not be followed, another type, a place
 * where nobody's state belongs) stays hidden, with a warning; what is missing is told by the return value.
 * Return: 1 bound, 0 hidden with a warning, -ENOENT missing, another negative errno.
 */
int build_expose(PlanBuild *build, const char *path, ExposeTypes types, EntryMode mode, const char *origin,
		 const char *reason);
/*
 * What build_expose() finds out before it binds. Return: 1 with *ret; 0 it stays hidden, with a warning; the
 * rest as there.
 */
int build_examine(PlanBuild *build, const char *path, ExposeTypes types, EntryMode mode, PlanNode *ret);
/* The links alone. Return: 0 or a negative errno. */
int build_links(PlanBuild *build, const char *path, const char *origin);
/*
 * Cover whatever is at the canonical path: an empty file over a file, an empty directory over a directory,
 * /dev/null over anything else. The place must exist. Return: 0 or a negative errno.
 */
int build_mask(PlanBuild *build, const char *path, mode_t type, const char *origin, const char *reason);

/*
 * Hide the other places at which the machine has what is at path (second mounts), as path itself is hidden.
 * Return: 0 or a negative errno.
 */
int build_hide_aliases(PlanBuild *build, const char *path, const char *reason);

/* Return: the bind by which agents may write at the canonical path, by that name, or NULL. */
const Entry *build_written_by(const PlanBuild *build, const char *path);
/* The read-write bind that shows what lies at the canonical path in another place. Return: NULL for none. */
const Entry *build_shown_elsewhere(const PlanBuild *build, const char *path);
/*
 * Keep the directory at the canonical path from being renamed or removed by agents: bind it on itself, unless
 * they cannot write around it or it is a mount point already. The bind stands right after the one that shows
 * the directory, so that everything mounted below stays in sight. Adding entries moves them. Return: 0, with
 * *ret the new entry or as it was; -ESTALE when there is no such directory; another negative errno.
 */
int build_pin(PlanBuild *build, const char *path, const char *origin, const char *reason, Entry **ret);

/* mounts-system.c: the numbers are those of the order in mounts.c. */
int build_root(PlanBuild *build);           /* 1, 2, 3, 4 */
int build_run(PlanBuild *build);            /* 5, but for the marker and the sockets */
int build_system_private(PlanBuild *build); /* 5 */
int build_marker(PlanBuild *build);         /* 5: once the agent's path is known */
int build_secrets(PlanBuild *build);        /* 15: the system's */
int build_resolver(PlanBuild *build);       /* 16 */
int build_git_config(PlanBuild *build);     /* 17 */
/* mounts-devices.c */
int build_devices(PlanBuild *build); /* 2, in the fresh /dev */
/* mounts-names.c */
int build_names(PlanBuild *build); /* 5: after build_run() */
/* mounts-sockets.c */
int build_sockets(PlanBuild *build);       /* 5: those that "/" shows */
int build_bound_sockets(PlanBuild *build); /* 14: those that a later bind shows again */
/* mounts-stores.c */
Stores *stores_free(Stores *stores);
int build_find_stores(
	PlanBuild *build); /* once homes and workspace are known; refuses a workspace that shows one */
int build_hide_stores(PlanBuild *build); /* 6 */
/*
 * Would showing the canonical path show a store? named: the path by which it is asked for, whose own stores
 * do not count then; NULL: every store counts, and so does one that path lies in.
 */
bool build_shows_store(const PlanBuild *build, const char *path, const char *named);
/* mounts-links.c */
int build_check_links(
	PlanBuild *build); /* at the end: a warning for links of the profile that lead nowhere inside */
/* mounts-state.c */
int build_state(PlanBuild *build); /* 7 */
/* mounts-home.c */
int build_find_homes(PlanBuild *build);
int build_homes(PlanBuild *build);  /* 6 */
int build_shared(PlanBuild *build); /* 8 */
int build_share(PlanBuild *build);  /* 9, 10 */
/* mounts-tools.c */
int build_tools(PlanBuild *build);        /* 10 */
int build_certificates(PlanBuild *build); /* 10 */
/* Will ~/.local/bin be the person's own, in which nothing of ours can stand? */
bool build_shows_programs(const PlanBuild *build);
int build_dotfiles(PlanBuild *build); /* 15: the person's */
/* agent-lookup.c */
int build_find_agent(PlanBuild *build); /* the plan's program too */
/*
 * Follow a person's own links, which the view does not: no session can write in ~/.local/bin, and each link,
 * as what comes out, must be in a place that none can write either (mounts-agent.c). Return: 0, or the view's
 * error.
 */
int plan_agent_follow(PlanBuild *build, const char *path, PlanNode *ret);
/* agent-needs.c */
int build_find_needs(PlanBuild *build); /* the last part of build_find_agent() */
bool plan_agent_is_program(const PlanNode *node);
/* The first bytes of a program, to be freed. None of one that may be executed and not read, which at least is
 * not ours. Return: how many, or -ENOMEM. */
ssize_t plan_agent_read_head(PlanBuild *build, const PlanNode *node, char **ret);
void plan_agent_done(PlanAgent *agent);
/* mounts-agent.c */
int build_agent(PlanBuild *build);       /* 11 */
int build_check_agent(PlanBuild *build); /* at the end: nothing writable covers it */
/* mounts-named.c */
int build_named(PlanBuild *build); /* 11: what its settings name */
/* mounts-workspace.c */
int build_check_workspace(PlanBuild *build); /* find and check it; the plan's workspace and cwd */
int build_workspace(PlanBuild *build);       /* 12 */
int build_temp_root(PlanBuild *build);       /* 13 */
/* mounts-descriptors.c */
int build_descriptors(PlanBuild *build); /* at the end: no mounts */
/* mounts-allow.c */
void build_allowed_done(PlanBuild *build);
/* Does allow-write name the canonical path, or a directory above it? */
bool build_is_allowed(const PlanBuild *build, const char *path);
int build_allow_write(PlanBuild *build);       /* 14 */
int build_check_allow_write(PlanBuild *build); /* at the end: a warning for what stays hidden */
int build_allow_read(PlanBuild *build);        /* 14, before allow-write */
int build_hide(PlanBuild *build);              /* 15 */
/* A path of the configuration, "~" being the person's home. Return: 0 and *ret, -ENOMEM. */
int build_config_path(const PlanBuild *build, const char *text, char **ret);
/* entry-guard.c */
int build_entry_guard(PlanBuild *build); /* 18 */
