/* SPDX-License-Identifier: MIT */
#pragma once

/* A probe in a place where what it tries is allowed, and where nothing of it is the machine's. */

#include "service/inside/probe-child.h"

typedef enum ProbeSetting {
	SETTING_PLAIN = 0,          /* root; mounts, network, IPC and host name of its own; /tmp is a tmpfs */
	SETTING_PIDS = 1 << 0,      /* processes of its own, in a /proc of its own; process 1 can be traced */
	SETTING_ADDRESSES = 1 << 1, /* every address is this machine's, and groups answer */
	SETTING_TERMINAL = 1 << 2,  /* a controlling terminal at 2 */
	SETTING_WIRE = 1 << 3,      /* jail0 without a filter, and somebody who answers ARP at its end */
	SETTING_FILTER = 1 << 4,    /* with the filter of the jail */
	SETTING_USER = 1 << 5,      /* an ordinary user, no root */
} ProbeSetting;

typedef struct ProbeAnswer {
	int outcome;
	char text[1400];
} ProbeAnswer;

/* Called in the process that the probe is a child of. */
typedef void (*ProbePreparation)(Expectations *expectations);

/* What the probe of that id finds there. prepare may be NULL. Fails the test when it cannot be run. */
ProbeAnswer probe_answer(const char *id, unsigned settings, ProbePreparation prepare);
/* A listener that sends the token "the-token" to whoever comes, until the process ends. */
void bait_listen(int family, int type, const char *path, uint16_t port);
#define BAIT_TOKEN "the-token"
