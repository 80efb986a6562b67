/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "service/inside/probe-child.h"

/*
 * No verdict depends on how fast the machine is: what did not end in its time is tried once more at the end, alone and
 * with more of it, and has no result then. Both are less than the silence after which who reads the rows gives up
 * (service/session/verify-rows.h).
 */
#define PROBE_USEC (10 * USEC_PER_SEC)
#define PROBE_ALONE_USEC (45 * USEC_PER_SEC)
#define WAITING_MAX 64u
#define LATE_MAX 64u

typedef struct Run {
	ProbeFunction function;
	void *userdata;
	const Probe *late[LATE_MAX];
	size_t n_late;
} Run;

static void finish(Run *run, ProbeChild *child, bool last)
{
	const Probe *probe = child->probe;
	_cleanup_free_ char *text = NULL;
	int r = probe_child_finish(
		child, clock_usec(CLOCK_MONOTONIC) + (last ? PROBE_ALONE_USEC : PROBE_USEC), &text);

	if (r == -ETIME && !last && run->n_late < LATE_MAX)
		run->late[run->n_late++] = probe;
	else
		run->function(probe, r, text ? text : "inconclusive: no memory", run->userdata);
}

void probes_each(const Expectations *expectations, ProbeFunction function, void *userdata)
{
	Run run = { .function = function, .userdata = userdata };
	ProbeChild waiting[WAITING_MAX];
	const Probe *probe;
	size_t n_waiting = 0, ended = 0;

	for (size_t i = 0; (probe = probe_at(i)); i++)
		if (probe->waits && n_waiting < WAITING_MAX)
			probe_child_start(&waiting[n_waiting++], probe, expectations);

	for (size_t i = 0; (probe = probe_at(i)); i++) {
		if (ended < n_waiting && waiting[ended].probe == probe) {
			finish(&run, &waiting[ended++], false);
		} else {
			ProbeChild child;

			probe_child_start(&child, probe, expectations);
			finish(&run, &child, false);
		}
	}
	for (size_t i = 0; i < run.n_late; i++) {
		ProbeChild child;

		probe_child_start(&child, run.late[i], expectations);
		finish(&run, &child, true);
	}
}
