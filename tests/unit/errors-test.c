/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus/errors.h"

static void every_error_has_a_sentence(void **state)
{
	size_t n = 0;

	for (const char *name; (name = error_name_at(n)); n++) {
		assert_non_null(starts_with(name, CS_ERROR_PREFIX));
		assert_true(error_is_known(name));
		assert_true(strlen(error_sentence(name, NULL)) > 20);
		for (size_t other = 0; other < n; other++)
			assert_string_not_equal(error_name_at(other), name);
	}
	assert_int_equal(n, 15);
}

static void unknown_names_are_unknown(void **state)
{
	assert_false(error_is_known(NULL));
	assert_false(error_is_known(""));
	assert_false(error_is_known(CS_ERROR_PREFIX));
	assert_false(error_is_known(CS_ERROR_BAD_REQUEST "x"));
	assert_false(error_is_known("org.freedesktop.DBus.Error.AccessDenied"));
}

static void a_sentence_is_never_empty(void **state)
{
	assert_string_equal(error_sentence(CS_ERROR_BAD_REQUEST, "said"), "said");
	assert_string_equal(error_sentence(CS_ERROR_BAD_REQUEST, ""),
			    error_sentence(CS_ERROR_BAD_REQUEST, NULL));
	assert_string_equal(error_sentence(CS_ERROR_BAD_REQUEST, " \n"),
			    error_sentence(CS_ERROR_BAD_REQUEST, NULL));
	assert_true(strlen(error_sentence(NULL, NULL)) > 20);
	assert_true(strlen(error_sentence("no.such.name", "")) > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_error_has_a_sentence),
		cmocka_unit_test(unknown_names_are_unknown),
		cmocka_unit_test(a_sentence_is_never_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
