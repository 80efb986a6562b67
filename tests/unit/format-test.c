/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <time.h>

#include "dbus/text.h"
#include "tui/format.h"

#define MARK "\xe2\x80\xa6"

static void cell_expect(const char *bytes, size_t width, FormatFlags flags, const char *expected)
{
	_cleanup_free_ char *text = format_cell(bytes, width, flags);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void line_expect(const char *bytes, FormatFlags flags, const char *expected)
{
	_cleanup_free_ char *text = format_line(bytes, flags);

	assert_non_null(text);
	assert_string_equal(text, expected);
	assert_int_equal(format_width(bytes, SIZE_MAX, flags), text_width(expected));
}

static void ordinary_text_stays(void **state)
{
	line_expect("", FORMAT_UTF8, "");
	line_expect("/home/ann/src dir", FORMAT_UTF8, "/home/ann/src dir");
	line_expect("Grüße 日本語 🙂", FORMAT_UTF8, "Grüße 日本語 🙂");
	line_expect("é", 0, "\\xc3\\xa9");
	line_expect("a\\b", FORMAT_UTF8, "a\\\\b");
	line_expect("a\\x1b", FORMAT_ESCAPED, "a\\x1b");
}

static void hostile_text_is_shown_not_sent(void **state)
{
	line_expect("\033[2J\033]0;x\007", FORMAT_UTF8, "\\x1b[2J\\x1b]0;x\\x07");
	line_expect("\x9b"
		    "31m",
		    FORMAT_UTF8, "\\x9b31m");                              /* CSI as one byte */
	line_expect("\xc2\x9b", FORMAT_UTF8, "\\xc2\\x9b");                /* and as a character */
	line_expect("a\nb\tc\r", FORMAT_UTF8, "a\\x0ab\\x09c\\x0d");       /* a path */
	line_expect("a\nb\tc\r", FORMAT_UTF8 | FORMAT_SENTENCE, "a b c "); /* a sentence */
	line_expect("a\nb", FORMAT_UTF8 | FORMAT_ESCAPED, "a\\x0ab");      /* no second line */
	line_expect("\xe2\x80\xae", FORMAT_UTF8, "\\xe2\\x80\\xae");       /* turns the line round */
	line_expect("\xe2\x81\xa6", FORMAT_UTF8, "\\xe2\\x81\\xa6");       /* isolates */
	line_expect("a\xe2\x80\x8b", FORMAT_UTF8, "a\\xe2\\x80\\x8b");     /* no width */
	line_expect("\xf0\x9f\x91\xa9\xe2\x80\x8d", FORMAT_UTF8, "👩\\xe2\\x80\\x8d"); /* joins */
	line_expect("\xff\xc0\x80\xed\xa0\x80", FORMAT_UTF8, "\\xff\\xc0\\x80\\xed\\xa0\\x80");
	line_expect("\xe1\x85\xa1", FORMAT_UTF8, "\\xe1\\x85\\xa1"); /* half a syllable: of disputed width */
	line_expect("\xcd\xb8", FORMAT_UTF8, "\\xcd\\xb8");          /* U+0378 is not assigned */
}

static void marks_stand_on_something(void **state)
{
	line_expect("e\xcc\x81x", FORMAT_UTF8, "e\xcc\x81x");
	line_expect("\xcc\x81x", FORMAT_UTF8, "\\xcc\\x81x");
	line_expect("\n\xcc\x81x", FORMAT_UTF8, "\\x0a\\xcc\\x81x");
	line_expect("e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81x", FORMAT_UTF8,
		    "e\xcc\x81\xcc\x81\xcc\x81\\xcc\\x81\\xcc\\x81x");
	assert_int_equal(format_width("ae\xcc\x81x", 100, FORMAT_UTF8), 3);
}

static void cells_are_filled_and_cut(void **state)
{
	cell_expect("abc", 5, FORMAT_UTF8, "abc");
	cell_expect("abc", 5, FORMAT_UTF8 | FORMAT_PAD, "abc  ");
	cell_expect("abc", 5, FORMAT_UTF8 | FORMAT_RIGHT, "  abc");
	cell_expect("abcdef", 5, FORMAT_UTF8, "abcd" MARK);
	cell_expect("abcdef", 5, 0, "abcd~");
	cell_expect("abcdef", 1, FORMAT_UTF8, MARK);
	cell_expect("abcdef", 0, FORMAT_UTF8, "");
	cell_expect("日本語", 6, FORMAT_UTF8, "日本語");
	cell_expect("日本語", 5, FORMAT_UTF8, "日本" MARK);
	cell_expect("日本語", 4, FORMAT_UTF8 | FORMAT_PAD, "日" MARK " ");
	cell_expect("日本語", 4, FORMAT_UTF8 | FORMAT_RIGHT, " 日" MARK);
	cell_expect("ab\033", 5, FORMAT_UTF8 | FORMAT_PAD, "ab" MARK "  "); /* no half of an escape */
	cell_expect("ab\033", 6, FORMAT_UTF8, "ab\\x1b");
}

static void the_middle_goes(void **state)
{
	cell_expect("/home/alice/src/project", 30, FORMAT_UTF8 | FORMAT_CUT_MIDDLE,
		    "/home/alice/src/project");
	cell_expect("/home/alice/src/project", 13, FORMAT_UTF8 | FORMAT_CUT_MIDDLE, "/hom" MARK "/project");
	cell_expect("/home/alice/src/project", 13, FORMAT_CUT_MIDDLE, "/hom~/project");
	cell_expect("/home/alice/src/project", 5, FORMAT_UTF8 | FORMAT_CUT_MIDDLE, "/hom" MARK);
	cell_expect("/日本語日本語日本語/x ", 9, FORMAT_UTF8 | FORMAT_CUT_MIDDLE | FORMAT_PAD,
		    "/" MARK "本語/x ");
}

/* Whatever comes in, no more columns come out than were asked for, and no byte that a terminal acts on. */
static void nothing_gets_out_of_its_columns(void **state)
{
	static const char *const parts[] = {
		"a",  "\033",     "日",   "e\xcc\x81",    "\xcc\x81",     "\xff", "\\", " ",
		"\n", "\xc2\x85", "🙂", "\xe2\x80\xae", "\xe1\x85\xa1", "\t",   "~",  "\xf0\x9f"
	};
	static const FormatFlags ways[] = { 0,
					    FORMAT_PAD,
					    FORMAT_RIGHT,
					    FORMAT_CUT_MIDDLE,
					    FORMAT_SENTENCE,
					    FORMAT_CUT_MIDDLE | FORMAT_PAD };
	uint32_t seed = 1;

	for (unsigned round = 0; round < 20000; round++) {
		char bytes[64] = "";
		_cleanup_free_ char *text = NULL;
		_cleanup_(format_lines_freep) char **lines = NULL;
		size_t n = round % 12, width = round / 12 % 24, used = 0;
		FormatFlags flags = ways[round % ELEMENTSOF(ways)] | (round % 5 ? FORMAT_UTF8 : 0);

		for (size_t i = 0; i < n; i++) {
			const char *part;

			seed = seed * 1103515245 + 12345;
			part = parts[seed >> 16 & 15];
			memcpy(bytes + used, part, strlen(part) + 1);
			used += strlen(part);
		}
		text = format_cell(bytes, width, flags);
		assert_non_null(text);
		assert_true(text_width(text) <= width);
		if (flags & (FORMAT_PAD | FORMAT_RIGHT))
			assert_int_equal(text_width(text), width);
		for (const char *p = text; *p;) {
			uint32_t character = 0;
			size_t length = text_decode(p, strlen(p), &character);

			assert_true(length > 0 && text_shows(character));
			assert_true((flags & FORMAT_UTF8) || character < 0x7f);
			p += length;
		}
		lines = format_wrap(bytes, width + 1, 2, flags);
		assert_non_null(lines);
		for (size_t i = 0; lines[i]; i++)
			assert_true(text_width(lines[i]) <= width + 1);
	}
}

static void long_names_end(void **state)
{
	_cleanup_free_ char *name = malloc(4097), *cell = NULL, *line = NULL;

	assert_non_null(name);
	memset(name, '\033', 4096);
	name[4096] = '\0';
	cell = format_cell(name, 10, FORMAT_UTF8);
	assert_string_equal(cell, "\\x1b\\x1b" MARK);
	line = format_line(name, FORMAT_UTF8);
	assert_int_equal(strlen(line), 4 * 4096);
	assert_int_equal(format_width(name, 50, FORMAT_UTF8), 50);
}

static void wrap_expect(const char *text, size_t width, size_t indent, FormatFlags flags,
			const char *const *expected)
{
	_cleanup_(format_lines_freep) char **lines = format_wrap(text, width, indent, flags);
	size_t i = 0;

	assert_non_null(lines);
	for (; lines[i] && expected[i]; i++)
		assert_string_equal(lines[i], expected[i]);
	assert_null(lines[i]);
	assert_null(expected[i]);
}

static void words_are_wrapped(void **state)
{
	wrap_expect("", 10, 0, FORMAT_UTF8, (const char *const[]){ "", NULL });
	wrap_expect("one two three", 8, 0, FORMAT_UTF8, (const char *const[]){ "one two", "three", NULL });
	wrap_expect("one two three", 7, 0, FORMAT_UTF8, (const char *const[]){ "one two", "three", NULL });
	wrap_expect("a\n\nb", 7, 0, FORMAT_UTF8, (const char *const[]){ "a", "", "b", NULL });
	wrap_expect("path: /aaaaaaaaaaaaa", 10, 2, FORMAT_UTF8,
		    (const char *const[]){ "path:", "  /aaaaaaa", "  aaaaaa", NULL });
	wrap_expect("日本語", 4, 0, FORMAT_UTF8, (const char *const[]){ "日本", "語", NULL });
	wrap_expect("a\\x1b", 3, 0, FORMAT_ESCAPED, (const char *const[]){ "a\\x", "1b", NULL });
	wrap_expect("  indented", 20, 0, FORMAT_UTF8, (const char *const[]){ "  indented", NULL });
}

static void the_screen_moves_sideways(void **state)
{
	static const struct {
		const char *line;
		size_t columns;
		const char *expected;
	} cases[] = { { "abc", 0, "abc" }, { "abc", 2, "c" },    { "abc", 9, "" },
		      { "日本", 2, "本" }, { "日本", 1, " 本" }, { "e\xcc\x81x", 1, "x" } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *rest = format_skip(cases[i].line, cases[i].columns);

		assert_string_equal(rest, cases[i].expected);
	}
}

static void what_is_seen_is_found(void **state)
{
	FormatPlace place;

	assert_true(format_find("/home/Alice/x", "alice", 0, &place));
	assert_int_equal(place.at, 6);
	assert_int_equal(place.column, 6);
	assert_int_equal(place.columns, 5);
	assert_false(format_find("/home/Alice/x", "alice", 7, &place));
	assert_true(format_find("日本 x", "X", 0, &place));
	assert_int_equal(place.at, 7);
	assert_int_equal(place.column, 5);
	assert_false(format_find("abc", "abcd", 0, &place));
	assert_false(format_find("", "a", 0, &place));
	assert_true(format_holds("a\033b", "\\x1b", FORMAT_UTF8));
	assert_true(format_holds("a\\b", "\\\\", FORMAT_UTF8));
	assert_true(format_holds("ABC", "bc", FORMAT_UTF8));
	assert_false(format_holds("ABC", "d", FORMAT_UTF8));
}

static void numbers_and_times(void **state)
{
	static const struct {
		uint64_t count;
		const char *expected;
	} counts[] = { { 0, "0" },         { 9999, "9999" },    { 10000, "10k" },
		       { 999999, "999k" }, { 1234567, "1.2M" }, { UINT64_MAX, "18E" } };
	const uint64_t now = (uint64_t)1769850000 * USEC_PER_SEC; /* 2026-01-31T09:00:00Z */
	assert_int_equal(setenv("TZ", "UTC0", 1), 0);
	tzset();
	_cleanup_free_ char *today = format_clock(now - 60 * USEC_PER_SEC, now);
	_cleanup_free_ char *before = format_clock(now - 86400 * USEC_PER_SEC, now);
	_cleanup_free_ char *never = format_clock(UINT64_MAX, now), *age = format_age(3661 * USEC_PER_SEC);

	for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
		_cleanup_free_ char *text = format_count(counts[i].count);

		assert_string_equal(text, counts[i].expected);
	}
	assert_string_equal(today, "08:59:00Z");
	assert_string_equal(before, "2026-01-30 09:00:00Z");
	/* Half past midnight is another day than two hours before. */
	assert_int_equal(setenv("TZ", "CET-15:30", 1), 0);
	tzset();
	_cleanup_free_ char *local = format_clock(now, now),
			    *day = format_clock(now - 7200 * USEC_PER_SEC, now);
	assert_string_equal(local, "00:30:00");
	assert_string_equal(day, "2026-01-31 22:30:00");
	assert_non_null(never);
	assert_string_equal(age, "1h 01m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_text_stays),
		cmocka_unit_test(hostile_text_is_shown_not_sent),
		cmocka_unit_test(marks_stand_on_something),
		cmocka_unit_test(cells_are_filled_and_cut),
		cmocka_unit_test(the_middle_goes),
		cmocka_unit_test(nothing_gets_out_of_its_columns),
		cmocka_unit_test(long_names_end),
		cmocka_unit_test(words_are_wrapped),
		cmocka_unit_test(the_screen_moves_sideways),
		cmocka_unit_test(what_is_seen_is_found),
		cmocka_unit_test(numbers_and_times),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 77; /* this machine has no UTF-8 */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
