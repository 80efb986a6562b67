/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One session, from the request to the last word: a state machine on one loop, and one destructor that ends
 * everything which it started.
 */

#include <sys/resource.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/plan/request.h"
#include "service/session/terminal-keys.h"

typedef struct Session Session;

/*
 * Open the link (listen_fd) and the lifeline; both are taken over on success. Return: 0 or a negative errno.
 * The loop ends (sd_event_exit()) when the last word is said.
 */
int session_new(sd_event *event, int listen_fd, int lifeline_fd, Session **ret);
Session *session_free(Session *session);
DEFINE_CLEANUP(Session, session_free)

typedef struct SessionInput {
	SessionRequest request;    /* taken over */
	int fds[KEYS_MAX];         /* the caller's descriptors, taken over; FD_NONE where nothing is open */
	int guard_fd;              /* taken over; what this user's sessions lock for life */
	int state_fd;              /* taken over; what they lock to write state */
	int memory_fd;             /* taken over; memory.events of its control group, or FD_NONE */
	struct rlimit descriptors; /* RLIMIT_NOFILE that the agent is to have */
} SessionInput;

/* From here on the loop drives it. What fails is said over the link. */
void session_begin(Session *session, SessionInput *input);
/* Nothing was begun: say why, and end. error: a CS_ERROR_ name. */
void session_refuse(Session *session, const char *error, const char *problem);
