/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes as the screen has them: the one file that escapes, counts columns and cuts. Bytes have no promised
 * encoding: paths, arguments and what sessions say are a stranger's. What comes out holds only characters
 * that show and leave the line as it is, and takes no more columns than it was given. Pure: no curses; the
 * locale's LC_CTYPE is to be set, because the C library's widths, by which curses moves, have to agree.
 */

#include "dbus/base.h"

typedef enum FormatFlags {
	FORMAT_UTF8 = 1 << 0,       /* the terminal takes UTF-8; else only ASCII comes out */
	FORMAT_ESCAPED = 1 << 1,    /* a backslash stays: somebody has escaped what needed it */
	FORMAT_SENTENCE = 1 << 2,   /* likewise, and line breaks and tabs are spaces (see text_sentence()) */
	FORMAT_RIGHT = 1 << 3,      /* to the right of its columns */
	FORMAT_PAD = 1 << 4,        /* spaces fill the columns */
	FORMAT_CUT_MIDDLE = 1 << 5, /* what is too long loses its middle: the end of a path says most */
} FormatFlags;

/*
 * One line of at most width columns (with FORMAT_PAD or FORMAT_RIGHT exactly that many). A character that
 * does not show, and each byte that is not UTF-8, is written \xNN; so are a combining mark that has no
 * character before it or is the fourth on one, and characters of disputed width. What was cut is marked with
 * one column: U+2026, without UTF-8 '~'. Return: a string to be freed, or NULL without memory.
 */
char *format_cell(const char *bytes, size_t width, FormatFlags flags);

/* All of it, however long. Return likewise. */
char *format_line(const char *bytes, FormatFlags flags);

/* Columns that format_line() takes, counted no further than limit: for the width of a column of a table. */
size_t format_width(const char *bytes, size_t limit, FormatFlags flags);

/* What is left of a line made by this file without its first columns; half of a wide character is a space. */
char *format_skip(const char *line, size_t columns);

/*
 * Paragraphs, '\n' between them, as lines of at most width (> 0) columns, broken behind spaces where there
 * are some. All lines of a paragraph but its first begin with indent spaces. A stranger's bytes in it are to
 * be escaped before, or their line breaks would make paragraphs (FORMAT_ESCAPED then). Return: a list to be
 * freed with format_lines_free(), NULL-terminated, or NULL without memory.
 */
char **format_wrap(const char *text, size_t width, size_t indent, FormatFlags flags);
char **format_lines_free(char **lines);
static inline void format_lines_freep(char ***lines)
{
	*lines = format_lines_free(*lines);
}

/*
 * Where needle stands in a line made by this file, letters of ASCII taken without their case: what is
 * searched is what is seen. needle is made by format_line(), not empty. Return: true with the bytes and
 * columns of the first place at or behind from (in bytes).
 */
typedef struct FormatPlace {
	size_t at, size;        /* bytes */
	size_t column, columns; /* on the screen */
} FormatPlace;
bool format_find(const char *line, const char *needle, size_t from, FormatPlace *ret);

/* Is needle (as above) in what format_line() makes of bytes? Fast where nothing has to be escaped. */
bool format_holds(const char *bytes, const char *needle, FormatFlags flags);

/* "42s", "5m", "3h 07m", "2d 04h". Return: to be freed; NULL without memory. */
char *format_age(uint64_t usec);
/* "0" to "9999", then "12k", "3.4M": at most 4 columns. Return likewise. */
char *format_count(uint64_t count);
/* The time of today, with the date for another day, in the time zone of the process: "10:00:00"; in UTC "09:00:00Z". */
char *format_clock(uint64_t usec, uint64_t now_usec);
