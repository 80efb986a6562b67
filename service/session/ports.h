/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The ports of one session that cross: local-port and local-model-port, which lead from the jail's 127.0.0.1
 * to the host's, and callback-port, which leads from the host's to the jail's. Nothing listens anywhere but
 * on loopback addresses, and nothing else crosses. On the host's side only processes of the session's user,
 * and root's, come in: a login page is nobody else's.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/plan/config.h"

typedef struct Ports Ports;

typedef struct PortsOptions {
	const Config *config; /* borrowed for the call */
	bool jailed;          /* false: the network is the host's, and every port is the same on both sides */
	int holder_pidfd;     /* of a process in the jail's network; used while starting only */
	uid_t uid;
} PortsOptions;

/*
 * Open what the configuration names, before the agent runs. A port that cannot be had is one of the warnings.
 * Return: 0; *ret is NULL when no port is named. A negative errno with *ret_problem when no port can cross.
 */
int ports_new(sd_event *event, const PortsOptions *options, char ***warnings, Ports **ret,
	      char **ret_problem);
/* The agent ends: accept nothing more; what is on its way still arrives. Does nothing on NULL. */
void ports_stop(Ports *ports);
Ports *ports_free(Ports *ports);
DEFINE_CLEANUP(Ports, ports_free)

/* In the order of the configuration. All static or borrowed. */
typedef struct PortsRow {
	uint16_t port;
	const char *direction; /* local or callback */
	const char *state;     /* listening, taken, failed, shared, ended */
	const char *origin;
} PortsRow;

/* NULL counts as none. */
size_t ports_count(const Ports *ports);
PortsRow ports_row(const Ports *ports, size_t i);
