/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/modes.h"

typedef struct Case {
	const char *output, *undo;
} Case;

static const Case CASES[] = {
	{ "", "" },
	{ "plain text\r\n\x1b[1;31mred\x1b[0m \x1b[2J\x1b[H", "" },
	{ "\x1b[?1049h", "\x1b[?1049l" },
	{ "\x1b[?1049h\x1b[?1049l", "" },
	{ "\x1b[?47h", "\x1b[?47l" },
	{ "\x1b[?1047h\x1b[?47l", "" },
	{ "\x1b[?25l", "\x1b[?25h" },
	{ "\x1b[?25l\x1b[?25h", "" },
	{ "\x1b[?25h", "" },
	{ "\x1b[?1000;1002;1003;1006h", "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l" },
	{ "\x1b[?1000;1006h\x1b[?1000l", "\x1b[?1006l" },
	{ "\x1b[?1005h\x1b[?1015h", "\x1b[?1005l\x1b[?1015l" },
	{ "\x1b[?2004h", "\x1b[?2004l" },
	{ "\x1b[?1004h\x1b[?1h", "\x1b[?1004l\x1b[?1l" },
	{ "\x1b=", "\x1b>" },
	{ "\x1b=\x1b>", "" },
	/* The same numbers without the marker are other modes. */
	{ "\x1b[1049h\x1b[4h\x1b[>1000h", "" },
	/* kitty keyboard: push, set on top, pop */
	{ "\x1b[>1u", "\x1b[<1u" },
	{ "\x1b[>u\x1b[>5u", "\x1b[<2u" },
	{ "\x1b[>1u\x1b[<u", "" },
	{ "\x1b[>1u\x1b[>1u\x1b[<1u", "\x1b[<1u" },
	{ "\x1b[>1u\x1b[<99u", "" },
	{ "\x1b[<5u", "" },
	{ "\x1b[=5u", "\x1b[=0;1u" },
	{ "\x1b[=5;2u\x1b[=5;3u", "" },
	{ "\x1b[=1u\x1b[=0u", "" },
	{ "\x1b[>1u\x1b[=7u\x1b[<u", "" },
	{ "\x1b[u\x1b[?u", "" },
	/* each screen has its own keyboard stack */
	{ "\x1b[>1u\x1b[?1049h\x1b[>3u", "\x1b[<1u\x1b[?1049l\x1b[<1u" },
	{ "\x1b[?1049h\x1b[>3u\x1b[<u", "\x1b[?1049l" },
	/* modifyOtherKeys */
	{ "\x1b[>4;2m", "\x1b[>4m" },
	{ "\x1b[>4;1m\x1b[>4;0m", "" },
	{ "\x1b[>4;1m\x1b[>4m", "" },
	{ "\x1b[>4;1m\x1b[>m", "" },
	{ "\x1b[>4;1m\x1b[>4n", "" },
	{ "\x1b[>1;2m", "" },
	{ "\x1b[4;2m", "" },
	/* resets */
	{ "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[>1u\x1b"
	  "c",
	  "" },
	{ "\x1b[?25l\x1b[?1h\x1b=\x1b[?2004h\x1b[!p", "\x1b[?2004l" },
	/* strings hide what is in them, whichever way they end */
	{ "\x1b]0;title [?1049h\a", "" },
	{ "\x1b]0;x\x1b[?25l", "\x1b[?25h" },
	{ "\x1bP[?1049h\x1b\\\x1b[?2004h", "\x1b[?2004l" },
	{ "\x1b_G[?25l\x1b\\", "" },
	/* given up in the middle */
	{ "\x1b[?1049\x18h", "" },
	{ "\x1b[?1049\x1b[?25l", "\x1b[?25h" },
	{ "\x1b[?104\n9h", "\x1b[?1049l" },
	{ "\x1b[?2004h\x1b[?10", "\x18\x1b[?2004l" },
	{ "\x1b[?2004h\x1b", "\x18\x1b[?2004l" },
	{ "\x1b[?2004h\x1b]8;;x", "\x1b\\\x1b[?2004l" },
	{ "\x1b[?10", "" },
	/* absurd */
	{ "\x1b[?99999999999999999999h", "" },
	{ "\x1b[?;;;;2004h", "\x1b[?2004l" },
	{ "\x1b[?1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;"
	  "2004h",
	  "\x1b[?9l\x1b[?1l" },
	{ "\x1b[?2004$p\x1b[?25$p", "" },
};

static void feed_in_chunks(Modes *modes, const char *output, size_t chunk)
{
	size_t n = strlen(output);

	for (size_t i = 0; i < n; i += chunk)
		modes_feed(modes, output + i, MIN_OF(chunk, n - i));
}

static void undo_is_exact(void **state)
{
	char text[MODES_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(CASES); i++) {
		for (size_t chunk = 1; chunk <= strlen(CASES[i].output) + 1; chunk++) {
			Modes modes = MODES_INIT;
			size_t n;

			feed_in_chunks(&modes, CASES[i].output, chunk);
			n = modes_undo(&modes, text);
			if (n != strlen(CASES[i].undo) || memcmp(text, CASES[i].undo, n) != 0)
				fail_msg("case %zu in chunks of %zu: '%.*s'", i, chunk, (int)n, text);
		}
	}
}

/* A terminal that gets output, undo and redo is where it was after output. */
static void redo_is_the_inverse(void **state)
{
	char undo[MODES_TEXT_MAX], redo[MODES_TEXT_MAX], again[MODES_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(CASES); i++) {
		Modes modes = MODES_INIT, replayed = MODES_INIT;
		size_t n, n_again;

		modes_feed(&modes, CASES[i].output, strlen(CASES[i].output));
		n = modes_redo(&modes, redo);
		modes_feed(&replayed, redo, n);
		modes.state = MODES_GROUND;
		n = modes_undo(&modes, undo);
		n_again = modes_undo(&replayed, again);
		assert_int_equal(n, n_again);
		assert_memory_equal(undo, again, n);

		/* And the undo leaves nothing to undo. */
		modes_feed(&replayed, again, n_again);
		assert_int_equal(modes_undo(&replayed, again), 0);
	}
}

static void anything_is_survived(void **state)
{
	Modes modes = MODES_INIT;
	char text[MODES_TEXT_MAX];
	uint32_t seed = 12345;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		static const char alphabet[] = "\x1b\x1b[[?>=<;:0123456789hlumnpc]P_\\\a\x18!$ x";
		char bytes[32];

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
		}
		modes_feed(&modes, bytes, sizeof(bytes));
		assert_true(modes_undo(&modes, text) < MODES_TEXT_MAX);
		assert_true(modes_redo(&modes, text) < MODES_TEXT_MAX);
	}
}

/* The longest undo and redo that there can be fit their buffer. */
static void everything_fits(void **state)
{
	Modes modes = MODES_INIT, replayed = MODES_INIT;
	char text[MODES_TEXT_MAX];
	size_t n;

	(void)state;
	modes = (Modes){ .changed = UINT64_MAX, .alternate = 1049, .keypad = true, .other_keys = 99999 };
	for (size_t i = 0; i < 2; i++) {
		modes.keyboards[i].depth = MODES_KEYBOARD_DEPTH_MAX;
		modes.keyboards[i].base = 99999;
		for (size_t j = 0; j < MODES_KEYBOARD_DEPTH_MAX; j++)
			modes.keyboards[i].flags[j] = 99999;
	}
	n = modes_redo(&modes, text);
	modes_feed(&replayed, text, n);
	/* The last one written is the cursor: it would be cut first. */
	assert_memory_equal(text + n - 6, "\x1b[?25l", 6);
	n = modes_undo(&modes, text);
	assert_memory_equal(text + n - 7, "\x1b[=0;1u", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undo_is_exact),
		cmocka_unit_test(redo_is_the_inverse),
		cmocka_unit_test(anything_is_survived),
		cmocka_unit_test(everything_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
