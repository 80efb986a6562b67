/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The session's end of the socket on which `verify` says its rows. What runs in the jail is hostile, and
 * `verify` shares its uid with an agent: it may be stopped or killed there, so silence is an outcome.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/link/rows.h"

/*
 * From one row to the next, and to the first: no machine is so slow. Who was stopped says nothing either: that is looked
 * for after each VERIFY_LOOK_USEC of silence.
 */
#define VERIFY_SILENCE_USEC (60 * USEC_PER_SEC)
#define VERIFY_LOOK_USEC (2 * USEC_PER_SEC)

typedef struct VerifyRows VerifyRows;

typedef struct VerifyRowsCalls {
	void (*row)(void *userdata, const Row *row);
	/* Is what says the rows stopped? */
	bool (*is_stopped)(void *userdata);
	/* No row for VERIFY_SILENCE_USEC, or none of who is stopped, or something that is none: no more is
	 * read. why: static, in words. Once. */
	void (*spoilt)(void *userdata, const char *why);
} VerifyRowsCalls;

/* *ret_far_fd is the other end, for `verify`. Return: 0 or a negative errno. */
int verify_rows_new(sd_event *event, const VerifyRowsCalls *calls, void *userdata, VerifyRows **ret,
		    int *ret_far_fd);
VerifyRows *verify_rows_free(VerifyRows *rows);
DEFINE_CLEANUP(VerifyRows, verify_rows_free)
/* It has been started: silence counts from now on. Return: 0 or a negative errno. */
int verify_rows_begin(VerifyRows *rows);
/* It has ended: read what still waits. No more silence, and no call of spoilt(). Return: 0; -EBADMSG for
 * something that is no row. */
int verify_rows_drain(VerifyRows *rows);
#define VERIFY_ROWS_STRANGE "what checks said something that is no row"
