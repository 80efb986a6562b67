/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The ends of addresses that were opened for a time, for the log: the session closes them itself, this tells
 * that the time is over. The log is what is remembered of them over the service's death.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/daemon/audit.h"
#include "service/daemon/registry.h"

/* Of a session: so many of its own it may have (service/session/allowances.h). */
#define ALLOW_EXPIRIES_MAX 64u

typedef struct AllowExpiry AllowExpiry;

/* address was opened for usec from now on, whatever was known of it; 0: without an end, or closed again. */
void allow_expiry_set(sd_event *event, Audit *audit, Session *session, const char *address, uint64_t usec);
/* What the log knows of a session that was taken over. An end that was missed is told at once. */
void allow_expiry_restore(sd_event *event, Audit *audit, Session *session);
/* Frees all of a session's. Return: NULL. */
AllowExpiry *allow_expiry_free(AllowExpiry *expiry);
