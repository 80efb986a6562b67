/* SPDX-License-Identifier: MIT */
#pragma once

/* A table that a session has sent, as it grows page by page. */

#include "service/link/link.h"

/* A table in row-major order, link_table_columns() cells a row; none is NULL. */
typedef struct LinkCells {
	size_t n_columns, n_rows;
	char **cells;
} LinkCells;

void link_cells_done(LinkCells *cells);
/* Takes the cells of the rows of m, of which each has n_columns. Return: 0 or -ENOMEM. */
int link_cells_append(LinkCells *cells, LinkMessage *m);
