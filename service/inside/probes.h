/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The probes: attempts to get out of the jail, each for real and each in a process of its own. docs/probes.md
 * says of every one what it stands for; a test holds that table against these.
 *
 * A probe leaves nothing behind, also where it gets out: it tries what would be refused before anything
 * changes, takes a change back at once, or makes it where it ends with its process. What it needs with a name
 * lies in the private /tmp.
 */

#include "service/inside/battery.h"

typedef enum ProbeOutcome {
	PROBE_INCONCLUSIVE, /* nothing could be tried, or what was seen says nothing */
	PROBE_BLOCKED,
	PROBE_ESCAPED,
	PROBE_OUTCOME_MAX,
} ProbeOutcome;

typedef struct Probing Probing; /* what a probe that runs has found (probing.h) */

/*
 * An attempt that is one system call: a row. It changes nothing, or what ends with its process, as does what it
 * opens.
 */
typedef struct ProbeCall {
	const char *name; /* NULL ends a table */
	long number;
	long arguments[6];
	const int *refusals; /* the errors that say no, ended by 0; NULL: every error does */
	/* A file: 0 or less in it lets everybody on the machine do this. Then success shows nothing. */
	const char *setting;
} ProbeCall;

#define PROBE_CALL(name, number, refusals, ...)               \
	{                                                     \
		name, number, { __VA_ARGS__ }, refusals, NULL \
	}
#define PROBE_CALL_UNLESS(setting, name, number, refusals, ...)  \
	{                                                        \
		name, number, { __VA_ARGS__ }, refusals, setting \
	}
/* An argument that is an address. */
#define PROBE_AT(address) ((long)(uintptr_t)(address))

/* A probe has rows of attempts, what needs more than a row, or both: the rows come first. */
typedef struct Probe {
	const char *id;     /* "p01": never another meaning, and never used again */
	const char *title;  /* what stands when it is blocked */
	const char *stands; /* what an agent would have if it succeeded: for docs/probes.md */
	void (*attempt)(Probing *p);
	bool waits; /* it mostly waits for answers: it begins before the others and ends beside them */
	const ProbeCall *calls;
	/* Paths, ended by NULL. Files do not open to be written; sockets take no connection (probe-socket.h). */
	const char *const *files, *const *sockets;
} Probe;

/* In the order in which they are shown. index from 0. Return: NULL at the end. */
const Probe *probe_at(size_t index);
const Probe *probe_find(const char *id);

/*
 * Run all of them, and tell of each: outcome, or a negative errno when it did not come back in its time (-ETIME) or died
 * or was stopped (-ECHILD); text, one line that begins with a word for the outcome.
 */
typedef void (*ProbeFunction)(const Probe *probe, int outcome, const char *text, void *userdata);
void probes_each(const Expectations *expectations, ProbeFunction function, void *userdata);

/* The same, a row for each: "pass" blocked, "fail" escaped, died or stopped, "note" inconclusive or out of time. */
void probes_run(Battery *b);
