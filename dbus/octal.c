/* SPDX-License-Identifier: MIT */
#include "dbus/octal.h"

static int is_octal(char digit, char most)
{
	return digit >= '0' && digit <= most;
}

void octal_unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; to++) {
		if (p[0] == '\\' && is_octal(p[1], '3') && is_octal(p[2], '7') && is_octal(p[3], '7')) {
			*to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
}
