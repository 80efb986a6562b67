/* SPDX-License-Identifier: MIT */
#pragma once

/* Words that several views say. Pure. What goes into a sentence here is escaped here. */

#include "tui/view.h"

/* *ret is replaced by a formatted text. Return: 0 or -ENOMEM. */
_printf_(2, 3) int words_set(char **ret, const char *format, ...);
/* One line of the message area. Return: 0 or -ENOMEM. */
_printf_(2, 3) int words_tell(Effect *ret, const char *format, ...);

/* A line is typed: below title, beginning with text, taken by accept. Return likewise. */
int words_prompt(Effect *ret, const char *title, const char *text,
		 int (*accept)(const ViewContext *context, const char *typed, Effect *ret));
/* Said where a session is needed. */
#define WORDS_NO_SESSION "no session is open; choose one in the view Sessions, with Enter"

/* Bytes for a sentence: escaped, cut after a line. Return: to be freed; NULL without memory. */
char *words_bytes(const ViewContext *context, const char *bytes);
/* "the claude session IDENTITY of alice in /home/alice/project". Return: 0 or -ENOMEM. */
int words_session(const ViewContext *context, const ModelSession *session, char **ret);
/* "claude abcdef": where the line has much else to say. */
int words_session_brief(const ViewContext *context, const ModelSession *session, char **ret);

/*
 * The details of a row: words_begin(), lines, words_end(). Every line is "NAME: text". A text that is "" is
 * left out. What goes wrong is said by words_end() alone.
 */
typedef struct Words {
	FILE *stream;
	char *text;
	size_t size;
	const ViewContext *context;
} Words;

Words *words_begin(Words *words, const ViewContext *context);
/* A path: bytes; a text: a sentence of the service's, or ours. */
void words_path(Words *words, const char *name, const char *bytes);
void words_text(Words *words, const char *name, const char *text);
/* With what it means behind it: "rw (can be read and changed)". */
void words_meaning(Words *words, const char *name, const char *text, const char *meaning);
/* Return: 0 with *ret (to be freed), or -ENOMEM. Without a row (found is false) *ret is NULL. */
int words_end(Words *words, bool found, char **ret);

/* Why a table has no row: nobody asked, it is under way, it failed. Return: borrowed; empty for none. */
const char *words_nothing(const ViewContext *context, const ModelTable *table, const char *empty);

const char *words_cell(const ClientTable *table, size_t row, size_t column);

/* A table to look something up in. Return: the text beside name, or NULL. */
typedef struct Meaning {
	const char *name, *text;
} Meaning;
const char *meaning_of(const Meaning *meanings, size_t n, const char *name);
