/* SPDX-License-Identifier: MIT */

/* How the end of a probe's process is judged. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/syscall.h>

#include "base/clock.h"
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

static void tells_one(Probing *p)
{
	probing_blocked(p, "one way");
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
		assert_int_equal(
			probe_child_finish(&child, clock_usec(CLOCK_MONOTONIC) + USEC_PER_SEC / 2, &text),
			cases[i].outcome);
		assert_string_equal(text, cases[i].text);
	}
}

/* An errno that says no is named; every other answer is a way out, but where the machine lets everybody do it. */
static void rows_are_judged(void **state)
{
	static const int refusals[] = { EPERM, 0 };
	char none[] = "/tmp/probe-setting-XXXXXX", all[] = "/tmp/probe-setting-XXXXXX";
	const ProbeCall calls[] = {
		PROBE_CALL("is refused", SYS_close, NULL, -1),
		PROBE_CALL("is refused too", SYS_kill, NULL, 0, -1),
		{ 0 },
	};
	const struct {
		ProbeCall call;
		ProbeOutcome outcome;
		const char *text;
	} cases[] = {
		{ PROBE_CALL("it", SYS_close, NULL, -1), PROBE_BLOCKED, "blocked: as root: it: EBADF" },
		{ PROBE_CALL("it", SYS_close, refusals, -1), PROBE_ESCAPED,
		  "escaped: as root: it was not refused, but failed later (EBADF)" },
		{ PROBE_CALL("it", SYS_getpid, refusals), PROBE_ESCAPED, "escaped: as root: it succeeded" },
		{ PROBE_CALL_UNLESS(none, "it", SYS_getpid, NULL), PROBE_ESCAPED,
		  "escaped: as root: it succeeded" },
		{ PROBE_CALL_UNLESS("/no-such-file", "it", SYS_getpid, NULL), PROBE_ESCAPED,
		  "escaped: as root: it succeeded" },
		{ PROBE_CALL_UNLESS(all, "it", SYS_getpid, NULL), PROBE_INCONCLUSIVE,
		  "inconclusive: as root: it, which this machine lets everybody do" },
		{ PROBE_CALL_UNLESS(all, "it", SYS_close, NULL, -1), PROBE_BLOCKED,
		  "blocked: as root: it: EBADF" },
	};
	Probing several = { 0 };
	char text[256];

	assert_true(close_fd(mkstemp(none)) == FD_NONE && close_fd(mkstemp(all)) == FD_NONE);
	assert_int_equal(probe_write(none, "1\n"), 0);
	assert_int_equal(probe_write(all, "0\n"), 0);
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const ProbeCall table[] = { cases[i].call, { 0 } };
		Probing p = { 0 };

		probing_calls(&p, table, "as root: ");
		assert_int_equal(probing_outcome(&p), cases[i].outcome);
		assert_string_equal(probing_text(&p, text, sizeof(text)), cases[i].text);
	}
	probing_calls(&several, calls, "");
	assert_int_equal(several.n_blocked, 2);
	(void)unlink(none);
	(void)unlink(all);
}

/* All that a probe has is tried: its rows, its paths and its function. */
static void every_part_is_tried(void **state)
{
	static const char *const writable[] = { "/dev/null", NULL }, *const absent[] = { "/no-such-file",
											 NULL };
	static const ProbeCall calls[] = { PROBE_CALL("a row", SYS_close, NULL, -1), { 0 } };
	const Probe blocked = { .attempt = tells_one, .calls = calls, .files = absent, .sockets = absent };
	const Probe escaped = { .calls = calls, .files = writable };
	Probing p = { 0 }, q = { 0 };
	char text[256];

	probing_attempt(&p, &blocked);
	assert_string_equal(probing_text(&p, text, sizeof(text)),
			    "blocked: 4 ways: a row: EBADF; none of 1 is there; none of 1 is there; one way");
	probing_attempt(&q, &escaped);
	assert_string_equal(probing_text(&q, text, sizeof(text)), "escaped: /dev/null can be written");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_judged),
		cmocka_unit_test(rows_are_judged),
		cmocka_unit_test(every_part_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
