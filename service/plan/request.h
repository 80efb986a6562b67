/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the service hands to `session`: who asked for what, and the configuration and decisions that hold for
 * it. A sealed memfd, written by root, read once. The session reads no configuration of its own.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "service/link/inherited.h"
#include "service/link/slots.h"
#include "service/plan/config.h"

/* What the session is made for. Whatever it is, the plan is the agent's. */
typedef enum SessionPurpose {
	PURPOSE_AGENT,
	PURPOSE_VERIFY, /* the checks run in the agent's place */
	PURPOSE_DOCTOR, /* each step of the start is reported, and little is measured inside */
	PURPOSE_MAX,
} SessionPurpose;

typedef struct SessionRequest {
	SessionPurpose purpose;
	bool probes; /* of PURPOSE_VERIFY: try the ways out as well */
	char *id;    /* CS_ID_LENGTH characters */
	char *agent; /* claude, codex, pi, shell */
	uid_t uid;
	gid_t gid;
	char *user, *home, *login_shell; /* from passwd, never from the environment */
	char **argv;                     /* the caller's arguments, without the program's name */
	char **environment;              /* the caller's whole environment; only the plan reads it */
	char *cwd;                       /* bytes, absolute; not opened by the service */
	uint32_t descriptors;            /* bit n: slot n is not empty */
	uint32_t terminals;              /* bit n: that descriptor is a terminal */
	uint8_t further[SLOTS_FURTHER_MAX];
	bool background; /* the terminal is another job's at the moment */
	mode_t file_mode_mask;
	uint64_t ignored_signals; /* bit n - 1: the caller ignores signal n, and so does the agent */
	Inherited inherited;      /* what a child of the caller has, and so the session */
	uint64_t started_usec;    /* CLOCK_REALTIME */
	char **warnings;          /* of the service, for the person */
	Config config;            /* with the environment twins that were allowed */
} SessionRequest;

void session_request_done(SessionRequest *request);
int session_request_encode(const SessionRequest *request, uint8_t **ret_data, size_t *ret_size);
/* Return: 0, -EBADMSG, -ENOMEM. */
int session_request_decode(const void *data, size_t size, SessionRequest *ret);
