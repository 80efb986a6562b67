/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a running session may reach, changed on the service's word and when a time is over: the set of
 * addresses, and with it the routes of the namespace. The configuration that the session holds follows, so
 * that whoever makes a table of routes from it (a change of the host's network) makes the right one.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/link/link.h"
#include "service/session/allowances.h"
#include "service/session/network.h"

typedef struct Reach Reach;

typedef struct ReachCalls {
	/* The network is not what was meant, or cannot be made that: nothing may go on running in it. */
	void (*broken)(void *userdata, const char *problem);
	/* New warnings; NULL-terminated or NULL. */
	void (*warned)(void *userdata, char *const *warnings);
} ReachCalls;

/* network and config are borrowed and outlive it. Return: 0 or a negative errno. */
int reach_new(sd_event *event, Network *network, Config *config, const ReachCalls *calls, void *userdata,
	      Reach **ret);
Reach *reach_free(Reach *reach);
DEFINE_CLEANUP(Reach, reach_free)

/*
 * LINK_REACH, LINK_ALLOW or LINK_REVOKE. When this returns 0 the kernel holds what was asked for and flows to
 * what was closed are ended; but of LINK_REACH *ret_problem then says what of it could not be opened. Otherwise the
 * addresses are what they were. Return: as LinkServerCalls.reach.
 */
int reach_handle(Reach *reach, const LinkMessage *m, char **ret_problem);

const Allowances *reach_allowances(const Reach *reach);
