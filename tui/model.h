/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What is known of the service and its sessions. Pure: no bus, no curses, no clock. tui/feed fills it, views
 * read it. What a session says of itself is a stranger's word: bytes that nobody has looked at.
 */

#include "dbus/client-session.h"

/* Parts, as bits: what a view wants to be there, and what a change was about. */
typedef enum ModelPart {
	MODEL_SESSIONS = 1u << 0, /* with what was denied in each */
	MODEL_DETAILS = 1u << 1,  /* of the open session, as those below */
	MODEL_EXPOSURE = 1u << 2,
	MODEL_ENVIRONMENT = 1u << 3,
	MODEL_ROUTES = 1u << 4,
	MODEL_PORTS = 1u << 5,
	MODEL_DENIED = 1u << 6, /* of all sessions; always followed */
	MODEL_ALLOW_IP = 1u << 7,
	MODEL_POLICY = 1u << 8,
	MODEL_DOCTOR = 1u << 9,
	MODEL_VERIFY = 1u << 10,
	MODEL_SERVICE = 1u << 11, /* link, version, configuration error */
	MODEL_PARTS = 12,
} ModelPart;

typedef enum ModelState {
	MODEL_UNKNOWN, /* nobody asked yet */
	MODEL_ASKED,   /* for the first time */
	MODEL_HERE,
	MODEL_FAILED, /* problem says why; the table is what was known before */
} ModelState;

typedef struct ModelTable {
	ModelState state;
	bool stale; /* something changed since; the feed asks again when a view wants it */
	bool asked; /* a question is under way */
	ClientTable table;
	char *problem;
} ModelTable;

/* Columns of the tables. */
enum { EXPOSED_PATH, EXPOSED_KIND, EXPOSED_MODE, EXPOSED_ORIGIN, EXPOSED_REASON, EXPOSED_MAX };
enum { VARIABLE_NAME, VARIABLE_ORIGIN, VARIABLE_MAX };
enum { ROUTE_TO, ROUTE_SAYS, ROUTE_BY, ROUTE_WHY, ROUTE_IS, ROUTE_COLUMNS };
enum { PORT_NUMBER, PORT_DIRECTION, PORT_IS, PORT_ORIGIN, PORT_MAX };
enum {
	DENIED_TIME,
	DENIED_PROTOCOL,
	DENIED_ADDRESS,
	DENIED_PORT,
	DENIED_PROGRAM,
	DENIED_REASON,
	DENIED_COUNT,
	DENIED_MAX
};
enum { ALLOWED_ADDRESS, ALLOWED_COMMENT, ALLOWED_ORIGIN, ALLOWED_MAX };
enum { POLICY_NAME, POLICY_VALUE, POLICY_ORIGIN, POLICY_MAX };
enum { RUN_ID, RUN_STATUS, RUN_TITLE, RUN_DETAIL, RUN_FIX, RUN_MAX };
enum { POSTURE_LAYER, POSTURE_STRENGTH, POSTURE_DETAIL, POSTURE_MAX };

typedef struct ModelSession {
	ClientSession session;
	bool ended; /* it has gone, and is kept because it is open */
	ModelState details_state;
	char *details_problem;
	bool details_asked, details_stale;
	ClientDetails details; /* all zero unless details_state is MODEL_HERE */
	ModelTable exposure, environment, routes, ports, denied;
	uint64_t denied_count; /* attempts so far; known with the details */
} ModelSession;

/* Doctor or Verify. */
typedef struct ModelRun {
	enum { RUN_NEVER, RUN_GOING, RUN_ENDED, RUN_FAILED } state;
	char *subject; /* session id, or agent; "" for Doctor */
	bool probes;
	bool passed;
	char *problem;    /* RUN_FAILED: a sentence */
	ClientTable rows; /* RUN_MAX columns, in the order in which they came */
	uint64_t started_usec;
} ModelRun;

typedef enum ModelLink {
	LINK_CONNECTING,
	LINK_NO_BUS,     /* no bus answers */
	LINK_NO_SERVICE, /* the bus is there, the service is not */
	LINK_UP,
} ModelLink;

typedef struct Model {
	ModelLink link;
	char *problem;                /* why link is not up: a sentence */
	char *host;                   /* of -H, or NULL */
	uint32_t uid;                 /* who looks */
	char *version, *config_error; /* "" for none; NULL: not known */

	ModelState sessions_state;
	char *sessions_problem;
	bool all;                /* everybody's are shown, by leave of polkit */
	ModelSession **sessions; /* the oldest first */
	size_t n_sessions;
	char *open;    /* id of the session that the views of one session are about; NULL */
	char *compare; /* id of another one beside it; NULL */

	ModelTable allow_ip, policy;
	ModelRun doctor, verify;

	uint64_t generation[MODEL_PARTS]; /* one for each bit: counts its changes */
} Model;

#define MODEL_DENIED_MOST 1026u /* rows of one session: what the service tells apart, and its two sums */

#define MODEL_RUN_MOST 1024u /* rows of one run */

Model *model_new(void);
Model *model_free(Model *model);
DEFINE_CLEANUP(Model, model_free)

/* A change of these parts: whoever shows them draws again. */
void model_touch(Model *model, unsigned parts);
/* The sum of these parts' generations: another one after any change. */
uint64_t model_generation(const Model *model, unsigned parts);

/* sentence is copied; NULL for LINK_UP. Tables stay, so that what was known is still seen. Return: 0,
 * -ENOMEM. */
int model_set_link(Model *model, ModelLink link, const char *sentence);

ModelSession *model_session(const Model *model, const char *id);
/* The open one. Return: NULL for none. */
ModelSession *model_open_session(const Model *model);
/* Open one (NULL: none). Return: 0, -ENOENT, -ENOMEM. */
int model_open(Model *model, const char *id);
/* Look at another one beside it; NULL: no more. Its exposure and variables are got too. Return likewise. */
int model_compare(Model *model, const char *id);
/* The sessions of a reply: new ones are added, missing ones go, tables of the others stay. *sessions is
 * emptied. Return: 0, -ENOMEM. */
int model_take_sessions(Model *model, ClientSessions *sessions);
/* GetAll of one, which may not be known yet (the signal came first). *details is emptied. */
int model_take_details(Model *model, const char *id, ClientDetails *details);
void model_remove_session(Model *model, const char *id);
int model_set_state(Model *model, const char *id, const char *state, int32_t exit_status);

/* Which table is meant; session NULL: of the manager. part is one bit. Return: NULL for none. */
ModelTable *model_table(Model *model, ModelSession *session, ModelPart part);
/* An answer. *table is emptied. Return: 0 */
int model_take_table(Model *model, ModelSession *session, ModelPart part, ClientTable *table);
int model_fail_table(Model *model, ModelSession *session, ModelPart part, const char *sentence);
/* Everything of these parts is to be asked again when it is wanted. session NULL: the manager's, and every
 * session's. */
void model_make_stale(Model *model, ModelSession *session, unsigned parts);

/* One row of the signal Denied: it replaces the row of the same destination and program. *row is emptied. */
int model_take_denied(Model *model, const char *id, ClientTable *row);

/* A run begins; rows come; it ends. */
int model_begin_run(Model *model, ModelPart part, const char *subject, bool probes, uint64_t now_usec);
/* A row of RUN_MAX columns. One with a known id replaces it. *row is emptied. */
int model_take_run_row(Model *model, ModelPart part, ClientTable *row);
int model_end_run(Model *model, ModelPart part, bool passed,
		  const char *problem /* NULL: it ran to its end */);
