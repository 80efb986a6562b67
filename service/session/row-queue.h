/* SPDX-License-Identifier: MIT */
#pragma once

/* Rows that wait for the service: told together, since it takes few packets a second, and in their order. */

#include "service/link/link.h"
#include "service/link/rows.h"

/* So many of the largest fit into a packet. */
#define ROW_QUEUE_PACKET 12u

typedef struct RowQueue {
	LinkRow *rows;
	uint32_t n;
	uint32_t serial; /* of all that wait */
} RowQueue;

void row_queue_done(RowQueue *queue);
/* Texts are copied. Return: 0 or -ENOMEM. */
int row_queue_add(RowQueue *queue, const Row *row);
/* The packet LINK_ROWS of the first rows. Return: as link_encode(), with *ret_rows how many they are. */
int row_queue_encode(const RowQueue *queue, uint8_t **ret_data, size_t *ret_size, uint32_t *ret_rows);
/* The first n have been told. */
void row_queue_drop(RowQueue *queue, uint32_t n);
