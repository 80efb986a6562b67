/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A view: a table of operations that make rows and words from the model. Pure, but for its own small state:
 * neither bus nor curses. What is to be done is handed back as an Effect, which tui/app carries out, so that
 * asking, passwords and errors look the same everywhere, and --dump prints what the screen shows.
 */

#include "tui/keys.h"
#include "tui/model.h"
#include "tui/table.h"

typedef struct View View;

typedef struct ViewContext {
	const Model *model;
	void *state; /* of the view: view->state_size bytes, zero at the start */
	bool utf8;
	uint64_t now_usec; /* CLOCK_REALTIME */
} ViewContext;

typedef enum EffectKind {
	EFFECT_NONE,
	EFFECT_REFRESH, /* the view's own state changed: make the rows again */
	EFFECT_TELL,    /* text: a line of the message area */
	EFFECT_SHOW,    /* text: several lines in a window, until a key; title above it */
	EFFECT_GO,      /* to the view `view`, with session opened where it is not NULL */
	EFFECT_COMPARE, /* look at session beside the open one; NULL: no more */
	EFFECT_OWN,     /* only one's own sessions again */
	EFFECT_QUIT,    /* end the program */
	EFFECT_PROMPT,  /* a line to be typed */
	EFFECT_CHOOSE,  /* one of several effects */
	EFFECT_CALL,    /* of the service */
	EFFECT_CHAIN,   /* calls one after another: it stops at the first that fails */
	EFFECT_RUN,     /* Verify of session (NULL: of a jail as the agent `view` gets it) or Doctor: part */
} EffectKind;

typedef enum EffectCall {
	CALL_STOP,     /* session */
	CALL_LIST_ALL, /* everybody's sessions */
	CALL_ALLOW,    /* session, address, seconds */
	CALL_REVOKE,   /* session, address */
	CALL_ADD,      /* address, comment */
	CALL_REMOVE,   /* address */
	CALL_MAX,
} EffectCall;

typedef struct Effect Effect;

/* All strings are owned; effect_done() frees them. */
struct Effect {
	EffectKind kind;
	char *title, *text;
	char *view;
	/*
	 * Before a call: what is about to be done, what it widens, and for whom, in whole sentences; it is
	 * done after `y`. NULL: without a question.
	 */
	char *question;
	char *done; /* what is said when the call went well */
	EffectCall call;
	ModelPart part;
	bool probes;
	char *session, *address, *comment;
	uint64_t seconds;
	/* PROMPT: title is its label, text what stands there first. */
	/* As it is typed: the call that would follow, to be asked about with `check`; the answer is shown
	 * below the line. NULL: nothing is checked. Return: false when there is nothing to check, with
	 * *ret_problem (to be freed) where it can already be said. */
	bool (*check)(const ViewContext *context, const char *typed, Effect *ret_call, char **ret_problem);
	int (*accept)(const ViewContext *context, const char *typed, Effect *ret);
	/* CHOOSE: each has title (what is said) and text (its key, one character) beside what it does. CHAIN:
	 * calls. */
	Effect *parts;
	size_t n_parts;
	/* After a call of a chain or a single one: the view learns how it went. error: NULL, or the sentence.
	 */
	void (*finished)(const ViewContext *context, const Effect *call, const char *error);
};

void effect_done(Effect *effect);

typedef struct ViewAction {
	Command command;
	/* key: of the selected row, NULL for none. Return: 0 or -ENOMEM. An effect NONE does nothing. */
	int (*run)(const ViewContext *context, const char *key, Effect *ret);
} ViewAction;

struct View {
	const char *name;  /* of --dump, and in the table of keys */
	const char *title; /* of its tab */
	const char *about; /* one sentence: what one sees here; under the tabs, and in Help */
	const Column *columns;
	size_t n_columns;
	size_t sort_column; /* SIZE_MAX: as the rows come */
	bool descending;
	unsigned wants;  /* bits of ModelPart: what the feed gets while the view is shown */
	bool of_session; /* it is about the open session */
	size_t state_size;
	void (*state_done)(void *state);
	/* Fill the rows. Return: 0, -ENOMEM. */
	int (*rows)(const ViewContext *context, Rows *rows);
	/* One line above the table; NULL or *ret NULL: the sentence `about`. Return: 0, -ENOMEM. */
	int (*headline)(const ViewContext *context, char **ret);
	/* Why there is no row: a sentence. Return: borrowed; NULL: "nothing". */
	const char *(*empty)(const ViewContext *context);
	/*
	 * Everything about one row, for the details pane and to be copied: lines, "Name: text" and sentences.
	 * A stranger's bytes in it are escaped already (format_line()), or their line breaks would make
	 * lines.
	 */
	int (*details)(const ViewContext *context, const char *key, char **ret);
	/* What is lost when the program ends now, as a question. Return: borrowed; NULL: nothing is. */
	const char *(*unsaved)(const ViewContext *context);
	const ViewAction *actions; /* ends with COMMAND_NONE */
};

/* index from 0, the order of the tabs. Return: NULL at the end. */
const View *view_at(size_t index);
const View *view_find(const char *name);

extern const View view_sessions, view_exposure, view_routes, view_denied, view_allow_ip, view_policy,
	view_verify, view_doctor, view_help;
