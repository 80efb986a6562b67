/* SPDX-License-Identifier: MIT */
#include "service/inside/filter-add.h"

#include "dbus/base.h"

#define ANSWER(name, answer) [REFUSAL_##name] = (answer),
static const int answers[REFUSAL_MAX] = { FILTER_REFUSALS(ANSWER) };

int filter_answer(FilterRefusal refusal)
{
	return (unsigned)refusal < REFUSAL_MAX ? answers[refusal] : EPERM;
}

int filter_add(scmp_filter_ctx context, FilterRefusal refusal, int call, unsigned n,
	       const struct scmp_arg_cmp *arguments)
{
	return seccomp_rule_add_array(context, SCMP_ACT_ERRNO((uint32_t)filter_answer(refusal)), call, n,
				      arguments);
}
