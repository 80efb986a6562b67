/* SPDX-License-Identifier: MIT */
#include "service/session/row-queue.h"

#include "service/session/link-server.h"

static void row_free(LinkRow *row)
{
	for (size_t i = 0; i < LINK_COLUMNS_MAX; i++)
		free(row->columns[i]);
}

void row_queue_done(RowQueue *queue)
{
	row_queue_drop(queue, queue->n);
	free(queue->rows);
	*queue = (RowQueue){ 0 };
}

int row_queue_add(RowQueue *queue, const Row *row)
{
	const char *const columns[] = { row->id, row_status_to_string(row->status, false), row->title,
					row->detail, row->fix };
	LinkRow *grown = reallocarray(queue->rows, queue->n + 1, sizeof(*grown)), new = { 0 };

	if (!grown)
		return -ENOMEM;
	queue->rows = grown;
	for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
		new.columns[i] = link_text(columns[i] ?: "");
		if (!new.columns[i]) {
			row_free(&new);
			return -ENOMEM;
		}
	}
	queue->rows[queue->n++] = new;
	return 0;
}

int row_queue_encode(const RowQueue *queue, uint8_t **ret_data, size_t *ret_size, uint32_t *ret_rows)
{
	uint32_t n = MIN_OF(queue->n, ROW_QUEUE_PACKET);
	int r;

	r = link_encode(&(LinkMessage){ .kind = LINK_ROWS,
					.serial = queue->serial,
					.table = LINK_TABLE_CHECKS,
					.total = n,
					.n_rows = n,
					.rows = queue->rows },
			ret_data, ret_size, NULL);
	if (r == 0)
		*ret_rows = n;
	return r;
}

void row_queue_drop(RowQueue *queue, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		row_free(&queue->rows[i]);
	queue->n -= n;
	if (queue->n > 0)
		memmove(queue->rows, queue->rows + n, queue->n * sizeof(*queue->rows));
}
