/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One question to polkit, and what came back: nothing is decided here (auth.c). The subject is a name on the
 * bus, so that polkit and we mean the same connection, and no number that is used again can stand for it.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"

/* How long polkit itself may take, and a person who types a password. */
#define POLKIT_SILENT_USEC (25 * USEC_PER_SEC)
#define POLKIT_DIALOG_USEC (5 * 60 * USEC_PER_SEC)

typedef enum PolkitAnswer {
	POLKIT_YES,
	POLKIT_NO,
	POLKIT_PASSWORD,  /* yes, for somebody who types one */
	POLKIT_DISMISSED, /* whoever was asked for one did not want to */
	POLKIT_ABSENT,    /* it neither runs nor can be started */
	POLKIT_SILENT,    /* it did not answer in time, or ended before it did */
	POLKIT_BROKEN,    /* it answered with another error, or nonsense */
} PolkitAnswer;

typedef struct PolkitQuestion {
	const char *subject; /* a unique name */
	const char *action;
	const char *message;        /* of the dialog, "$(KEY)" stands for a detail; NULL: the action's own */
	const char *const *details; /* key, value, ..., NULL: for rules, and for message; or NULL */
	bool interactive;           /* a dialog may be shown */
	const char *cancellation;   /* for polkit_cancel(), unique among ours */
} PolkitQuestion;

/* Send it; handler gets the reply, once. Return: 0, or a negative errno. */
int polkit_ask(sd_bus *bus, const PolkitQuestion *question, sd_bus_message_handler_t handler, void *userdata,
	       sd_bus_slot **ret);
/* What the reply says. *ret_error: for POLKIT_BROKEN, polkit's own words or NULL; borrowed from reply. */
PolkitAnswer polkit_answer(sd_bus_message *reply, const char **ret_error);
/*
 * Ask which actions it knows; handler gets the reply, once, within usec. Return: 0, or a negative errno.
 */
int polkit_list(sd_bus *bus, uint64_t usec, sd_bus_message_handler_t handler, void *userdata,
		sd_bus_slot **ret);
/* Is action among those of the reply, which is rewound? Return: 1, 0, or a negative errno. */
int polkit_knows(sd_bus_message *reply, const char *action);
/* Close the dialog of a question that nobody waits for any more. */
void polkit_cancel(sd_bus *bus, const char *cancellation);

/* Pure: does this error of CheckAuthorization say that there is no polkit, neither running nor to be started?
 */
bool polkit_error_is_absence(const char *name);
