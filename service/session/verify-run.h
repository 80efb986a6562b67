/* SPDX-License-Identifier: MIT */
#pragma once

/* One run of the checks in a jail that runs: facts, a process that joins, its rows, and the outcome. */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/link/rows.h"
#include "service/session/verify-facts.h"
#include "service/session/verify-join.h"

typedef struct VerifyRun VerifyRun;

typedef struct VerifyRunCalls {
	void (*row)(void *userdata, const Row *row);
	/*
	 * Once; the run may be freed in it. result: 0; LINK_CHECK_FAILED; another negative errno when it did
	 * not come to its end, with why in words.
	 */
	void (*done)(void *userdata, int result, const char *why);
} VerifyRunCalls;

/*
 * join.expectations_fd and rows_fd are made here. Return: 0, done() comes later; a negative errno with
 * *ret_problem.
 */
int verify_run_new(sd_event *event, const VerifySource *source, const VerifyJoin *join,
		   const VerifyRunCalls *calls, void *userdata, VerifyRun **ret, char **ret_problem);
/* What still runs of it is killed; done() does not come. */
VerifyRun *verify_run_free(VerifyRun *run);
DEFINE_CLEANUP(VerifyRun, verify_run_free)
