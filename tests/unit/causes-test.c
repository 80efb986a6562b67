/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus/causes.h"

static void split_is(const char *sentence, const char *cause, const char *fix)
{
	_cleanup_free_ char *found = NULL, *helps = NULL;

	assert_int_equal(cause_split(sentence, &found, &helps), 0);
	assert_string_equal(found, cause);
	assert_string_equal(helps, fix);
}

static void sentences_come_apart(void **state)
{
	split_is(BECAUSE(TUN_ABSENT), CAUSE_TUN_ABSENT, FIX_TUN_ABSENT);
	split_is(BECAUSE(BWRAP_OLD), CAUSE_BWRAP_OLD, FIX_BWRAP_OLD);
	split_is("", "", "");
	split_is("a cause alone", "a cause alone", "");
	split_is("a cause alone.", "a cause alone", "");
	split_is("It may not; an administrator can.", "It may not", "an administrator can");
}

/* What a program said stays with the cause, whatever is in it. */
static void words_of_others_stay_in_the_cause(void **state)
{
	_cleanup_free_ char *sentence = NULL;

	assert_int_equal(refuse(&sentence, 0, BECAUSE(PASTA_ENDED), "no luck; sorry; bye"), 0);
	split_is(sentence, "pasta ended: no luck; sorry; bye", FIX_PASTA_ENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentences_come_apart),
		cmocka_unit_test(words_of_others_stay_in_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
