/* SPDX-License-Identifier: MIT */
#pragma once

/* A model with two sessions, A (open) and B, and one view of it. */

#include "tui/view.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"
#define NOW ((uint64_t)1769850000 * USEC_PER_SEC) /* 2026-01-31T09:00:00Z */

typedef struct Fixture {
	Model *model;
	ViewContext context;
	const View *view;
} Fixture;

void fixture_take(Fixture *f, const char *id, ModelPart part, size_t n_columns, const char *const *cells);
void fixture_use(Fixture *f, const View *view);
void fixture_begin(Fixture *f, const View *view);
void fixture_end(Fixture *f);
/* Each row's cells with '|' between them; columns that are not on the screen left out. */
void rows_expect(Fixture *f, const char *expected);
void details_expect(Fixture *f, size_t row, const char *expected);
/* There are some, without an escape code. */
void details_of_every_row(Fixture *f);
/* NULL: there is none. */
void headline_expect(Fixture *f, const char *expected);
/* *ret, which may be a former one, is what the command hands back. */
void fixture_act(Fixture *f, Command command, const char *key, Effect *ret);
/* As the application goes on after a line was typed. */
void fixture_type(Fixture *f, Effect *effect, const char *typed);
