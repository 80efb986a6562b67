/* SPDX-License-Identifier: MIT */
#include "shim/complain.h"

#include <sys/uio.h>

#include "dbus/wire.h"

#define SENTENCE_MAX 4096

void complain(const char *sentence)
{
	_cleanup_free_ char *text = wire_text(sentence, SENTENCE_MAX);
	const char *parts[] = { "claude-sandbox: ", text ? text : "not enough memory", "\n" };
	struct iovec line[ELEMENTSOF(parts)];

	/* In one piece, so that nobody else's line gets into it. */
	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		line[i] = (struct iovec){ .iov_base = (char *)parts[i], .iov_len = strlen(parts[i]) };
	(void)!writev(STDERR_FILENO, line, ELEMENTSOF(line));
}
