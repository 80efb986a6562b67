/* SPDX-License-Identifier: MIT */
#include "service/session/row-queue.h"

#define COLUMNS 5u

static void row_forget(LinkRow *row)
{
	for (size_t c = 0; c < COLUMNS; c++)
		free(row->columns[c]);
}

void row_queue_done(RowQueue *queue)
{
	for (uint32_t i = 0; i < queue->n; i++)
		row_forget(&queue->rows[i]);
	free(queue->rows);
	free(queue->data);
	*queue = (RowQueue){ 0 };
}

int row_queue_add(RowQueue *queue, const Row *row)
{
	LinkRow *larger, added;
	bool whole = true;

	if (queue->n >= ROW_QUEUE_MAX)
		return -E2BIG;
	larger = reallocarray(queue->rows, queue->n + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	queue->rows = larger;
	added = (LinkRow){ { strdup(row->id ?: ""), strdup(row_status_to_string(row->status, false)),
			     strdup(row->title ?: ""), strdup(row->detail ?: ""), strdup(row->fix ?: "") } };
	for (size_t c = 0; c < COLUMNS; c++)
		whole = whole && added.columns[c];
	if (!whole) {
		row_forget(&added);
		return -ENOMEM;
	}
	queue->rows[queue->n++] = added;
	return 0;
}

bool row_queue_is_empty(const RowQueue *queue)
{
	return queue->n == 0 && !queue->data;
}

/* As many as fit: half of what is too much always does, since one row does. */
static int row_queue_pack(RowQueue *queue, uint32_t serial)
{
	LinkMessage m = {
		.kind = LINK_ROWS, .serial = serial, .table = LINK_TABLE_CHECKS, .rows = queue->rows
	};
	int r;

	m.n_rows = queue->n;
	do {
		m.total = m.n_rows;
		r = link_encode(&m, &queue->data, &queue->size, NULL);
	} while (r == -EMSGSIZE && (m.n_rows /= 2) > 0);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < m.n_rows; i++)
		row_forget(&queue->rows[i]);
	queue->n -= m.n_rows;
	memmove(queue->rows, queue->rows + m.n_rows, queue->n * sizeof(LinkRow));
	return 0;
}

int row_queue_flush(RowQueue *queue, uint32_t serial, int fd)
{
	int r = 0;

	while (r == 0 && !row_queue_is_empty(queue)) {
		if (!queue->data)
			r = row_queue_pack(queue, serial);
		if (r == 0)
			r = packet_send(fd, queue->data, queue->size);
		if (r == 0)
			freep(&queue->data);
	}
	return r;
}
