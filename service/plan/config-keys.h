/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * THE KEYS of the configuration, one row each: how a value is written, what holds without one, the variable
 * that asks for it at a launch, and how a running session that has more than the file gives now is told.
 * The parser, GetPolicy, the variables and the drift of running sessions read this table and no other.
 */

#include "service/plan/config.h"

#define SPLIT_WORDS " ,\n"
#define SPLIT_LINES "\n"

typedef enum ConfigType {
	TYPE_FLAG,
	TYPE_PORT,
	TYPE_PORT_OR_0,
	TYPE_CALLBACK,
	TYPE_TASKS,
	TYPE_SESSIONS,
	TYPE_SIZE,
	TYPE_PATH,
	TYPE_WRITABLE,
	TYPE_WORKSPACE,
	TYPE_DEVICE,
	TYPE_ADDRESS,
	TYPE_VARIABLE,
	TYPE_PROCFS,
	TYPE_HISTORY,
	TYPE_HOST,
	TYPE_GROUP,
	CONFIG_TYPE_MAX,
} ConfigType;

/* When does a session have more of this key than the configuration gives now? */
typedef enum ConfigDrift {
	DRIFT_NONE,
	DRIFT_LIST,   /* it has a value that the list has not */
	DRIFT_HIDDEN, /* it lacks a value that the list has */
	DRIFT_TEXT,   /* it has another value; none and "0" are nothing */
	DRIFT_FLAG,   /* the value that does not narrow */
	DRIFT_LIMIT,  /* a higher number; none and 0 are no limit */
} ConfigDrift;

typedef struct ConfigRow {
	const char *name;
	ConfigType type;
	bool list;
	bool split;             /* several values stand on one line of the file */
	const char *initial;    /* what holds where nothing is said; NULL: nothing */
	const char *variable;   /* of the caller's environment; NULL: none */
	unsigned rank;          /* of the variable: what opens most is asked about first */
	const char *separators; /* of a list in the variable */
	const char *narrows;    /* of a single value: the one that never gives more; NULL: each may */
	const char *asks;       /* what the variable asks for; the values follow. NULL: never more */
	ConfigDrift drift;
	const char *drift_name, *drift_cause; /* NULL: the key; "the configuration does not give" */
} ConfigRow;

const ConfigRow *config_row(ConfigKey key);
