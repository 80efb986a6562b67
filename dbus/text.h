/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes as text: UTF-8 (RFC 3629), which characters a terminal shows as themselves, and how many cells they
 * take. Own tables instead of the C library's, whose locale files LOCPATH can choose.
 */

#include "dbus/base.h"

/*
 * The character at the start of bytes (size > 0). Return: its length, 1 to 4, with *ret_character set; 0 for
 * what is not UTF-8 (overlong forms, surrogates and values above 0x10ffff included).
 */
size_t text_decode(const char *bytes, size_t size, uint32_t *ret_character);

/* Does the character have a shape of its own and leave the line as it is? */
bool text_shows(uint32_t character) _pure_;

/* Cells of a character that shows: 0 for a combining mark, 2 for a wide one, else 1. */
unsigned text_cells(uint32_t character) _pure_;

/*
 * Text in which every character shows as itself: what is not UTF-8 and every character that does not show is
 * written as \xNN for each byte, a backslash as \\. Without utf8 everything but printable ASCII is.
 * Return: a string to be freed, or NULL without memory.
 */
char *text_escape(const char *bytes, bool utf8);

/*
 * As text_escape(), but characters that do not show stay: for a format with its own way to write them, which
 * needs valid UTF-8.
 */
char *text_repair(const char *bytes);
/* Likewise of what was escaped before: a backslash stays. */
char *text_repair_escaped(const char *bytes);

/*
 * A sentence on one line: line breaks and tabs become spaces, what does not show is escaped, a backslash
 * stays (who wrote the sentence may have escaped what it quotes). Return as text_escape().
 */
char *text_sentence(const char *bytes, bool utf8);

/*
 * How many bytes of text made by text_escape() fit into max_cells, and the cells that they take (ret_cells
 * may be NULL). No character is cut.
 */
size_t text_fit(const char *escaped, size_t max_cells, size_t *ret_cells);

/* Cells of all of it. */
size_t text_width(const char *escaped);
