/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include <pty.h>

#include "dbus/print.h"
#include "dbus/text.h"

/* What a function writes to a stream, as a string. */
typedef struct Capture {
	FILE *stream;
	char *text;
	size_t size;
} Capture;

static void capture_start(Capture *capture)
{
	*capture = (Capture){ 0 };
	capture->stream = open_memstream(&capture->text, &capture->size);
	assert_non_null(capture->stream);
}

static void capture_expect(Capture *capture, const char *expected)
{
	assert_int_equal(fclose(capture->stream), 0);
	assert_string_equal(capture->text, expected);
	free(capture->text);
}

static void escape_expect(const char *bytes, bool utf8, const char *expected)
{
	_cleanup_free_ char *text = text_escape(bytes, utf8);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void ordinary_text_stays(void **state)
{
	escape_expect("", true, "");
	escape_expect("/home/ann/src dir", true, "/home/ann/src dir");
	escape_expect("Grüße 日本語 🙂", true, "Grüße 日本語 🙂");
}

static void hostile_text_is_shown_not_sent(void **state)
{
	escape_expect("\033]0;title\007", true, "\\x1b]0;title\\x07");
	escape_expect("a\nb\tc\rd", true, "a\\x0ab\\x09c\\x0dd");
	escape_expect("\x7f", true, "\\x7f");
	escape_expect("\xc2\x9b", true, "\\xc2\\x9b");                   /* U+009B: CSI */
	escape_expect("\x9b", true, "\\x9b");                            /* the same as one byte */
	escape_expect("\xe2\x80\xae", true, "\\xe2\\x80\\xae");          /* U+202E turns the line round */
	escape_expect("\xe2\x80\x8b", true, "\\xe2\\x80\\x8b");          /* U+200B has no width */
	escape_expect("\xf3\xa0\x81\xa1", true, "\\xf3\\xa0\\x81\\xa1"); /* U+E0061, a tag */
	escape_expect("a\\x41", true, "a\\\\x41");
}

static void what_is_not_utf8_is_escaped(void **state)
{
	escape_expect("\xff/\xfe", true, "\\xff/\\xfe");
	escape_expect("\xc3", true, "\\xc3");
	escape_expect("\xc3(", true, "\\xc3(");
	escape_expect("\xc0\xaf", true, "\\xc0\\xaf");                   /* overlong */
	escape_expect("\xe0\x80\xaf", true, "\\xe0\\x80\\xaf");          /* overlong */
	escape_expect("\xed\xa0\x80", true, "\\xed\\xa0\\x80");          /* a surrogate */
	escape_expect("\xf4\x90\x80\x80", true, "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	escape_expect("é", false, "\\xc3\\xa9");
	escape_expect("plain", false, "plain");
}

static void sentences_are_one_line(void **state)
{
	_cleanup_free_ char *text = text_sentence("one\ntwo\t\\xff \033[2J", true);
	Capture capture;

	assert_string_equal(text, "one two \\xff \\x1b[2J");
	capture_start(&capture);
	print_complaint(capture.stream, "cause;\nfix");
	print_complaint(capture.stream, NULL);
	print_complaint_of(capture.stream, "claude-sandbox-tui", "cause;\nfix");
	capture_expect(&capture, "claude-sandbox: cause; fix\n"
				 "claude-sandbox: no memory; close something and try again\n"
				 "claude-sandbox-tui: cause; fix\n");
}

static void widths_are_cells(void **state)
{
	size_t cells;

	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("日本"), 4);
	assert_int_equal(text_width("e\xcc\x81"), 1); /* a combining accent */
	assert_int_equal(text_width("🙂"), 2);
	assert_int_equal(text_width("é"), 1);
	assert_int_equal(text_fit("日本", 3, &cells), 3);
	assert_int_equal(cells, 2);
	assert_int_equal(text_fit("ab", 0, &cells), 0);
	assert_int_equal(text_fit("ae\xcc\x81z", 2, &cells), 4); /* the accent stays with its letter */
}

static const PrintColumn columns[] = {
	{ "ID", "id", PRINT_TEXT, false },        { "N", "number", PRINT_NUMBER, false },
	{ "STATE", "state", PRINT_STATE, false }, { NULL, "hidden", PRINT_TEXT, false },
	{ "PATH", "path", PRINT_TEXT, true },
};

static const char *const cells[] = {
	"abc",  "7",    "running", "x",  "/home/ann/a-long-directory",
	"日本", "1234", "offline", NULL, "/\xff\033\\",
	"e",    "12",   "stopped", "",   "",
};

static const PrintTable table = { columns, ELEMENTSOF(columns), 3, cells };

static void table_is_aligned(void **state)
{
	PrintStyle style = { .utf8 = true };
	Capture capture;

	capture_start(&capture);
	assert_int_equal(print_table(capture.stream, &table, &style, "nothing"), 0);
	capture_expect(&capture, "ID       N  STATE    PATH\n"
				 "abc      7  running  /home/ann/a-long-directory\n"
				 "日本  1234  offline  /\\xff\\x1b\\\\\n"
				 "e       12  stopped\n");
}

static void table_fits_the_terminal(void **state)
{
	PrintStyle style = { .utf8 = true, .width = 36 };
	Capture capture;

	capture_start(&capture);
	assert_int_equal(print_table(capture.stream, &table, &style, "nothing"), 0);
	capture_expect(&capture, "ID       N  STATE    PATH\n"
				 "abc      7  running  /home/ann/a-...\n"
				 "日本  1234  offline  /\\xff\\x1b\\\\\n"
				 "e       12  stopped\n");

	/* Nothing but what may be cut is cut, and of that a rest stays. */
	style.width = 1;
	capture_start(&capture);
	assert_int_equal(print_table(capture.stream, &table, &style, "nothing"), 0);
	capture_expect(&capture, "ID       N  STATE    PATH\n"
				 "abc      7  running  /home...\n"
				 "日本  1234  offline  /\\xff...\n"
				 "e       12  stopped\n");
}

static void table_has_colours_by_meaning(void **state)
{
	static const char *const two[] = { "a", "1", "running", "", "/", "b", "2", "ending", "", "/" };
	PrintStyle style = { .utf8 = true, .colour = true };
	Capture capture;

	capture_start(&capture);
	assert_int_equal(print_table(capture.stream, &(PrintTable){ columns, 5, 2, two }, &style, ""), 0);
	capture_expect(&capture,
		       "\033[1mID\033[0m  \033[1mN\033[0m  \033[1mSTATE\033[0m    \033[1mPATH\033[0m\n"
		       "a   1  \033[32mrunning\033[0m  /\n"
		       "b   2  \033[2mending\033[0m   /\n");
}

static void empty_table_is_a_sentence(void **state)
{
	PrintTable empty = { columns, ELEMENTSOF(columns), 0, NULL };
	PrintStyle style = { 0 };
	Capture capture;

	capture_start(&capture);
	assert_int_equal(print_table(capture.stream, &empty, &style, "nothing is here"), 0);
	capture_expect(&capture, "nothing is here\n");
	capture_start(&capture);
	assert_int_equal(print_json(capture.stream, &empty, &style), 0);
	capture_expect(&capture, "[]\n");
}

static void json_has_keys_and_types(void **state)
{
	PrintStyle style = { .utf8 = true };
	Capture capture;

	capture_start(&capture);
	assert_int_equal(print_json_object(capture.stream, &table, &style), 0);
	capture_expect(&capture, "{\n"
				 "  \"id\": \"abc\",\n"
				 "  \"number\": 7,\n"
				 "  \"state\": \"running\",\n"
				 "  \"hidden\": \"x\",\n"
				 "  \"path\": \"/home/ann/a-long-directory\"\n"
				 "}\n");
}

static void json_text_is_safe_and_whole(void **state)
{
	static const PrintColumn one[] = { { "T", "t", PRINT_TEXT, false } };
	static const struct {
		const char *bytes, *utf8, *ascii;
	} cases[] = {
		{ "\xff", "\\\\xff", "\\\\xff" },
		{ "\\", "\\\\\\\\", "\\\\\\\\" },
		{ "\"\n\033", "\\\"\\n\\u001b", "\\\"\\n\\u001b" },
		{ "\x7f\xc2\x9b\xe2\x80\xae", "\\u007f\\u009b\\u202e", "\\u007f\\u009b\\u202e" },
		{ "日🙂", "日🙂", "\\u65e5\\ud83d\\ude42" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		PrintTable one_cell = { one, 1, 1, &cases[i].bytes };

		for (int utf8 = 0; utf8 < 2; utf8++) {
			PrintStyle style = { .utf8 = utf8 };
			_cleanup_free_ char *expected = NULL;
			Capture capture;

			assert_true(asprintf(&expected, "{\n  \"t\": \"%s\"\n}\n",
					     utf8 ? cases[i].utf8 : cases[i].ascii) > 0);
			capture_start(&capture);
			assert_int_equal(print_json_object(capture.stream, &one_cell, &style), 0);
			capture_expect(&capture, expected);
		}
	}
}

static void durations_are_short(void **state)
{
	static const struct {
		uint64_t seconds;
		const char *expected;
	} cases[] = {
		{ 0, "0s" },
		{ 59, "59s" },
		{ 60, "1m" },
		{ 3599, "59m" },
		{ 3600, "1h 00m" },
		{ 3600 * 24 - 1, "23h 59m" },
		{ 3600 * 24, "1d 00h" },
		{ 3600 * 100, "4d 04h" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *text = print_duration(cases[i].seconds * USEC_PER_SEC);

		assert_string_equal(text, cases[i].expected);
	}
}

static void style_set_environment(const char *term, const char *no_color, const char *all, const char *lang)
{
	static const char *const names[] = { "TERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG" };
	const char *values[] = { term, no_color, all, NULL, lang };

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		assert_int_equal(values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i]), 0);
}

static void style_follows_terminal_and_environment(void **state)
{
	struct winsize size = { .ws_row = 10, .ws_col = 77 };
	_cleanup_fclose_ FILE *terminal = NULL, *file = tmpfile();
	_cleanup_close_ int master_fd = FD_NONE;
	int slave_fd = FD_NONE;
	PrintStyle style;

	assert_non_null(file);
	assert_int_equal(openpty(&master_fd, &slave_fd, NULL, NULL, &size), 0);
	terminal = fdopen(slave_fd, "w");
	assert_non_null(terminal);

	style_set_environment("xterm", NULL, NULL, "de_DE.UTF-8");
	style = print_style(terminal);
	assert_true(style.colour && style.utf8);
	assert_int_equal(style.width, 77);
	style = print_style(file);
	assert_false(style.colour);
	assert_true(style.utf8);
	assert_int_equal(style.width, 0);

	style_set_environment("xterm", "1", "C", "de_DE.UTF-8");
	style = print_style(terminal);
	assert_false(style.colour || style.utf8);
	style_set_environment("xterm", "", "", "C.utf8");
	style = print_style(terminal);
	assert_true(style.colour && style.utf8);
	style_set_environment("dumb", NULL, NULL, NULL);
	style = print_style(terminal);
	assert_false(style.colour || style.utf8);
}

static void a_full_disk_is_an_error(void **state)
{
	_cleanup_fclose_ FILE *full = fopen("/dev/full", "w");
	PrintStyle style = { 0 };

	assert_non_null(full);
	assert_int_equal(print_table(full, &table, &style, ""), -ENOSPC);
}

static void times_name_their_zone(void **state)
{
	static const struct {
		const char *zone; /* NULL: after print_utc() */
		uint64_t usec;
		const char *text;
	} cases[] = {
		{ "UTC0", 0, "1970-01-01T00:00:00Z" },
		{ "UTC0", UINT64_C(1700000000999999), "2023-11-14T22:13:20Z" },
		{ "EST5", UINT64_C(1700000000999999), "2023-11-14T17:13:20-05:00" },
		{ "IST-5:30", UINT64_C(1700000000999999), "2023-11-15T03:43:20+05:30" },
		{ NULL, UINT64_C(1700000000999999), "2023-11-14T22:13:20Z" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *text = NULL;

		if (cases[i].zone)
			assert_int_equal(setenv("TZ", cases[i].zone, 1), 0);
		else
			print_utc();
		tzset();
		text = print_time(cases[i].usec);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_name_their_zone),
		cmocka_unit_test(ordinary_text_stays),
		cmocka_unit_test(hostile_text_is_shown_not_sent),
		cmocka_unit_test(what_is_not_utf8_is_escaped),
		cmocka_unit_test(sentences_are_one_line),
		cmocka_unit_test(widths_are_cells),
		cmocka_unit_test(table_is_aligned),
		cmocka_unit_test(table_fits_the_terminal),
		cmocka_unit_test(table_has_colours_by_meaning),
		cmocka_unit_test(empty_table_is_a_sentence),
		cmocka_unit_test(json_has_keys_and_types),
		cmocka_unit_test(json_text_is_safe_and_whole),
		cmocka_unit_test(durations_are_short),
		cmocka_unit_test(style_follows_terminal_and_environment),
		cmocka_unit_test(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
