/* SPDX-License-Identifier: MIT */
#pragma once

#include <seccomp.h>

#include "service/inside/filter-rules.h"

/* The positive errno that a refused call answers with. */
int filter_answer(FilterRefusal refusal);
/*
 * The one way in which a rule gets into the filter: with the name of what it refuses, by which it has an
 * attempt in the battery. Return: as seccomp_rule_add(3).
 */
int filter_add(scmp_filter_ctx context, FilterRefusal refusal, int call, unsigned n,
	       const struct scmp_arg_cmp *arguments);
