/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shim/nearest.h"

static const char *const names[] = { "shell", "sessions", "show", "stop", "why", "policy", "allow-ip", NULL };

static void mistakes_are_understood(void **state)
{
	static const struct {
		const char *word, *nearest;
	} cases[] = {
		{ "show", "show" },
		{ "shwo", "show" },
		{ "sesions", "sessions" },
		{ "sessoins", "sessions" },
		{ "sess", "sessions" },
		{ "allowip", "allow-ip" },
		{ "polciy", "policy" },
		{ "SHOW", NULL },
		{ "s", NULL },
		{ "sh", NULL },
		{ "", NULL },
		{ "xy", NULL },
		{ "stow", NULL },
		{ "doctor", NULL },
		{ "polyester", NULL },
		{ "sessionssessionssessionssessionssessions", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const char *found = nearest_name(cases[i].word, names);

		if (!found != !cases[i].nearest || (found && !streq(found, cases[i].nearest)))
			fail_msg("%s: %s", cases[i].word, found ?: "none");
	}
	assert_null(nearest_name("show", (const char *const[]){ NULL }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
