/* SPDX-License-Identifier: MIT */
#include "tui/looks.h"

#include <assert.h>

/* ECMA-48, 8.3.117 */
enum { BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE };
#define NONE (-1)

/* Legible on light and dark: nothing is told by colour alone that is not in words too. */
static const Look many[STYLE_MAX] = {
	[STYLE_PLAIN] = { NONE, NONE },
	[STYLE_GOOD] = { 71, NONE },
	[STYLE_CAUTION] = { 172, NONE },
	[STYLE_BAD] = { 167, NONE, .bold = true },
	[STYLE_FAINT] = { 245, NONE },
	[STYLE_ADDED] = { 71, NONE, .bold = true },
	[STYLE_REMOVED] = { 167, NONE },
	[STYLE_TITLE] = { NONE, NONE, .bold = true },
	[STYLE_TAB] = { 252, 238 },
	[STYLE_TAB_CURRENT] = { 231, 25, .bold = true },
	[STYLE_HEADING] = { NONE, NONE, .bold = true },
	[STYLE_HINT] = { 252, 238 },
	[STYLE_HINT_KEY] = { 231, 238, .bold = true },
	[STYLE_MESSAGE] = { 31, NONE, .bold = true },
	[STYLE_BANNER] = { 231, 124, .bold = true },
	[STYLE_DIALOG] = { NONE, NONE },
};

static const Look eight[STYLE_MAX] = {
	[STYLE_PLAIN] = { NONE, NONE },
	[STYLE_GOOD] = { GREEN, NONE },
	[STYLE_CAUTION] = { YELLOW, NONE },
	[STYLE_BAD] = { RED, NONE, .bold = true },
	[STYLE_FAINT] = { NONE, NONE, .dim = true },
	[STYLE_ADDED] = { GREEN, NONE, .bold = true },
	[STYLE_REMOVED] = { RED, NONE },
	[STYLE_TITLE] = { NONE, NONE, .bold = true },
	[STYLE_TAB] = { NONE, NONE, .reverse = true },
	[STYLE_TAB_CURRENT] = { WHITE, BLUE, .bold = true },
	[STYLE_HEADING] = { NONE, NONE, .bold = true },
	[STYLE_HINT] = { NONE, NONE },
	[STYLE_HINT_KEY] = { CYAN, NONE, .bold = true },
	[STYLE_MESSAGE] = { CYAN, NONE, .bold = true },
	[STYLE_BANNER] = { WHITE, RED, .bold = true },
	[STYLE_DIALOG] = { NONE, NONE },
};

static const Look none[STYLE_MAX] = {
	[STYLE_PLAIN] = { NONE, NONE },
	[STYLE_GOOD] = { NONE, NONE },
	[STYLE_CAUTION] = { NONE, NONE, .bold = true },
	[STYLE_BAD] = { NONE, NONE, .bold = true, .underline = true },
	[STYLE_FAINT] = { NONE, NONE, .dim = true },
	[STYLE_ADDED] = { NONE, NONE, .bold = true },
	[STYLE_REMOVED] = { NONE, NONE, .dim = true },
	[STYLE_TITLE] = { NONE, NONE, .bold = true },
	[STYLE_TAB] = { NONE, NONE, .reverse = true },
	[STYLE_TAB_CURRENT] = { NONE, NONE, .bold = true },
	[STYLE_HEADING] = { NONE, NONE, .bold = true, .underline = true },
	[STYLE_HINT] = { NONE, NONE },
	[STYLE_HINT_KEY] = { NONE, NONE, .bold = true },
	[STYLE_MESSAGE] = { NONE, NONE, .bold = true },
	[STYLE_BANNER] = { NONE, NONE, .bold = true, .reverse = true },
	[STYLE_DIALOG] = { NONE, NONE },
};

Look looks_of(Style style, int colours)
{
	assert(style < STYLE_MAX);
	if (colours >= 256)
		return many[style];
	return colours >= 8 ? eight[style] : none[style];
}
