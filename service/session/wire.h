/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The wire over the life of a session: pasta started, watched for LOWER_UP, started again when it ends. It
 * does not care whether the host has an uplink: what the host cannot reach then is unreachable inside too.
 * Nothing has to be locked again when it comes back: the denial never went.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/net/denial.h"
#include "service/session/pasta.h"

typedef struct Wire Wire;

typedef struct WireCalls {
	/* jail0 has LOWER_UP. */
	void (*up)(void *userdata);
	/* There is no wire now: pasta ended (problem: why), or it is held (NULL). Heals by itself. */
	void (*down)(void *userdata, const char *problem);
	/* The first start failed. Nothing more happens. */
	void (*failed)(void *userdata, const char *problem);
	/*
	 * The jail's network must be read back: a device changed, or events were lost. foreign: what somebody
	 * else has changed, in words, or NULL.
	 */
	void (*changed)(void *userdata, const char *foreign);
} WireCalls;

typedef struct WireOptions {
	PastaOptions pasta;
	const JailSockets *sockets; /* borrowed */
	const Denial *denial;       /* borrowed; it may change meanwhile */
} WireOptions;

/* Return: 0, or a negative errno with *ret_problem. No call happens before the loop runs. */
int wire_new(sd_event *event, const WireOptions *options, const WireCalls *calls, void *userdata, Wire **ret,
	     char **ret_problem);
/* Is what runs as pasta what was meant? Return: 0, also while there is no wire; else as pasta_read_back(). */
int wire_read_back(const Wire *wire, char **ret_problem);
/* Why pasta joined by the holder's process instead of by descriptors; borrowed, NULL where it did not have to. */
const char *wire_other_way_because(const Wire *wire);
/* pasta_profile() of what runs now. */
char *wire_profile(const Wire *wire);
/* The name server that pasta forwards to (PastaOptions). Another one costs a restart, which ends connections. */
void wire_tell_server(Wire *wire, uint32_t server);
/* No wire, until it is released. */
void wire_hold(Wire *wire);
void wire_release(Wire *wire);
/* Kill pasta and start it no more, without waiting for its death. */
void wire_end(Wire *wire);
/* Kill pasta, reap, close. Return: NULL. */
Wire *wire_free(Wire *wire);
DEFINE_CLEANUP(Wire, wire_free)
