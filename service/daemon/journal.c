/* SPDX-License-Identifier: MIT */
#include "service/daemon/journal.h"

#include <ctype.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "dbus/names.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define PRIORITY_INFO 6 /* syslog(3) */
#define FIELD_PREFIX "CLAUDE_SANDBOX_"

static const char *const message_ids[AUDIT_KIND_MAX] = {
	[AUDIT_LAUNCH] = CS_MESSAGE_LAUNCH,   [AUDIT_POSTURE] = CS_MESSAGE_POSTURE,
	[AUDIT_REFUSED] = CS_MESSAGE_REFUSED, [AUDIT_STOP] = CS_MESSAGE_STOP,
	[AUDIT_ADOPTED] = CS_MESSAGE_ADOPTED, [AUDIT_ALLOW_IP] = CS_MESSAGE_ALLOW_IP,
	[AUDIT_DENIED] = CS_MESSAGE_DENIED,   [AUDIT_EXIT] = CS_MESSAGE_EXIT,
};

/* systemd.journal-fields(7): capital letters, digits and underscores. */
static void put_field(FILE *f, const char *name, const char *value)
{
	fputs(FIELD_PREFIX, f);
	for (; *name; name++)
		putc_unlocked(toupper((unsigned char)*name), f);
	fprintf(f, "=%s\n", value);
}

/* No value holds a line break: wire_text() has been over all of them. */
static char *make_datagram(const AuditEvent *event, const char *message, size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	FILE *f = open_memstream(&text, ret_size);
	bool failed;

	if (!f)
		return NULL;
	fprintf(f, "MESSAGE=%s\nMESSAGE_ID=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=claude-sandboxd\n", message,
		message_ids[event->kind], PRIORITY_INFO);
	fprintf(f, FIELD_PREFIX "UID=%u\n", event->uid);
	put_field(f, "event", audit_kind_name(event->kind));
	if (event->session[0])
		put_field(f, "session", event->session);
	for (size_t i = 0; i < event->n_details; i++)
		put_field(f, event->details[i].name, event->details[i].value);
	failed = ferror(f) != 0;
	if (fclose(f) != 0 || failed)
		return NULL;
	return TAKE_PTR(text);
}

int journal_send(const AuditEvent *event, const char *message)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	if (fd < 0)
		return -errno;
	text = make_datagram(event, message, &size);
	if (!text)
		return -ENOMEM;
	return sendto(fd, text, size, MSG_NOSIGNAL, (const struct sockaddr *)&address, sizeof(address)) < 0
		       ? -errno
		       : 0;
}
