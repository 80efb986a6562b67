/* SPDX-License-Identifier: MIT */
#pragma once

/* What a piece of the screen means. tui/term gives each a look that the terminal can show. */

typedef enum Style {
	STYLE_PLAIN,
	STYLE_GOOD,    /* as it should be: running, passed, in force */
	STYLE_CAUTION, /* what an agent can change or reach; a note */
	STYLE_BAD,     /* failed, refused, missing */
	STYLE_FAINT,   /* what it cannot; of less weight */
	STYLE_ADDED,   /* of two things compared: only in the second, or not saved yet */
	STYLE_REMOVED, /* only in the first, or to be removed */

	/* of the screen itself */
	STYLE_TITLE,
	STYLE_TAB,
	STYLE_TAB_CURRENT,
	STYLE_HEADING,
	STYLE_HINT,
	STYLE_HINT_KEY,
	STYLE_MESSAGE,
	STYLE_BANNER, /* something is wrong and everything that is shown may be old */
	STYLE_DIALOG,
	STYLE_MAX,
} Style;

/* Or'ed to a style in a cell of the canvas. */
#define STYLE_SELECTED 0x40u
#define STYLE_MATCH 0x80u
