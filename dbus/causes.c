/* SPDX-License-Identifier: MIT */
#include "dbus/causes.h"

/* The last one: a cause often holds the words of another program. */
static const char *last_semicolon(const char *sentence)
{
	const char *found = NULL;

	for (const char *p = sentence; (p = strstr(p, "; ")); p++)
		found = p;
	return found;
}

int cause_split(const char *sentence, char **ret_cause, char **ret_fix)
{
	const char *end = last_semicolon(sentence), *fix = end ? end + 2 : "";
	_cleanup_free_ char *cause = NULL;
	size_t n = end ? (size_t)(end - sentence) : strlen(sentence), n_fix = strlen(fix);

	while (n > 0 && sentence[n - 1] == '.')
		n--;
	if (n_fix > 0 && fix[n_fix - 1] == '.')
		n_fix--;
	cause = strndup(sentence, n);
	*ret_fix = cause ? strndup(fix, n_fix) : NULL;
	if (!*ret_fix)
		return -ENOMEM;
	*ret_cause = TAKE_PTR(cause);
	return 0;
}
