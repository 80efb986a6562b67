/* SPDX-License-Identifier: MIT */
#include "service/inside/probes.h"

static void send_row(const Probe *probe, int outcome, const char *text, void *userdata)
{
	static const RowStatus statuses[] = {
		[PROBE_INCONCLUSIVE] = ROW_NOTE,
		[PROBE_BLOCKED] = ROW_PASS,
		[PROBE_ESCAPED] = ROW_FAIL,
	};

	/* Out of time is no verdict; a process that somebody killed or stopped had something to hide. */
	if (outcome == -ETIME)
		outcome = PROBE_INCONCLUSIVE;
	battery_row(userdata, probe->id, outcome < 0 ? ROW_FAIL : statuses[outcome], probe->title, "%s",
		    text);
}

void probes_run(Battery *b)
{
	probes_each(battery_expectations(b), send_row, b);
}
