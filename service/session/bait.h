/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Listeners of the session's own, outside the jail, for the time of one run of the checks: on the host's
 * loopback addresses, on a name of its abstract sockets, and on a path that every jail hides. Each answers
 * whoever comes with a random token: who has it inside has reached the host.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/plan/expectations.h"

/* Answers of one run; a run asks a few hundred times. */
#define BAIT_ANSWERS_MAX 4096u

typedef struct Bait Bait;

/*
 * id: of the session; by the name that is made of it the service finds the path when the session was killed.
 * One that cannot be made (no IPv6, a name that is taken) is left out. Return: 0 or a negative errno.
 */
int bait_new(sd_event *event, const char *id, Bait **ret);

/* Was it asked so often that it answers no more? Then what was not answered says nothing. */
bool bait_is_spent(const Bait *bait);

#define BAIT_SPENT                                                                                        \
	"another program of the machine asked the listeners that the checks aim at without end, so that " \
	"nothing can be told by them"
/* Closes all, and removes the path. */
Bait *bait_free(Bait *bait);
DEFINE_CLEANUP(Bait, bait_free)

/* Borrowed; NULL has none. */
const ExpectedBait *bait_list(const Bait *bait, size_t *ret_n);
const char *bait_token(const Bait *bait);
