/* SPDX-License-Identifier: MIT */

/* How the end of a probe's process is judged. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "service/inside/probe-child.h"

static void blocks(Probing *p)
{
	probing_blocked(p, "one way");
	(void)pause();
}

static void is_stopped(Probing *p)
{
	probing_blocked(p, "one way");
	(void)raise(SIGSTOP);
}

static void dies(Probing *p)
{
	probing_blocked(p, "one way");
	(void)raise(SIGKILL);
}

static void gets_out_and_dies(Probing *p)
{
	probing_escaped(p, "one way");
	(void)raise(SIGKILL);
}

static void tells_nothing(Probing *p)
{
}

/* What does not come to its end has not passed, whatever it said before; but what got out has. */
static void ends_are_judged(void **state)
{
	static const struct {
		void (*attempt)(Probing *p);
		int outcome;
		const char *text;
	} cases[] = { { blocks, -ETIME, "inconclusive: it did not come back in its time" },
		      { is_stopped, -ECHILD, "inconclusive: somebody stopped its process" },
		      { dies, -ECHILD, "inconclusive: its process died of signal 9" },
		      { gets_out_and_dies, PROBE_ESCAPED, "escaped: one way" },
		      { tells_nothing, PROBE_INCONCLUSIVE, "inconclusive: there was nothing to try" } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const Probe probe = { .id = "p00", .title = "", .stands = "", .attempt = cases[i].attempt };
		_cleanup_free_ char *text = NULL;
		ProbeChild child;

		probe_child_start(&child, &probe, NULL);
		assert_int_equal(probe_child_finish(&child, probe_clock_usec() + USEC_PER_SEC / 2, &text),
				 cases[i].outcome);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
