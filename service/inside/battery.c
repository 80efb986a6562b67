/* SPDX-License-Identifier: MIT */
#include "service/inside/battery.h"

#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "service/inside/measure.h"

/* Whoever reads the rows does nothing else: it takes a moment at most. */
#define SEND_MSEC 30000
#define FINDINGS_TOLD 6u
#define WHAT_MAX 4200u /* a path, and some words */

typedef struct Findings {
	char *text;
	size_t size; /* of text */
	size_t n;
} Findings;

struct Battery {
	const Expectations *expectations;
	int rows_fd;
	int failed, error;
	unsigned leaked;
	Findings failures, notes, passes; /* of the check that runs */
};

Battery *battery_new(const Expectations *expectations, int rows_fd)
{
	Battery *b = calloc(1, sizeof(*b));

	if (b)
		*b = (Battery){ .expectations = expectations, .rows_fd = rows_fd };
	return b;
}

static void findings_clear(Findings *findings)
{
	free(findings->text);
	*findings = (Findings){ 0 };
}

Battery *battery_free(Battery *b)
{
	if (b) {
		findings_clear(&b->failures);
		findings_clear(&b->notes);
		findings_clear(&b->passes);
	}
	free(b);
	return NULL;
}

const Expectations *battery_expectations(const Battery *b)
{
	return b->expectations;
}

int battery_failed(const Battery *b)
{
	return b->error < 0 ? b->error : b->failed;
}

void battery_set_leaked(Battery *b, unsigned n)
{
	b->leaked = n;
}

unsigned battery_leaked(const Battery *b)
{
	return b->leaked;
}

size_t battery_failures(const Battery *b)
{
	return b->failures.n;
}

/* ---- what a check finds ---- */

/* The first few are told in full, of the others their number. */
static void findings_add(Findings *findings, const char *format, va_list arguments)
{
	_cleanup_free_ char *finding = NULL;
	char *grown;
	size_t n;

	if (findings->n++ >= FINDINGS_TOLD)
		return;
	if (vasprintf(&finding, format, arguments) < 0) {
		finding = NULL;
		return;
	}
	n = strlen(finding);
	grown = realloc(findings->text, findings->size + n + 3);
	if (!grown)
		return;
	findings->text = grown;
	findings->size +=
		(size_t)snprintf(grown + findings->size, n + 3, "%s%s", findings->size ? "; " : "", finding);
}

void battery_fail(Battery *b, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	findings_add(&b->failures, format, arguments);
	va_end(arguments);
}

void battery_note(Battery *b, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	findings_add(&b->notes, format, arguments);
	va_end(arguments);
}

void battery_pass(Battery *b, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	findings_add(&b->passes, format, arguments);
	va_end(arguments);
}

char *battery_path(Battery *b, const char *directory, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", directory, name) >= 0)
		return path;
	battery_fail(b, "no memory");
	return NULL;
}

void battery_starved(Battery *b, int error, const char *format, ...)
{
	char what[WHAT_MAX];
	va_list arguments;

	error = error < 0 ? -error : error;
	if (!measure_is_starved(error))
		return;
	va_start(arguments, format);
	(void)vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	battery_fail(b, "%s could not be tried: %s", what, strerror(error));
}

/* ---- rows ---- */

static void row_send(Battery *b, const Row *row)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct pollfd room = { .fd = b->rows_fd, .events = POLLOUT };
	size_t size = 0;
	ssize_t n;
	int r;

	r = row_encode(row, &data, &size);
	while (r == 0) {
		n = send(b->rows_fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);
		if (n == (ssize_t)size)
			return;
		r = n < 0 ? -errno : -EMSGSIZE;
		if ((r == -EAGAIN || r == -EINTR) && poll(&room, 1, SEND_MSEC) > 0)
			r = 0;
	}
	b->error = r;
}

static void row_print(const Row *row)
{
	(void)printf("%-4s %s  %s%s", row_status_to_string(row->status, false), row->id, row->title,
		     *row->detail ? ": " : "");
	for (const char *p = row->detail; *p; p++)
		(void)putchar((unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p);
	(void)putchar('\n');
	(void)fflush(stdout);
}

static void row_emit(Battery *b, const char *id, RowStatus status, const char *title, const char *detail)
{
	_cleanup_(row_done) Row row = { 0 };
	int r;

	if (status == ROW_FAIL)
		b->failed++;
	r = row_make(id, status, title, detail, NULL, &row);
	if (r < 0)
		b->error = r;
	else if (b->rows_fd >= 0)
		row_send(b, &row);
	else
		row_print(&row);
}

void battery_row(Battery *b, const char *id, RowStatus status, const char *title, const char *format, ...)
{
	_cleanup_free_ char *detail = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&detail, format, arguments) < 0)
		detail = NULL;
	va_end(arguments);
	row_emit(b, id, status, title, detail ?: "");
}

static char *findings_text(const Findings *findings)
{
	char *text = NULL;

	if (findings->n <= FINDINGS_TOLD)
		return strdup(findings->text ?: "");
	if (asprintf(&text, "%s; and %zu more", findings->text ?: "", findings->n - FINDINGS_TOLD) < 0)
		return NULL;
	return text;
}

/* What fails is told alone; a note is told before what else was seen. */
static void check_judge(Battery *b, const Check *check)
{
	_cleanup_free_ char *failures = findings_text(&b->failures), *notes = findings_text(&b->notes),
			    *passes = findings_text(&b->passes);
	RowStatus status = ROW_FAIL;

	if (b->failures.n > 0)
		battery_row(b, check->id, ROW_FAIL, check->title, "%s", failures ?: "no memory");
	else if (b->notes.n == 0 && b->passes.n == 0)
		battery_row(b, check->id, ROW_FAIL, check->title, "the check came to no verdict");
	else {
		status = b->notes.n > 0 ? ROW_NOTE : ROW_PASS;
		battery_row(b, check->id, status, check->title, "%s%s%s", notes ?: "",
			    b->notes.n > 0 && b->passes.n > 0 ? "; " : "", passes ?: "");
	}
}

void battery_run(Battery *b, const Check *checks, size_t n)
{
	for (size_t i = 0; i < n && b->error == 0; i++) {
		findings_clear(&b->failures);
		findings_clear(&b->notes);
		findings_clear(&b->passes);
		checks[i].run(b);
		check_judge(b, &checks[i]);
	}
}
