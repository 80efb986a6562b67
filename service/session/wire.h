/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The wire over the life of a session: pasta started, watched for LOWER_UP, started again when it ends, and
 * waited for while the host has no uplink. Nothing has to be locked again when it comes back: the denial
 * never went.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/net/denial.h"
#include "service/session/pasta.h"

typedef struct Wire Wire;

typedef struct WireCalls {
	/* jail0 has LOWER_UP. */
	void (*up)(void *userdata);
	/* There is no wire now: pasta ended (problem: why), or the host has no uplink (NULL). Heals by
	 * itself. */
	void (*down)(void *userdata, const char *problem);
	/* The first start failed although the host has an uplink. Nothing more happens. */
	void (*failed)(void *userdata, const char *problem);
	/*
	 * The jail's network must be read back: a device changed, or events were lost. foreign: what somebody
	 * else has changed, in words, or NULL.
	 */
	void (*changed)(void *userdata, const char *foreign);
	/*
	 * Before a wire is tried again. Return: 1 to try; 0 when the host has no uplink, -EXDEV when its
	 * network is one that this session must not have: both wait for a change of it; other negative errno:
	 * try later.
	 */
	int (*may_start)(void *userdata);
} WireCalls;

typedef struct WireOptions {
	PastaOptions pasta;
	const JailSockets *sockets; /* borrowed */
	const Denial *denial;       /* borrowed; it may change meanwhile */
	bool uplink;
} WireOptions;

/* Return: 0, or a negative errno with *ret_problem. No call happens before the loop runs. */
int wire_new(sd_event *event, const WireOptions *options, const WireCalls *calls, void *userdata, Wire **ret,
	     char **ret_problem);
/* Kill pasta and start it no more, without waiting for its death. */
void wire_end(Wire *wire);
/* Kill pasta, reap, close. Return: NULL. */
Wire *wire_free(Wire *wire);
DEFINE_CLEANUP(Wire, wire_free)
