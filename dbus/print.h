/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the command shows. One table gives both forms, lines for people and JSON for programs, so that they
 * cannot disagree. Every cell is a stranger's bytes: an agent names its own directories, and what it puts
 * into a name must not reach the terminal as a command.
 */

#include "dbus/base.h"

/* How to write to one stream. */
typedef struct PrintStyle {
	bool colour;
	bool utf8;      /* the reader takes UTF-8; without it only ASCII is sent */
	unsigned width; /* cells of a line, 0 without a limit */
} PrintStyle;

typedef enum PrintKind {
	PRINT_TEXT,    /* bytes */
	PRINT_ESCAPED, /* what the service has escaped (wire_escape()): a backslash stays */
	PRINT_STATE,   /* a session's State, coloured by meaning */
	PRINT_REACH,   /* a mode or a verdict, likewise */
	PRINT_RESULT,  /* of a check, likewise */
	PRINT_FLAG,    /* "true" or "false": a boolean in JSON */
	PRINT_NUMBER,  /* decimal digits: a number in JSON, to the right in lines */
	PRINT_KIND_MAX,
} PrintKind;

typedef struct PrintColumn {
	const char *title; /* heading in lines; NULL: not there */
	const char *key;   /* name in JSON; NULL: not there */
	PrintKind kind;
	bool clip; /* may be cut to fit the terminal */
} PrintColumn;

typedef struct PrintTable {
	const PrintColumn *columns;
	size_t n_columns, n_rows;
	const char *const *cells; /* row-major; bytes; NULL is null in JSON and nothing in lines */
} PrintTable;

/*
 * The style for stream as the environment and the terminal have it. Colours only on a terminal that TERM does
 * not call "dumb", and not when NO_COLOR is set and not empty (no-color.org). UTF-8 as LC_ALL, LC_CTYPE or
 * LANG say, in that order (locale(7)).
 */
PrintStyle print_style(FILE *stream);

/*
 * Lines: headings, then the rows, columns aligned and two spaces apart, no space at the end of a line. Where
 * the style has a width, columns that may be cut give way, with "..." where they were. An empty table is the
 * sentence `empty`. Return: 0, -ENOMEM, or the error of the stream.
 */
int print_table(FILE *stream, const PrintTable *table, const PrintStyle *style, const char *empty);

/* Its rows without headings, for a table that grows. Columns are at least as wide as their titles. */
int print_rows(FILE *stream, const PrintTable *table, const PrintStyle *style);

/* Lines: a title and its cell, of row 0; a column without a cell is left out. Return as print_table(). */
int print_fields(FILE *stream, const PrintTable *table, const PrintStyle *style);

/* JSON: an array with one object for each row, or only the object of row 0. Return as print_table(). */
int print_json(FILE *stream, const PrintTable *table, const PrintStyle *style);
int print_json_object(FILE *stream, const PrintTable *table, const PrintStyle *style);
/* The object of row 0 in one line, for what grows. */
int print_json_line(FILE *stream, const PrintTable *table, const PrintStyle *style);

/* An array below a key: of objects, or of texts where the table has a single column without a key. */
typedef struct PrintPart {
	const char *key;
	const PrintTable *table; /* NULL: null, for what is not known */
} PrintPart;

/* JSON: the object of row 0, with the parts behind its own keys. */
int print_json_document(FILE *stream, const PrintTable *table, const PrintPart *parts, size_t n_parts,
			const PrintStyle *style);

/* Flush. Return: 0 or the error of the stream. */
int print_result(FILE *stream);

/* A duration for people: "42s", "5m", "3h 07m", "2d 04h". Return: a string to be freed, or NULL without
 * memory. */
char *print_duration(uint64_t usec);

/*
 * A time for people, since 1970, in the time zone of the process: "2026-01-31T10:00:00+01:00", and
 * "2026-01-31T09:00:00Z" in UTC. Return: a string to be freed, "?" for no time of a calendar, or NULL without memory.
 */
char *print_time(uint64_t usec);
/* From now on the time zone is UTC. */
void print_utc(void);

/* "claude-sandbox: SENTENCE" on one line, escaped, line breaks shown as spaces. sentence may be NULL: no
 * memory. */
void print_complaint(FILE *stream, const char *sentence);
/* As another program of ours: "PROGRAM: SENTENCE". */
void print_complaint_of(FILE *stream, const char *program, const char *sentence);
