/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One call of Launch, from the message to its answer. The message is kept, read once, and exactly what was
 * read is what runs.
 */

#include "service/daemon/manager.h"
#include "service/plan/request.h"

/* Requests between their message and their answer. */
#define LAUNCHES_MAX 512u
#define LAUNCHES_OF_USER_MAX 64u
/* What they may ask for together (CLIENT_LAUNCH_BYTES_MAX is what one may), until they are handed on. */
#define LAUNCHES_BYTES_MAX (64u << 20)
#define LAUNCHES_BYTES_OF_USER_MAX (16u << 20)

/* What differs between the members that start a session. */
typedef struct LaunchKind {
	const char *member; /* for the log */
	SessionPurpose purpose;
	/* Read the message into launch->request, and what is the member's own. Return: 0, or a negative errno
	 * with *reterr. */
	int (*read)(Launch *launch, sd_bus_message *call, sd_bus_error *reterr);
	/* The agent, or what stands in its place, was executed. May answer, and free the launch. */
	void (*started)(Launch *launch);
	/* What the session found in its jail; not checked yet. NULL: nobody wants to know. */
	void (*rows)(Launch *launch, const LinkRow *rows, uint32_t n);
	/* It cannot be, or not go on, for that error and sentence (launch_refuse()). Answers, and frees the
	 * launch. NULL: the error is the answer. */
	void (*refused)(Launch *launch, const char *error, const char *sentence);
	/* The session has ended without a word of why it could not start. Answers, and frees the launch. */
	void (*ended)(Launch *launch);
} LaunchKind;

extern const LaunchKind launch_of_agent;

/*
 * A session that is made for one call (a purpose other than PURPOSE_AGENT) is hidden (registry.h), and holds
 * its launch until it has ended: with the caller goes its lifeline, and with that the session.
 * Return: 1 when the answer comes later, or a negative errno with *reterr: nothing was started then.
 */
int launch_begin(Manager *manager, Client *client, sd_bus_message *call, const char *action,
		 const LaunchKind *kind, sd_bus_error *reterr);

/* What happens to the session of a launch, if it has one. */
void launch_session_started(Manager *manager, Session *session);
void launch_session_failed(Manager *manager, Session *session, const char *error, const char *text);
void launch_session_rows(Manager *manager, Session *session, const LinkRow *rows, uint32_t n);
void launch_session_ended(Manager *manager, Session *session);

/* The caller has left: its question is taken back, its session hung up. */
void launch_client_gone(Manager *manager, Client *client);
/* Refuse whatever is open, because the service ends. */
void launch_end_all(Manager *manager);
