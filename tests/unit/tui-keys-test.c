/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tui/line-editor.h"
#include "tui/options.h"
#include "tui/view.h"

/* In no view do two commands want the same key. */
static void keys_are_not_taken_twice(void **state)
{
	const KeyBinding *a, *b;
	const View *view;

	for (size_t v = 0; (view = view_at(v)); v++)
		for (size_t i = 0; (a = key_binding_at(i)); i++)
			for (size_t k = i + 1; (b = key_binding_at(k)); k++)
				for (size_t x = 0; x < KEY_CODES_MOST; x++)
					for (size_t y = 0; y < KEY_CODES_MOST; y++)
						if (a->codes[x] && a->codes[x] == b->codes[y] &&
						    key_binding_is_for(a, view->name) &&
						    key_binding_is_for(b, view->name))
							fail_msg("%s: %s and %s", view->name, a->help,
								 b->help);
}

static bool has_action(const View *view, Command command)
{
	for (const ViewAction *action = view->actions; action && action->command != COMMAND_NONE; action++)
		if (action->command == command)
			return true;
	return false;
}

/* What a key promises in a view, the view does; what a view does has a key. */
static void actions_have_keys(void **state)
{
	const KeyBinding *binding;
	const View *view;

	for (size_t v = 0; (view = view_at(v)); v++) {
		for (size_t i = 0; (binding = key_binding_at(i)); i++)
			if (binding->group == KEY_GROUP_ACTION && binding->command != COMMAND_OPEN &&
			    key_binding_is_for(binding, view->name) && !has_action(view, binding->command))
				fail_msg("%s cannot: %s", view->name, binding->help);
		for (const ViewAction *action = view->actions; action && action->command != COMMAND_NONE;
		     action++) {
			bool found = false;

			for (size_t i = 0; (binding = key_binding_at(i)); i++)
				found |= binding->command == action->command &&
					 key_binding_is_for(binding, view->name);
			if (!found)
				fail_msg("%s: an action without a key", view->name);
		}
	}
}

static void keys_are_explained(void **state)
{
	const KeyBinding *binding;

	for (size_t i = 0; (binding = key_binding_at(i)); i++) {
		assert_true(binding->codes[0] != KEYCODE_NONE);
		assert_true(!binding->names == !binding->help);
		assert_true(!binding->hint || binding->names);
		assert_non_null(key_group_title(binding->group));
	}
	for (const char *word = "sessions\0exposure\0allow-ip\0"; *word; word += strlen(word) + 1)
		assert_non_null(view_find(word));
}

static void keys_mean_what_people_know(void **state)
{
	assert_int_equal(key_command('j', "sessions"), COMMAND_DOWN);
	assert_int_equal(key_command(KEYCODE_DOWN, "help"), COMMAND_DOWN);
	/* of no view, as where a whole row is shown: what holds everywhere, and an end of the search for it
	 */
	assert_int_equal(key_command(KEYCODE_DOWN, ""), COMMAND_DOWN);
	assert_int_equal(key_command('x', ""), COMMAND_NONE);
	assert_int_equal(key_command('q', "routes"), COMMAND_QUIT);
	assert_int_equal(key_command('?', "denied"), COMMAND_HELP);
	assert_int_equal(key_command('/', "policy"), COMMAND_SEARCH);
	assert_int_equal(key_command('5', "policy"), COMMAND_VIEW_1 + 4);
	assert_int_equal(key_command('a', "denied"), COMMAND_ALLOW);
	assert_int_equal(key_command('a', "allow-ip"), COMMAND_ADD);
	assert_int_equal(key_command('a', "sessions"), COMMAND_NONE);
	assert_int_equal(key_command('x', "policy"), COMMAND_NONE);
	assert_int_equal(key_command(KEYCODE_NONE, "sessions"), COMMAND_NONE);
}

/* ---- a line ---- */

static int type(LineEditor *editor, const char *text)
{
	int r = 0;

	for (; *text && r >= 0; text++)
		r = line_editor_key(editor, (KeyCode)*text);
	return r;
}

static void lines_are_typed(void **state)
{
	_cleanup_(line_editor_done) LineEditor editor = { 0 };

	assert_string_equal(line_editor_text(&editor), "");
	assert_int_equal(line_editor_key(&editor, KEYCODE_BACKSPACE), 0);
	assert_int_equal(line_editor_key(&editor, KEYCODE_LEFT), 0);
	assert_int_equal(type(&editor, "10.0.0.1 a  b"), 1);
	assert_int_equal(line_editor_key(&editor, KEYCODE_CONTROL('w')), 1);
	assert_string_equal(line_editor_text(&editor), "10.0.0.1 a  ");
	assert_int_equal(line_editor_key(&editor, KEYCODE_HOME), 0);
	assert_int_equal(line_editor_key(&editor, KEYCODE_DELETE), 1);
	assert_int_equal(line_editor_key(&editor, 0x20ac), 1);
	assert_string_equal(line_editor_text(&editor), "\u20ac0.0.0.1 a  ");
	assert_int_equal(line_editor_key(&editor, KEYCODE_CONTROL('k')), 1);
	assert_string_equal(line_editor_text(&editor), "\u20ac");
	assert_int_equal(line_editor_key(&editor, KEYCODE_BACKSPACE), 1);
	assert_string_equal(line_editor_text(&editor), "");
	assert_int_equal(line_editor_set(&editor, "before"), 0);
	assert_int_equal(type(&editor, "!"), 1);
	assert_string_equal(line_editor_text(&editor), "before!");
	assert_int_equal(line_editor_key(&editor, KEYCODE_CONTROL('u')), 1);
	assert_string_equal(line_editor_text(&editor), "");
}

static void marks_go_with_their_character(void **state)
{
	_cleanup_(line_editor_done) LineEditor editor = { 0 };

	assert_int_equal(type(&editor, "e"), 1);
	assert_int_equal(line_editor_key(&editor, 0x301), 1);
	assert_int_equal(line_editor_key(&editor, KEYCODE_BACKSPACE), 1);
	assert_string_equal(line_editor_text(&editor), "");
}

static void what_does_not_show_is_not_typed(void **state)
{
	_cleanup_(line_editor_done) LineEditor editor = { 0 };

	assert_int_equal(line_editor_key(&editor, 0x9b), -ENOKEY);
	assert_int_equal(line_editor_key(&editor, 0x202e), -ENOKEY);
	assert_int_equal(line_editor_key(&editor, KEYCODE_F1), -ENOKEY);
	assert_int_equal(line_editor_key(&editor, 7), -ENOKEY);
	assert_string_equal(line_editor_text(&editor), "");
}

static void lines_are_bounded(void **state)
{
	_cleanup_(line_editor_done) LineEditor editor = { 0 };

	for (size_t i = 0; i < LINE_EDITOR_MOST + 10; i++)
		assert_true(line_editor_key(&editor, 'a') >= 0);
	assert_int_equal(strlen(line_editor_text(&editor)), LINE_EDITOR_MOST);
}

/* ---- the command line ---- */

static int parse(Options *options, char **problem, const char *words)
{
	char *argv[8] = { (char *)"claude-sandbox-tui" };
	char *text = *words ? strdup(words) : NULL;
	int argc = 1, r;

	for (char *word = text ? strtok(text, " ") : NULL; word; word = strtok(NULL, " "))
		argv[argc++] = word;
	free(*problem);
	*problem = NULL;
	r = options_parse(argc, argv, options, problem);
	assert_true((r == -EINVAL) == (*problem != NULL));
	/* What is borrowed from the words is looked at by the tests through whether it is there. */
	free(text);
	return r;
}

static void options_are_understood(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Options options = { 0 };

	assert_int_equal(parse(&options, &problem, ""), 0);
	assert_int_equal(parse(&options, &problem, "--dump sessions --json"), 0);
	assert_true(options.json && options.dump);
	assert_int_equal(parse(&options, &problem, "--dump=routes --session abc"), 0);
	assert_true(options.session != NULL);
	assert_int_equal(parse(&options, &problem, "-Hann@host:22 --view denied"), 0);
	assert_true(options.host && options.view);
	assert_int_equal(parse(&options, &problem, "-h"), 0);
	assert_true(options.help);
	assert_int_equal(parse(&options, &problem, "--version"), 0);
	assert_true(options.version);
}

static void options_are_refused(void **state)
{
	static const char *const wrong[] = {
		"--dump",        "--dump nothing",
		"--json",        "-x",
		"sessions",      "-H -oProxy",
		"--view",        "--view nothing",
		"--session abc", "--dump routes --session A",
	};
	_cleanup_free_ char *problem = NULL;
	Options options = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
		assert_int_equal(parse(&options, &problem, wrong[i]), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_not_taken_twice),
		cmocka_unit_test(actions_have_keys),
		cmocka_unit_test(keys_are_explained),
		cmocka_unit_test(keys_mean_what_people_know),
		cmocka_unit_test(lines_are_typed),
		cmocka_unit_test(marks_go_with_their_character),
		cmocka_unit_test(what_does_not_show_is_not_typed),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(options_are_understood),
		cmocka_unit_test(options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
