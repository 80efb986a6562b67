/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The denial of one session, in its order. ORDER IS SECURITY: the host's network is read before the namespace
 * is programmed; the programming ends before the tap is tested; the tap is tested before it is let go; what
 * is there is read back last, after everything that could have changed it; and only a namespace that passed
 * gets a wire.
 */

#include "dbus/base.h"
#include "service/net/denial.h"
#include "service/plan/config.h"
#include "service/session/holder.h"

typedef struct Network {
	bool jailed;
	HostNetwork host;
	RouteTable routes;
	JailSockets sockets;
	Denial denial;
	bool denial_open;
	char *ledger_problem; /* why there is no ledger, or NULL */
} Network;

#define NETWORK_INIT ((Network){ .sockets = JAIL_SOCKETS_INIT })

/*
 * Read the host and make the table of routes; nothing when the configuration shares the host's network.
 * Return: 0; a negative errno with *ret_error (a CS_ERROR_ name, static) and *ret_problem; likewise below.
 */
int network_prepare(Network *network, const Config *config, const char **ret_error, char **ret_problem);
/* Program, test, let go of the tap, read back. network->sockets are the holder's. */
int network_lock(Network *network, Holder *holder, const char **ret_error, char **ret_problem);
void network_done(Network *network);

/* Read everything back again. Return: as denial_read_back(); 0 when not jailed. */
int network_read_back(Network *network, char **ret_problem);
/*
 * Make the table of routes anew, of network->host and the configuration as they are now, and bring the
 * namespace there (denial.h); flows to what is denied then are ended. What was left out is told in
 * network->denial.warnings, what the table itself warns of in network->routes.warnings. Nothing when not
 * jailed. Return: 0; -EREMCHG: the session must end; another negative errno: nothing was changed. All with
 * *ret_problem, but -ENOMEM.
 */
int network_change(Network *network, const Config *config, char **ret_problem);
/*
 * Read the host again, and deny what it has come to be connected to, what it owns, and its gateways, with all
 * that it was. network->host follows. Flows to what is denied then are left to network_end_flows(): how long
 * that takes is the agent's choice. Return: 1 when the namespace was changed; 0 when there was no need;
 * -EREMCHG: the session must end; another negative errno: what the host is now may not be denied. All with
 * *ret_problem, but -ENOMEM.
 */
int network_host_again(Network *network, const Config *config, char **ret_problem);

/* End the flows to what is denied now. Best effort: without it nothing passes either. Nothing when not
 * jailed. */
void network_end_flows(Network *network);
