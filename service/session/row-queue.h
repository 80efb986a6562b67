/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Rows on their way to the service: kept until its socket takes them, several in a packet. Each packet costs its
 * user's budget something; so the first row goes at once, and what comes within ROW_QUEUE_USEC of a packet goes
 * together.
 */

#include "dbus/base.h"
#include "service/link/link.h"
#include "service/link/rows.h"

#define ROW_QUEUE_USEC (40 * USEC_PER_MSEC)
/* More than a run has; of whoever floods, the rest is lost, and the run fails by that. */
#define ROW_QUEUE_MAX LINK_CHECK_ROWS_MAX

typedef struct RowQueue {
	LinkRow *rows;
	uint32_t n;
	uint8_t *data; /* a packet that the socket did not take */
	size_t size;
} RowQueue;

void row_queue_done(RowQueue *queue);
/* Return: 0; -E2BIG; -ENOMEM. */
int row_queue_add(RowQueue *queue, const Row *row);
bool row_queue_is_empty(const RowQueue *queue);
/* Send everything. Return: 0, or a negative errno of packet_send(): the rest waits. */
int row_queue_flush(RowQueue *queue, uint32_t serial, int fd);
