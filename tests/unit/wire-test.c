/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus/wire.h"

/* A bus that is never connected: good enough to build and read messages. */
static int setup(void **state)
{
	sd_bus *bus = NULL;
	int fds[2];

	if (sd_bus_new(&bus) < 0 || pipe(fds) < 0)
		return -1;
	if (sd_bus_set_fd(bus, fds[0], fds[1]) < 0 || sd_bus_start(bus) < 0)
		return -1;
	*state = bus;
	return 0;
}

static int teardown(void **state)
{
	sd_bus_close_unref(*state);
	return 0;
}

static sd_bus_message *message_new(void **state)
{
	sd_bus_message *m = NULL;

	assert_true(sd_bus_message_new_signal(*state, &m, "/x", "x.y", "Z") >= 0);
	return m;
}

static void message_seal(sd_bus_message *m)
{
	assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
	assert_true(sd_bus_message_rewind(m, true) >= 0);
}

static void vector_free(char **strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
}

static void text_is(const char *text, size_t max, const char *expected)
{
	char *shown = wire_text(text, max);

	assert_string_equal(shown, expected);
	assert_true(strlen(shown) <= max);
	free(shown);
}

/* What they were can be told, whatever they are. */
static void bytes_are_escaped_once(void **state)
{
	_cleanup_free_ char *escaped = wire_escape("a\\x1b\x1b\xff", 64), *again = wire_text(escaped, 64),
			    *cut = wire_escape("\\\\\\\\", 7), *exact = wire_escape("\\\\", 4);

	assert_string_equal(escaped, "a\\\\x1b\\x1b\\xff");
	assert_string_equal(again, escaped);
	assert_string_equal(cut, "\\\\\\\\...");
	assert_string_equal(exact, "\\\\\\\\");
}

static void text_is_escaped_and_bounded(void **state)
{
	text_is(NULL, 10, "");
	text_is("plain", 10, "plain");
	text_is("\xc3\xa9t\xc3\xa9", 10, "\xc3\xa9t\xc3\xa9");
	text_is("a\x1b[31m", 20, "a\\x1b[31m");
	text_is("\n\t\x7f", 20, "\\x0a\\x09\\x7f");
	text_is("\xff\xfe", 20, "\\xff\\xfe");
	text_is("\xc0\xaf", 20, "\\xc0\\xaf");                   /* overlong */
	text_is("\xed\xa0\x80", 20, "\\xed\\xa0\\x80");          /* surrogate */
	text_is("\xf4\x90\x80\x80", 20, "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	text_is("\xc2\x9b", 20, "\\xc2\\x9b");                   /* C1 control */
	text_is("\xe2\x80\xae", 20, "\\xe2\\x80\\xae");          /* right-to-left override */
	text_is("\xe2\x82", 20, "\\xe2\\x82");                   /* cut sequence */
	text_is("a\\x1b", 10, "a\\x1b");
	text_is("0123456789", 10, "0123456789");
	text_is("0123456789a", 10, "0123456...");
	text_is("012345\xc3\xa9\xc3\xa9\xc3\xa9", 10, "012345...");
	text_is("\x01\x01\x01", 10, "\\x01...");
	text_is("abc", 2, "..");
	text_is("abc", 0, "");
}

static void bytes_and_vectors_round_trip(void **state)
{
	char *words[] = { (char *)"", (char *)"a\nb", (char *)"\xff\x01", NULL };
	_cleanup_message_ sd_bus_message *m = message_new(state);
	_cleanup_free_ char *bytes = NULL;
	size_t budget = 100;
	char **read = NULL;

	assert_true(wire_append_vector(m, words) >= 0);
	assert_true(wire_append_bytes(m, "/p\xfe") >= 0);
	assert_true(wire_append_vector(m, NULL) >= 0);
	message_seal(m);
	assert_true(sd_bus_message_has_signature(m, "aayayaay"));

	assert_int_equal(wire_read_vector(m, 3, &budget, &read), 0);
	for (size_t i = 0; i < 4; i++)
		if (words[i])
			assert_string_equal(read[i], words[i]);
		else
			assert_null(read[i]);
	vector_free(read);
	assert_int_equal(wire_read_bytes(m, &budget, &bytes), 0);
	assert_string_equal(bytes, "/p\xfe");
	assert_int_equal(wire_read_vector(m, 3, &budget, &read), 0);
	assert_null(read[0]);
	vector_free(read);
	assert_int_equal(budget, 100 - 1 - 4 - 3 - 4);
}

static void reading_is_bounded(void **state)
{
	char *words[] = { (char *)"abcd", (char *)"efgh", NULL };
	_cleanup_message_ sd_bus_message *m = message_new(state);
	char **read = NULL;
	size_t budget = 10;

	assert_true(wire_append_vector(m, words) >= 0);
	message_seal(m);
	assert_int_equal(wire_read_vector(m, 2, &budget, &read), 0);
	assert_int_equal(budget, 0);
	vector_free(read);

	read = NULL;
	budget = 9;
	assert_true(sd_bus_message_rewind(m, true) >= 0);
	assert_int_equal(wire_read_vector(m, 2, &budget, &read), -E2BIG);
	assert_int_equal(budget, 9);
	budget = 100;
	assert_true(sd_bus_message_rewind(m, true) >= 0);
	assert_int_equal(wire_read_vector(m, 1, &budget, &read), -E2BIG);
	assert_null(read);
}

static void a_nul_is_refused(void **state)
{
	_cleanup_message_ sd_bus_message *m = message_new(state);
	size_t budget = 100;
	char *read = NULL;

	assert_true(sd_bus_message_append_array(m, 'y', "a\0b", 3) >= 0);
	message_seal(m);
	assert_int_equal(wire_read_bytes(m, &budget, &read), -EINVAL);
	assert_null(read);
}

static void another_type_is_refused(void **state)
{
	_cleanup_message_ sd_bus_message *m = message_new(state);
	size_t budget = 100;
	char *read = NULL;

	assert_true(sd_bus_message_append(m, "s", "text") >= 0);
	message_seal(m);
	assert_int_equal(wire_read_bytes(m, &budget, &read), -EBADMSG);
}

static void tables_are_shown_text(void **state)
{
	const char *cells[] = { "a", "\x1b", NULL, "d" };
	_cleanup_message_ sd_bus_message *m = message_new(state);
	const char *a, *b;

	assert_true(wire_append_table(m, 2, cells, 2, 100) >= 0);
	message_seal(m);
	assert_true(sd_bus_message_has_signature(m, "a(ss)"));
	assert_true(sd_bus_message_enter_container(m, 'a', "(ss)") > 0);
	assert_true(sd_bus_message_read(m, "(ss)", &a, &b) > 0);
	assert_string_equal(a, "a");
	assert_string_equal(b, "\\x1b");
	assert_true(sd_bus_message_read(m, "(ss)", &a, &b) > 0);
	assert_string_equal(a, "");
	assert_string_equal(b, "d");
}

static void weight_counts_everything_and_stops(void **state)
{
	char *words[] = { (char *)"abcd", (char *)"", NULL };
	_cleanup_message_ sd_bus_message *m = message_new(state);
	_cleanup_message_ sd_bus_message *many = message_new(state);

	assert_true(wire_append_vector(m, words) >= 0);
	assert_true(sd_bus_message_append(m, "s(ib)a{sv}", "word", 1, true, 1, "key", "t", (uint64_t)7) >= 0);
	message_seal(m);
	/* three of the vector, the string, struct and two, array, entry, key, variant, value; 4 + 4 + 3 bytes
	 */
	assert_int_equal(wire_weigh(m, 10000), 12 * WIRE_VALUE_WEIGHT + 11);
	/* it is left at its beginning, and weighs the same again */
	assert_int_equal(wire_weigh(m, 10000), 12 * WIRE_VALUE_WEIGHT + 11);
	assert_int_equal(wire_weigh(m, 20), 21);

	assert_true(sd_bus_message_open_container(many, 'a', "b") >= 0);
	for (size_t i = 0; i < 1000; i++)
		assert_true(sd_bus_message_append(many, "b", true) >= 0);
	assert_true(sd_bus_message_close_container(many) >= 0);
	message_seal(many);
	assert_int_equal(wire_weigh(many, 100000), 1001 * WIRE_VALUE_WEIGHT);
	assert_int_equal(wire_weigh(many, 1000), 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_escaped_and_bounded),
		cmocka_unit_test(bytes_are_escaped_once),
		cmocka_unit_test(bytes_and_vectors_round_trip),
		cmocka_unit_test(reading_is_bounded),
		cmocka_unit_test(a_nul_is_refused),
		cmocka_unit_test(another_type_is_refused),
		cmocka_unit_test(tables_are_shown_text),
		cmocka_unit_test(weight_counts_everything_and_stops),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
