/* SPDX-License-Identifier: MIT */
#include "service/session/memory-events.h"

#include <inttypes.h>

#include "dbus/names.h"

#define EVENTS_BYTES_MAX 1024u

uint64_t memory_events_killed(const char *text)
{
	for (const char *line = text; *line;) {
		const char *number = starts_with(line, "oom_kill ");

		if (number && *number >= '0' && *number <= '9')
			return strtoull(number, NULL, 10);
		line = strchrnul(line, '\n');
		line += *line == '\n';
	}
	return 0;
}

char *memory_events_sentence(int fd, uint64_t memory_max)
{
	char text[EVENTS_BYTES_MAX], *sentence;
	uint64_t killed;
	ssize_t n;

	n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return NULL;
	text[n] = '\0';
	killed = memory_events_killed(text);
	if (killed == 0)
		return NULL;
	if (memory_max > 0)
		n = asprintf(&sentence,
			     "the kernel killed %" PRIu64
			     " of this session's processes for want of memory: it may "
			     "have %" PRIu64 " MiB (memory-max in %s), or the machine had none left; an "
			     "administrator can raise it",
			     killed, memory_max >> 20, CS_CONFIG_PATH);
	else
		n = asprintf(&sentence,
			     "the kernel killed %" PRIu64
			     " of this session's processes for want of memory: the "
			     "machine, or the control group of its user, had none left; end other programs",
			     killed);
	return n < 0 ? NULL : sentence;
}
