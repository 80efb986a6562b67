/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus/names.h"
#include "service/daemon/auth.h"
#include "service/daemon/widening.h"

static void nothing_is_no_words(void **state)
{
	char *const none[] = { NULL };
	char *words = (char *)"unset";

	assert_int_equal(widening_words(NULL, &words), 0);
	assert_null(words);
	words = (char *)"unset";
	assert_int_equal(widening_words(none, &words), 0);
	assert_null(words);
}

static void every_sentence_is_there(void **state)
{
	char *const sentences[] = { (char *)"A opens 1", (char *)"B opens 2, 3", (char *)"C opens 4", NULL };
	_cleanup_free_ char *words = NULL;

	assert_int_equal(widening_words(sentences, &words), 0);
	assert_string_equal(words, "A opens 1; B opens 2, 3; C opens 4");
}

/* What cannot be named whole is not asked about. */
static void a_question_is_never_shortened(void **state)
{
	char longest[WIDENING_WORDS_MAX + 1];
	char *const sentences[] = { longest, NULL }, *const two[] = { longest, (char *)"more", NULL };
	_cleanup_free_ char *words = NULL;
	char *kept = (char *)"unset";

	memset(longest, 'x', sizeof(longest));
	longest[WIDENING_WORDS_MAX - 2] = '\0';
	assert_int_equal(widening_words(sentences, &words), 0);
	assert_string_equal(words, longest);
	assert_int_equal(widening_words(two, &kept), -E2BIG);
	longest[WIDENING_WORDS_MAX - 2] = 'x';
	longest[WIDENING_WORDS_MAX - 1] = '\0';
	assert_int_equal(widening_words(sentences, &kept), -E2BIG);
	assert_string_equal(kept, "unset");
}

static void a_password_has_its_own_error(void **state)
{
	assert_string_equal(auth_error_name(-EACCES), CS_ERROR_NOT_AUTHORIZED);
	assert_string_equal(auth_error_name(-ENOKEY), SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_no_words),
		cmocka_unit_test(every_sentence_is_there),
		cmocka_unit_test(a_question_is_never_shortened),
		cmocka_unit_test(a_password_has_its_own_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
