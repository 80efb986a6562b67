/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/mounts.h"

/* One row of ListExposure for each entry of the plan, in its order: path, kind, mode, origin, reason. */
typedef struct ExposureRow {
	const char *path, *kind, *mode, *origin, *reason; /* borrowed from the plan */
} ExposureRow;

/* Return: rows (plan->n_entries of them), to be freed with free(), or NULL without memory. */
ExposureRow *exposure_make(const Plan *plan, size_t *ret_n);
