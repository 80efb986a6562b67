/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>

#include "tests/unit/views-fixture.h"

static const char *const allowed[] = { "10.0.0.1", "router", "/etc/c.conf:1",
				       "10.0.0.2", "",       "/etc/c.conf:2",
				       "10.0.0.3", "",       "session " A " until 2026-01-31T10:00:00Z",
				       NULL };

static void changes_wait_until_they_are_saved(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	fixture_begin(&f, &view_allow_ip);
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX, allowed);
	headline_expect(&f, NULL);
	assert_null(view_allow_ip.unsaved(&f.context));
	fixture_act(&f, COMMAND_SAVE, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);
	fixture_act(&f, COMMAND_UNDO, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);

	fixture_act(&f, COMMAND_ADD, NULL, &effect);
	fixture_type(&f, &effect, "10.9.0.1  #  the printer ");
	assert_int_equal(effect.kind, EFFECT_REFRESH);
	fixture_act(&f, COMMAND_EDIT, "file 10.0.0.1", &effect);
	assert_string_equal(effect.text, "router");
	fixture_type(&f, &effect, "gate");
	fixture_act(&f, COMMAND_REMOVE, "file 10.0.0.2", &effect);
	rows_expect(&f, "~|10.0.0.1|gate|/etc/c.conf:1|\n"
			"-|10.0.0.2||/etc/c.conf:2|\n"
			"|10.0.0.3||session " A " until 2026-01-31T10:00:00Z|\n"
			"+|10.9.0.1|the printer|not saved|\n");
	headline_expect(&f, "3 changes are not saved: s saves, u takes the last one back.");
	assert_non_null(view_allow_ip.unsaved(&f.context));
	details_of_every_row(&f);

	fixture_act(&f, COMMAND_SAVE, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_CHAIN);
	assert_int_equal(effect.n_parts, 3);
	assert_int_equal(effect.parts[0].call, CALL_REMOVE); /* what narrows is first */
	assert_string_equal(effect.parts[0].address, "10.0.0.2");
	assert_string_equal(effect.parts[1].address, "10.9.0.1");
	assert_string_equal(effect.parts[1].comment, "the printer");
	assert_string_equal(effect.question, "For the agents of all users, in /etc/claude-sandbox.conf:\n"
					     "Close 10.0.0.2; connections to it end.\nOpen 10.9.0.1.\n"
					     "10.0.0.1 gets the comment 'gate'.\n");
	/* one goes well, the next is refused */
	effect.parts[0].finished(&f.context, &effect.parts[0], NULL);
	effect.parts[1].finished(&f.context, &effect.parts[1], "no");
	headline_expect(&f, "2 changes are not saved: s saves, u takes the last one back.");
	fixture_act(&f, COMMAND_UNDO, NULL, &effect);
	headline_expect(&f, "1 change is not saved: s saves, u takes the last one back.");
	/* somebody else adds the same */
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		     (const char *const[]){ "10.9.0.1", "the printer", "/etc/c.conf:1", NULL });
	rows_expect(&f, "|10.9.0.1|the printer|/etc/c.conf:1|\n");
	headline_expect(&f, NULL);
	effect_done(&effect);
	fixture_end(&f);
}

static void what_is_new_is_edited_and_dropped(void **state)
{
	Effect effect = { 0 }, call = { 0 };
	char *problem = NULL;
	Fixture f;

	fixture_begin(&f, &view_allow_ip);
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX, allowed);
	fixture_act(&f, COMMAND_ADD, NULL, &effect);
	assert_false(effect.check(&f.context, "  ", &call, &problem));
	assert_null(problem);
	assert_true(effect.check(&f.context, "10.9.0.1 x", &call, &problem));
	assert_string_equal(call.address, "10.9.0.1");
	assert_string_equal(call.comment, "x");
	effect_done(&call);
	fixture_type(&f, &effect, "");
	assert_int_equal(effect.kind, EFFECT_NONE);
	fixture_act(&f, COMMAND_ADD, NULL, &effect);
	fixture_type(&f, &effect, "10.9.0.1");
	fixture_act(&f, COMMAND_EDIT, "file 10.9.0.1", &effect);
	fixture_type(&f, &effect, "new");
	headline_expect(&f, "1 change is not saved: s saves, u takes the last one back.");
	fixture_act(&f, COMMAND_REMOVE, "file 10.9.0.1", &effect);
	headline_expect(&f, NULL);
	/* the same comment again is no change */
	fixture_act(&f, COMMAND_EDIT, "file 10.0.0.1", &effect);
	fixture_type(&f, &effect, "router");
	headline_expect(&f, NULL);
	/* a session's own goes at once, after a question */
	fixture_act(&f, COMMAND_REMOVE, "session " A " until 2026-01-31T10:00:00Z 10.0.0.3", &effect);
	assert_int_equal(effect.kind, EFFECT_CALL);
	assert_int_equal(effect.call, CALL_REVOKE);
	assert_string_equal(effect.session, A);
	assert_string_equal(effect.address, "10.0.0.3");
	assert_non_null(effect.question);
	fixture_act(&f, COMMAND_EDIT, "session " A " 10.0.0.3", &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);
	effect_done(&effect);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_wait_until_they_are_saved),
		cmocka_unit_test(what_is_new_is_edited_and_dropped),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
