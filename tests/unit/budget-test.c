/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/daemon/turns.h"

#define NOON (UINT64_C(43200) * USEC_PER_SEC)

static void who_did_nothing_waits_for_nothing(void **state)
{
	_cleanup_(budget_freep) Budget *budget = budget_new();

	assert_int_equal(budget_wait(budget, 1000, NOON), 0);
	assert_int_equal(budget_charge(budget, 1000, NOON, BUDGET_BURST_USEC - 1), 0);
	assert_int_equal(budget_wait(budget, 1000, NOON), 0);
}

static void what_is_used_up_comes_back_by_and_by(void **state)
{
	_cleanup_(budget_freep) Budget *budget = budget_new();
	uint64_t wait;

	(void)budget_charge(budget, 1000, NOON, BUDGET_BURST_USEC + 100);
	wait = budget_wait(budget, 1000, NOON);
	assert_int_equal(wait, 101 * BUDGET_SHARE);
	assert_int_not_equal(budget_wait(budget, 1000, NOON + wait - BUDGET_SHARE), 0);
	assert_int_equal(budget_wait(budget, 1000, NOON + wait), 0);
	/* Nobody else has paid. */
	assert_int_equal(budget_wait(budget, 1001, NOON), 0);
}

static void small_works_add_up(void **state)
{
	_cleanup_(budget_freep) Budget *budget = budget_new();
	uint64_t now = NOON, worked = 0;

	/* A step of 3 usec each usec: what comes back between them is a part of it, and nothing of it is lost. */
	while (budget_wait(budget, 1000, now) == 0 && worked < 10 * BUDGET_BURST_USEC) {
		(void)budget_charge(budget, 1000, now, 3);
		worked += 3;
		now++;
	}
	assert_in_range(worked, BUDGET_BURST_USEC * 12 / 11 - 10, BUDGET_BURST_USEC * 12 / 11 + 10);
}

static void debts_end(void **state)
{
	_cleanup_(budget_freep) Budget *budget = budget_new();

	for (unsigned i = 0; i < 100; i++)
		(void)budget_charge(budget, 1000, NOON, UINT64_MAX);
	assert_int_equal(budget_wait(budget, 1000, NOON), (BUDGET_DEBT_USEC + 1) * BUDGET_SHARE);
	assert_int_equal(budget_wait(budget, 1000, NOON + (BUDGET_DEBT_USEC + 1) * BUDGET_SHARE), 0);
}

static void time_that_goes_backwards_gives_nothing(void **state)
{
	_cleanup_(budget_freep) Budget *budget = budget_new();

	(void)budget_charge(budget, 1000, NOON, BUDGET_BURST_USEC);
	(void)budget_charge(budget, 1000, 0, 10);
	assert_int_equal(budget_wait(budget, 1000, 0), 11 * BUDGET_SHARE);
	assert_int_not_equal(budget_wait(budget, 1000, NOON), 0);
}

static void only_who_owes_is_remembered(void **state)
{
	_cleanup_(budget_freep) Budget *budget = budget_new();

	for (uid_t uid = 0; uid < 1000; uid++)
		(void)budget_charge(budget, uid, NOON + uid * USEC_PER_SEC, 100);
	assert_int_equal(budget_users(budget), 1);
	assert_int_equal(budget_wait(budget, 3, NOON), 0);
}

/* ---- turns ---- */

typedef struct Worker {
	Turns *turns;
	Turn turn;
	char name, *log;
	unsigned steps;
} Worker;

static void work(void *userdata)
{
	Worker *worker = userdata;
	size_t n = strlen(worker->log);

	worker->log[n] = worker->name;
	worker->log[n + 1] = '\0';
	if (--worker->steps == 0)
		turns_leave(worker->turns, &worker->turn);
}

static void users_take_turns(void **state)
{
	_cleanup_(turns_freep) Turns *turns = NULL;
	char log[64] = "";
	Worker workers[] = { { .name = 'a', .steps = 4 },
			     { .name = 'b', .steps = 4 },
			     { .name = 'c', .steps = 4 },
			     { .name = 'X', .steps = 2 } };
	const uid_t uids[] = { 1000, 1000, 1000, 1001 };
	sd_event *event = NULL;

	assert_return_code(sd_event_new(&event), 0);
	assert_return_code(turns_new(event, &turns), 0);
	for (size_t i = 0; i < ELEMENTSOF(workers); i++) {
		workers[i].turns = turns;
		workers[i].log = log;
		workers[i].turn = (Turn){ .step = work, .userdata = &workers[i] };
		assert_true(turns_allow(turns, uids[i]) == (i == 0 || i == 3));
		assert_return_code(turns_wait(turns, uids[i], &workers[i].turn), 0);
		/* It waits once. */
		assert_return_code(turns_wait(turns, uids[i], &workers[i].turn), 0);
		assert_false(turns_allow(turns, uids[i]));
	}
	for (unsigned i = 0; i < 100 && strlen(log) < 14; i++)
		assert_return_code(sd_event_run(event, USEC_PER_SEC), 0);
	/* Every user has the next turn; whoever waits for the same user, too. */
	assert_string_equal(log, "aXbXcabcabcabc");
	assert_true(turns_allow(turns, 1000) && turns_allow(turns, 1001));
	turns = turns_free(turns);
	sd_event_unref(event);
}

static void burn(void *userdata)
{
	Worker *worker = userdata;

	for (volatile unsigned i = 0; i < 3000000; i++)
		;
	work(worker);
}

static void who_has_used_up_the_budget_comes_last(void **state)
{
	_cleanup_(turns_freep) Turns *turns = NULL;
	char log[4096] = "";
	Worker hungry = { .name = 'h', .log = log, .steps = 4000 },
	       other = { .name = 'X', .log = log, .steps = 1 };
	sd_event *event = NULL;
	unsigned before;

	assert_return_code(sd_event_new(&event), 0);
	assert_return_code(turns_new(event, &turns), 0);
	hungry.turns = other.turns = turns;
	hungry.turn = (Turn){ .step = burn, .userdata = &hungry };
	other.turn = (Turn){ .step = work, .userdata = &other };
	assert_return_code(turns_wait(turns, 1000, &hungry.turn), 0);
	/* Until nothing is left: the loop has nothing more to do at once. */
	do {
		before = hungry.steps;
		assert_return_code(sd_event_run(event, 0), 0);
		assert_return_code(sd_event_run(event, 0), 0);
	} while (hungry.steps != before && hungry.steps > 1);
	assert_true(hungry.steps > 1);
	assert_return_code(turns_wait(turns, 1001, &other.turn), 0);
	for (unsigned i = 0; i < 100 && other.steps > 0; i++)
		assert_return_code(sd_event_run(event, USEC_PER_SEC), 0);
	assert_int_equal(log[strlen(log) - 1], 'X');
	/* Root has no limit. */
	turns_begin(turns, 0);
	burn(&hungry);
	turns_end(turns, true);
	assert_true(turns_allow(turns, 0));
	turns_leave(turns, &hungry.turn);
	turns = turns_free(turns);
	sd_event_unref(event);
}

static void whoever_fills_the_way_out_waits_until_it_is_empty(void **state)
{
	_cleanup_(turns_freep) Turns *turns = NULL;
	char log[64] = "";
	Worker worker = { .name = 'a', .steps = 2, .log = log };
	sd_event *event = NULL;

	assert_return_code(sd_event_new(&event), 0);
	assert_return_code(turns_new(event, &turns), 0);
	worker.turns = turns;
	worker.turn = (Turn){ .step = work, .userdata = &worker };
	/* Nobody's work has filled it. */
	turns_end(turns, false);
	assert_true(turns_allow(turns, 1000));
	turns_begin(turns, 1000);
	turns_end(turns, false);
	assert_false(turns_allow(turns, 1000));
	/* What another does meanwhile changes nothing. */
	turns_begin(turns, 1001);
	turns_end(turns, false);
	assert_true(turns_allow(turns, 1001) && turns_allow(turns, 0));
	assert_false(turns_allow(turns, 1000));
	assert_return_code(turns_wait(turns, 1000, &worker.turn), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_return_code(sd_event_run(event, 0), 0);
	assert_string_equal(log, "");
	turns_end(turns, true);
	for (unsigned i = 0; i < 100 && worker.steps > 0; i++)
		assert_return_code(sd_event_run(event, USEC_PER_SEC), 0);
	assert_string_equal(log, "aa");
	assert_true(turns_allow(turns, 1000));
	turns = turns_free(turns);
	sd_event_unref(event);
}

static void the_time_until_the_way_out_is_empty_is_charged(void **state)
{
	_cleanup_(turns_freep) Turns *turns = NULL;
	sd_event *event = NULL;

	assert_return_code(sd_event_new(&event), 0);
	assert_return_code(turns_new(event, &turns), 0);
	turns_begin(turns, 1000);
	turns_end(turns, false);
	/* All that may be saved, by nothing but waiting. */
	assert_return_code(sd_event_run(event, BUDGET_BURST_USEC + 200 * USEC_PER_MSEC), 0);
	turns_end(turns, true);
	assert_false(turns_allow(turns, 1000));
	assert_true(turns_allow(turns, 1001));
	turns = turns_free(turns);
	sd_event_unref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_did_nothing_waits_for_nothing),
		cmocka_unit_test(what_is_used_up_comes_back_by_and_by),
		cmocka_unit_test(small_works_add_up),
		cmocka_unit_test(debts_end),
		cmocka_unit_test(time_that_goes_backwards_gives_nothing),
		cmocka_unit_test(only_who_owes_is_remembered),
		cmocka_unit_test(users_take_turns),
		cmocka_unit_test(who_has_used_up_the_budget_comes_last),
		cmocka_unit_test(whoever_fills_the_way_out_waits_until_it_is_empty),
		cmocka_unit_test(the_time_until_the_way_out_is_empty_is_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
