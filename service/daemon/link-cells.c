/* SPDX-License-Identifier: MIT */
#include "service/daemon/link-cells.h"

void link_cells_done(LinkCells *cells)
{
	for (size_t i = 0; i < cells->n_rows * cells->n_columns; i++)
		free(cells->cells[i]);
	free(cells->cells);
	*cells = (LinkCells){ 0 };
}

int link_cells_append(LinkCells *cells, LinkMessage *m)
{
	char **larger;

	larger = reallocarray(cells->cells, (cells->n_rows + m->n_rows) * cells->n_columns, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	cells->cells = larger;
	for (uint32_t i = 0; i < m->n_rows; i++) {
		for (size_t c = 0; c < cells->n_columns; c++) {
			char *cell = TAKE_PTR(m->rows[i].columns[c]) ?: strdup("");

			if (!cell) {
				while (c-- > 0)
					free(larger[cells->n_rows * cells->n_columns + c]);
				return -ENOMEM;
			}
			larger[cells->n_rows * cells->n_columns + c] = cell;
		}
		cells->n_rows++;
	}
	return 0;
}
