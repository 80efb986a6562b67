/* SPDX-License-Identifier: MIT */
#include "service/inside/probes.h"

#include "service/inside/probe-child.h"

/* For each of those that run one after the other, and for all together. */
#define PROBE_USEC (2 * USEC_PER_SEC)
#define PROBES_USEC (10 * USEC_PER_SEC)
#define WAITING_MAX 64u

static void finish(Battery *b, ProbeChild *child, uint64_t deadline_usec)
{
	static const RowStatus statuses[] = {
		[PROBE_INCONCLUSIVE] = ROW_NOTE,
		[PROBE_BLOCKED] = ROW_PASS,
		[PROBE_ESCAPED] = ROW_FAIL,
	};
	const Probe *probe = child->probe;
	_cleanup_free_ char *text = NULL;
	int r = probe_child_finish(child, deadline_usec, &text);

	battery_row(b, probe->id, r < 0 ? ROW_FAIL : statuses[r], probe->title, "%s",
		    text ? text : "inconclusive: no memory");
}

void probes_run(Battery *b)
{
	const Expectations *expectations = battery_expectations(b);
	uint64_t last_usec = probe_clock_usec() + PROBES_USEC;
	ProbeChild waiting[WAITING_MAX];
	const Probe *probe;
	size_t n_waiting = 0, ended = 0;

	for (size_t i = 0; (probe = probe_at(i)); i++)
		if (probe->waits && n_waiting < WAITING_MAX)
			probe_child_start(&waiting[n_waiting++], probe, expectations);

	for (size_t i = 0; (probe = probe_at(i)); i++) {
		if (probe->waits && ended < n_waiting) {
			finish(b, &waiting[ended++], last_usec);
		} else {
			ProbeChild child;

			probe_child_start(&child, probe, expectations);
			finish(b, &child, MIN_OF(last_usec, probe_clock_usec() + PROBE_USEC));
		}
	}
}
