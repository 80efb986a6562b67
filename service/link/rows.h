/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Rows: what Verify, its probes and Doctor found, one packet each. Who writes them may run in a jail or
 * belong to a user: they are bounded and checked when read, and texts are cleaned where they are shown.
 */

#include "dbus/base.h"
#include "service/link/pack.h"

#define ROW_CHECKS 22u     /* of Verify, "01" to "22" */
#define ROW_ID_MAX 32u     /* bytes of [a-z0-9.-] */
#define ROW_TITLE_MAX 200u /* bytes, likewise below */
#define ROW_DETAIL_MAX 2400u
#define ROW_FIX_MAX 1200u
/* The largest row, with the counts of its fields. */
#define ROW_BYTES_MAX 4096u

typedef enum RowStatus {
	ROW_PASS, /* Doctor: "ok" */
	ROW_NOTE,
	ROW_WARN, /* Doctor alone */
	ROW_FAIL,
	ROW_STATUS_MAX,
	ROW_STATUS_INVALID = -EINVAL,
} RowStatus;

typedef struct Row {
	char *id;
	RowStatus status;
	char *title, *detail, *fix; /* never NULL once decoded */
} Row;

void row_done(Row *row);
/* NULL is an empty text. Return: 0; -EINVAL for an id that is none; -EMSGSIZE for a text that is too long. */
int row_encode(const Row *row, uint8_t **ret_data, size_t *ret_size);
/* Return: 0, -EBADMSG, -ENOMEM. */
int row_decode(const void *data, size_t size, Row *ret);
/* The same as a part of a larger packet, whose reader or writer carries the error. */
void row_pack(const Row *row, PackWriter *w);
void row_unpack(PackReader *r, Row *ret);
/* Texts are cut to their limits, at the start of a character. Return: 0 or -ENOMEM; -EINVAL for an id that is
 * none. */
int row_make(const char *id, RowStatus status, const char *title, const char *detail, const char *fix,
	     Row *ret);
bool row_id_is_valid(const char *id) _pure_;

/* The word of the bus; doctor: "ok" for ROW_PASS. */
const char *row_status_to_string(RowStatus status, bool doctor);
/* Takes "pass" and "ok" alike. Return: the status, or ROW_STATUS_INVALID. */
RowStatus row_status_from_string(const char *word);
