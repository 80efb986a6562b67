/* SPDX-License-Identifier: MIT */
#include "service/plan/exposure.h"

ExposureRow *exposure_make(const Plan *plan, size_t *ret_n)
{
	/* calloc(3) of nothing may answer NULL, which means "no memory" here. */
	ExposureRow *rows = calloc(plan->n_entries + 1, sizeof(*rows));

	if (!rows)
		return NULL;
	for (size_t i = 0; i < plan->n_entries; i++) {
		const Entry *entry = &plan->entries[i];

		rows[i] = (ExposureRow){
			.path = entry->destination,
			/* To a person the node, not how it is mounted, is what is there. */
			.kind = entry->device ? "device" : entry_kind_to_string(entry->kind),
			.mode = entry_mode_to_string(entry->mode),
			.origin = entry->origin,
			.reason = entry->reason,
		};
	}
	*ret_n = plan->n_entries;
	return rows;
}
