/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What nothing inside the jail can tell: the session's own namespaces and name, which are the service's; its
 * terminal; what the plan's sources are; and of a jail that runs, its processes as they look from here.
 */

#include "dbus/base.h"
#include "service/plan/expectations.h"
#include "service/session/network.h"
#include "service/session/wire.h"

typedef struct VerifySource {
	const Plan *plan;
	const SessionRequest *request;
	Network *network;
	const Wire *wire; /* NULL where there is none */
	BatteryKind battery;
	int terminal_fd;         /* FD_NONE: there is none */
	const char *made_mounts; /* verify_facts_mounts() from when the jail was made, or NULL */
	pid_t leader; /* the jail's init, where one runs and is joined; 0: verify runs in the agent's place */
	bool resolver; /* names can resolve inside */
	bool online;
	const ExpectedBait *baits;
	size_t n_baits;
	const char *bait_token;
} VerifySource;

/*
 * This process's table of mounts. What the host unmounts while a jail runs stays in it, and is no mount of
 * somebody else's. Return: to be freed, or NULL: it is not told, and fails what is judged by it.
 */
char *verify_facts_mounts(void);

/* The expectations, encoded. Return: 0; a negative errno with *ret_problem. */
int verify_facts_encode(const VerifySource *source, uint8_t **ret_data, size_t *ret_size, char **ret_problem);
