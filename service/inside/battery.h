/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The battery: checks and probes in tables, each a small function that measures one thing, and the rows that
 * come of them. What a check found is gathered and becomes one row; a check that forgets to judge fails.
 */

#include "dbus/base.h"
#include "service/link/rows.h"
#include "service/plan/expectations.h"

typedef struct Battery Battery;

typedef struct Check {
	const char *id;    /* "01" to "22": never another meaning */
	const char *title; /* what stands when it passes */
	void (*run)(Battery *b);
} Check;

/*
 * What is expected; NULL for a person who starts the program in a place that nobody described: then only what
 * can be judged without is judged.
 */
const Expectations *battery_expectations(const Battery *b);

/*
 * The verdict of the check that runs. fail and note may be called several times, the worst one wins and all
 * are told as far as there is room; pass says what was seen, and holds unless something else was said.
 */
_printf_(2, 3) void battery_fail(Battery *b, const char *format, ...);
_printf_(2, 3) void battery_note(Battery *b, const char *format, ...);
_printf_(2, 3) void battery_pass(Battery *b, const char *format, ...);

/* Send a row at once, beside what the running check gathers. */
_printf_(5, 6) void battery_row(Battery *b, const char *id, RowStatus status, const char *title,
				const char *format, ...);

/* Descriptors that the process was started with and that it should not have had. */
void battery_set_leaked(Battery *b, unsigned n);
unsigned battery_leaked(const Battery *b);

/* "DIRECTORY/NAME". Return: to be freed; NULL without memory, which fails the check that runs. */
char *battery_path(Battery *b, const char *directory, const char *name);
/*
 * Could something not be tried for want of what an agent beside us can use up (measure_is_starved)? That
 * fails the check that runs. error: positive or negative errno, or no error at all.
 */
_printf_(3, 4) void battery_starved(Battery *b, int error, const char *format, ...);

/* How many findings the check that runs has. */
size_t battery_failures(const Battery *b);

/* Run n checks, a row for each. */
void battery_run(Battery *b, const Check *checks, size_t n);

/*
 * rows_fd: SOCK_SEQPACKET, a packet a row; FD_NONE: lines of text on standard output. expectations is
 * borrowed; NULL for none. Return: to be freed, or NULL without memory.
 */
Battery *battery_new(const Expectations *expectations, int rows_fd);
Battery *battery_free(Battery *b);
DEFINE_CLEANUP(Battery, battery_free)
/* Rows that failed; -EPIPE etc. once a row could not be sent. */
int battery_failed(const Battery *b);

/* The table of the checks; the probes run by probes_run(), probes.h. */
extern const Check checks_table[];
extern const size_t checks_count;
extern const Check doctor_table[]; /* what Doctor wants measured inside */
extern const size_t doctor_count;

/*
 * Do something in a child process, which may die, block, or be changed for good by what it does. function's
 * return value comes back, and what it wrote to text (size bytes with its NUL, always terminated). The child
 * is killed when it takes longer than timeout_msec, and what it leaves in its process group always.
 * Return: what function returned; -ETIME; -ECANCELED when somebody stopped it; -ECHILD when it died, with text saying
 * of what; -EAGAIN when there can be no child.
 */
#define ATTEMPT_MSEC 30000 /* for what is over at once, on a machine that is slow */
typedef int (*AttemptFunction)(void *userdata, char *text, size_t size);
int attempt_run(AttemptFunction function, void *userdata, int timeout_msec, char *text, size_t size);
