/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The session's end of the lifeline. launch belongs to the caller and may be stopped, slow or hostile: what
 * it does not take waits in a bounded queue, in which the exit always has its place.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"

typedef struct Lifeline Lifeline;

typedef struct LifelineCalls {
	/* One of the signals that may reach an agent (lifeline_signal_is_allowed()). */
	void (*signal)(void *userdata, int number);
	/* The same, for the whole group that has the terminal. */
	void (*key)(void *userdata, int number);
	/* behind: in the background of the person's terminal. */
	void (*resume)(void *userdata, bool behind);
	/* The other end is closed, or sent what no launch sends: the person's terminal is gone. Called once.
	 */
	void (*gone)(void *userdata);
} LifelineCalls;

/* fd is taken over on success. Return: 0 or a negative errno. */
int lifeline_new(sd_event *event, int fd, const LifelineCalls *calls, void *userdata, Lifeline **ret);
Lifeline *lifeline_free(Lifeline *lifeline);
DEFINE_CLEANUP(Lifeline, lifeline_free)

/* Each is dropped silently when launch is gone. text is cut to fit a packet. */
void lifeline_warning(Lifeline *lifeline, const char *text);
void lifeline_started(Lifeline *lifeline);
void lifeline_stopped(Lifeline *lifeline, int signal);
void lifeline_continued(Lifeline *lifeline);
void lifeline_exited(Lifeline *lifeline, int status);
/* Nothing waits to be sent. */
bool lifeline_is_flushed(const Lifeline *lifeline);

/* HUP INT QUIT USR1 USR2 TERM CONT WINCH. */
bool lifeline_signal_is_allowed(int number);
