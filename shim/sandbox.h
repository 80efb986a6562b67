/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The command `claude-sandbox`: what is on its command line, what its verbs are (verb-table.c), what they
 * exit with. What they do is in verbs.c and verb-*.c. Everything that it touches comes by the context, so
 * that tests stand where the bus and the terminal are.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/print.h"
#include "dbus/text-agent.h"

typedef struct SandboxContext {
	FILE *out, *err;
	PrintStyle style;  /* of out */
	bool interactive;  /* a person is at the terminal and can answer a dialog */
	uint64_t now_usec; /* CLOCK_REALTIME */
	char *const *environment;
	const char *directory; /* the current one, absolute; NULL: it cannot be told */
	/* sandbox_read_link() */
	int (*read_link)(const char *path, char **ret);
	const char *host; /* -H, valid; NULL: this machine */
	/* client_open() or, where there is a host, client_open_remote(). Verbs call verb_open(). */
	int (*open_bus)(const char *host, sd_bus **ret, sd_bus_error *reterr);
	/* text_agent_start() */
	int (*agent)(TextAgent *agent);
	/* handoff_exec(): returns only with a negative errno */
	int (*handoff)(const char *agent, char *const *arguments, char *const *environment);
} SandboxContext;

typedef struct SandboxVerb SandboxVerb;

/* A command line as understood. Strings are borrowed from it. */
typedef struct SandboxCall {
	const SandboxVerb *verb; /* NULL with help or version: of the whole command */
	bool json, utc, help, version;
	const char *host;         /* -H, or NULL */
	const char *option;       /* the one of the verb's own options that was given, or NULL */
	const char *argument;     /* the verb's argument, or NULL */
	const char *second;       /* its second one, or NULL */
	const char *third;        /* all the words behind that, or NULL */
	char *joined;             /* where they were several; to be freed */
	const char *value;        /* of the verb's option that takes one, or NULL */
	const char *second_value; /* of its other one */
	char *const *arguments;   /* shell: everything behind it */
} SandboxCall;

struct SandboxVerb {
	const char *name;
	const char *synopsis; /* what follows the name in its usage */
	const char *summary;  /* one line */
	const char *details;  /* whole lines */
	const char *argument; /* name of its argument where one must be there */
	bool takes_argument, takes_second, takes_text;
	const char *const
		*options; /* its own, behind its name, of which one may be given; NULL, or ends with NULL */
	const char *value_option, *second_value_option; /* its own, behind its name, with a value; or NULL */
	bool has_json;
	bool passes_on;   /* everything behind it belongs to another program */
	const char *here; /* why it cannot be about another machine; NULL: it can */
	/* Return: an exit status. */
	int (*run)(const SandboxCall *call, const SandboxContext *context);
};

/* The verb of that name, or NULL. sandbox_verb_at(): index from 0, NULL at the end. */
const SandboxVerb *sandbox_verb_find(const char *name);
const SandboxVerb *sandbox_verb_at(size_t index);

/* Say that there is no such verb, and which may be meant. Return: -EINVAL with *ret_problem, -ENOMEM. */
int sandbox_refuse_verb(const char *name, char **ret_problem);

/*
 * Options stand anywhere; "--" ends them; behind `shell` all but a first "--help" or "--" is the shell's.
 * Return: 0, or -EINVAL with *ret_problem, -ENOMEM.
 */
int sandbox_parse(int argc, char *const *argv, SandboxCall *ret, char **ret_problem);

/* Help, as it is written to out: of one verb, or of the command (verb NULL). */
void sandbox_help(FILE *out, const SandboxVerb *verb);

/* readlink(2). Return: 0 with *ret; -EINVAL for what is no link; another negative errno. */
int sandbox_read_link(const char *path, char **ret);

/* The whole command. Return: the exit status: 0, or one of CS_EXIT_. */
int sandbox_run(int argc, char *const *argv, const SandboxContext *context);
