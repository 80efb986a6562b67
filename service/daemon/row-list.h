/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The rows that a session says of its own jail, for Verify and Doctor: checked, bounded, kept for the reply
 * and sent to the caller as they come. The session is its user's: it may say anything of itself.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "service/daemon/signals.h"
#include "service/link/link.h"
#include "service/link/rows.h"

/* Of one call. */
#define ROW_LIST_MAX 256u

typedef struct RowList {
	Row *rows;
	size_t n;
	bool broken; /* something was no row, or there were too many: what is missing is not known */
} RowList;

void row_list_done(RowList *list);
/* Takes row. Return: 0; -E2BIG (the list is broken now); -ENOMEM. */
int row_list_add(RowList *list, Row *row);
/* A row of LINK_TABLE_CHECKS. Return: as above; -EBADMSG for what is none (the list is broken now). */
int row_list_add_said(RowList *list, const LinkRow *said);

/*
 * As a(sssss): id, status, title, detail, fix. doctor: "ok" for a pass; else what fails gets the fix of its check
 * (dbus/check-fixes.h), whatever the session says. Return: >= 0 or a negative errno.
 */
int row_list_append(const RowList *list, bool doctor, sd_bus_message *m);
/* The signal Row to client alone; call: what it gave as the option of that name. */
void row_send(const Signals *signals, const Client *client, const char *call, const Row *row, bool doctor);

/*
 * What Verify answers: every check of 01 to 22 has exactly one row, and none of all rows failed. *ret_missing
 * (allocated) names checks that have none or more than one ("03, 07"), or is NULL. Return: 1, 0, or -ENOMEM.
 */
int row_list_passed(const RowList *list, char **ret_missing);
