/* SPDX-License-Identifier: MIT */
#include "service/plan/config-values.h"

/*
 * The bytes of one well-formed UTF-8 character (RFC 3629: no overlong forms, no surrogates, nothing above
 * U+10FFFF), or 0. U+0080 to U+009F are control characters of terminals and count as malformed.
 */
static size_t character_length(const unsigned char *s)
{
	uint32_t code, smallest;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if ((s[0] & 0xe0) == 0xc0) {
		n = 2;
		code = s[0] & 0x1f;
		smallest = 0xa0;
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3;
		code = s[0] & 0x0f;
		smallest = 0x800;
	} else if ((s[0] & 0xf8) == 0xf0) {
		n = 4;
		code = s[0] & 0x07;
		smallest = 0x10000;
	} else {
		return 0;
	}

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < smallest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	/* Line and paragraph separators, and the marks that turn the direction of writing, would forge what
	 * is shown. */
	if ((code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	    (code >= 0x2066 && code <= 0x2069))
		return 0;
	return n;
}

char *config_display(const char *bytes)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)bytes;
	char *shown = malloc(strlen(bytes) * 4 + 1);
	size_t n = 0;

	if (!shown)
		return NULL;
	while (*s) {
		size_t length = *s < 0x20 || *s == 0x7f ? 0 : character_length(s);

		if (length > 0) {
			memcpy(shown + n, s, length);
			n += length;
			s += length;
		} else {
			shown[n++] = '\\';
			shown[n++] = 'x';
			shown[n++] = digits[*s >> 4];
			shown[n++] = digits[*s & 15];
			s++;
		}
	}
	shown[n] = '\0';
	return shown;
}
