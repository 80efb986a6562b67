/* SPDX-License-Identifier: MIT */
#include "service/daemon/audit-line.h"

#include <inttypes.h>
#include <stdarg.h>

#include "dbus/wire.h"
#include "service/daemon/record.h"

#define NAME_MAX_BYTES 32u

static const char *const kind_names[AUDIT_KIND_MAX] = {
	[AUDIT_LAUNCH] = "launch", [AUDIT_POSTURE] = "posture", [AUDIT_REFUSED] = "refused",
	[AUDIT_STOP] = "stop",     [AUDIT_ADOPTED] = "adopted", [AUDIT_ALLOW_IP] = "allow-ip",
	[AUDIT_DENIED] = "denied", [AUDIT_EXIT] = "exit",
};

void audit_event_done(AuditEvent *event)
{
	for (size_t i = 0; i < event->n_details; i++) {
		free(event->details[i].name);
		free(event->details[i].value);
	}
	*event = (AuditEvent){ 0 };
}

const char *audit_kind_name(AuditKind kind)
{
	return kind_names[kind];
}

/* Takes value. */
static int add(AuditEvent *event, const char *name, char *value)
{
	AuditDetail detail = { strdup(name), value };

	if (event->n_details == AUDIT_DETAILS_MAX) {
		free(detail.name);
		free(detail.value);
		return -E2BIG;
	}
	if (!detail.name || !detail.value) {
		free(detail.name);
		free(detail.value);
		return -ENOMEM;
	}
	event->details[event->n_details++] = detail;
	return 0;
}

int audit_event_add(AuditEvent *event, const char *name, const char *value)
{
	return value && *value ? add(event, name, wire_text(value, AUDIT_TEXT_MAX)) : 0;
}

int audit_event_add_bytes(AuditEvent *event, const char *name, const char *value)
{
	return value && *value ? add(event, name, wire_escape(value, AUDIT_TEXT_MAX)) : 0;
}

int audit_event_addf(AuditEvent *event, const char *name, const char *format, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vasprintf(&value, format, arguments);
	va_end(arguments);
	if (n < 0) {
		value = NULL;
		return -ENOMEM;
	}
	return audit_event_add(event, name, value);
}

const char *audit_event_get(const AuditEvent *event, const char *name)
{
	for (size_t i = 0; i < event->n_details; i++)
		if (streq(event->details[i].name, name))
			return event->details[i].value;
	return NULL;
}

/* What wire_text() leaves needs nothing else (RFC 8259, section 7). */
static void put_string(FILE *f, const char *text)
{
	putc_unlocked('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc_unlocked('\\', f);
		putc_unlocked(*text, f);
	}
	putc_unlocked('"', f);
}

char *audit_line_encode(const AuditEvent *event)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&line, &size);
	bool failed;

	if (!f)
		return NULL;
	fprintf(f, "{\"time\":%" PRIu64 ",\"event\":\"%s\",\"uid\":%u,\"session\":\"%s\"", event->usec,
		kind_names[event->kind], event->uid, event->session);
	for (size_t i = 0; i < event->n_details; i++) {
		fprintf(f, ",\"%s\":", event->details[i].name);
		put_string(f, event->details[i].value);
	}
	fputs("}\n", f);
	failed = ferror(f) != 0;
	if (fclose(f) != 0 || failed)
		return NULL;
	return TAKE_PTR(line);
}

/* What is left of the line. Sticky: after an error nothing more is taken. */
typedef struct Text {
	const char *at, *end;
	int error;
} Text;

static void take(Text *text, const char *literal)
{
	size_t n = strlen(literal);

	if (text->error || (size_t)(text->end - text->at) < n || memcmp(text->at, literal, n) != 0)
		text->error = text->error ?: -EBADMSG;
	else
		text->at += n;
}

static bool next_is(const Text *text, char c)
{
	return !text->error && text->at < text->end && *text->at == c;
}

static uint64_t take_number(Text *text, uint64_t max)
{
	const char *begin = text->at;
	uint64_t number = 0;

	while (!text->error && text->at < text->end && *text->at >= '0' && *text->at <= '9') {
		uint64_t digit = (uint64_t)(*text->at++ - '0');

		if (number > (max - digit) / 10)
			text->error = -EBADMSG;
		else
			number = number * 10 + digit;
	}
	if (text->at == begin)
		text->error = text->error ?: -EBADMSG;
	return number;
}

/* Return: to be freed; NULL after an error. */
static char *take_string(Text *text, size_t max)
{
	char *string, *to;
	const char *from;

	take(text, "\"");
	for (from = text->at; !text->error && from < text->end && *from != '"'; from++) {
		if (*from == '\\' && ++from == text->end)
			break;
		if ((unsigned char)*from < 0x20 || (size_t)(from - text->at) > 2 * max)
			text->error = -EBADMSG;
	}
	if (!text->error && from >= text->end)
		text->error = -EBADMSG;
	if (text->error)
		return NULL;
	to = string = malloc((size_t)(from - text->at) + 1);
	if (!string) {
		text->error = -ENOMEM;
		return NULL;
	}
	for (const char *c = text->at; c < from; c++) {
		if (*c == '\\')
			c++;
		*to++ = *c;
	}
	*to = '\0';
	text->at = from + 1;
	return string;
}

static void take_kind(Text *text, AuditEvent *event)
{
	_cleanup_free_ char *name = take_string(text, NAME_MAX_BYTES);

	for (int k = 0; name && k < AUDIT_KIND_MAX; k++)
		if (streq(name, kind_names[k])) {
			event->kind = (AuditKind)k;
			return;
		}
	text->error = text->error ?: -EBADMSG;
}

static void take_session(Text *text, AuditEvent *event)
{
	_cleanup_free_ char *id = take_string(text, CS_ID_LENGTH);

	if (!id)
		return;
	if (*id && !session_id_valid(id))
		text->error = -EBADMSG;
	else
		memcpy(event->session, id, strlen(id) + 1);
}

static void take_detail(Text *text, AuditEvent *event)
{
	_cleanup_free_ char *name = NULL, *value = NULL;
	int r;

	take(text, ",");
	name = take_string(text, NAME_MAX_BYTES);
	take(text, ":");
	value = take_string(text, AUDIT_TEXT_MAX);
	if (text->error)
		return;
	if (*name == '\0' || name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] != '\0') {
		text->error = -EBADMSG;
		return;
	}
	/* Escaped once, when it was written; but somebody may have put there what must not be shown. */
	r = audit_event_add(event, name, value);
	if (r < 0)
		text->error = r == -ENOMEM ? r : -EBADMSG;
}

int audit_line_decode(const char *line, size_t size, AuditEvent *ret)
{
	_cleanup_(audit_event_done) AuditEvent event = { 0 };
	Text text = { .at = line, .end = line + size };

	if (size > AUDIT_LINE_MAX || memchr(line, '\0', size))
		return -EBADMSG;
	take(&text, "{\"time\":");
	event.usec = take_number(&text, UINT64_MAX);
	take(&text, ",\"event\":");
	take_kind(&text, &event);
	take(&text, ",\"uid\":");
	event.uid = (uid_t)take_number(&text, UINT32_MAX);
	take(&text, ",\"session\":");
	take_session(&text, &event);
	while (next_is(&text, ','))
		take_detail(&text, &event);
	take(&text, "}");
	if (text.error)
		return text.error;
	if (text.at != text.end)
		return -EBADMSG;
	*ret = event;
	event = (AuditEvent){ 0 };
	return 0;
}
