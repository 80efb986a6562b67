/* SPDX-License-Identifier: MIT */
#include "service/daemon/widening.h"

int widening_words(char *const *widenings, char **ret)
{
	_cleanup_free_ char *words = NULL;
	size_t size = 0;

	for (size_t i = 0; widenings && widenings[i]; i++) {
		size += strlen(widenings[i]) + 2;
		if (size > WIDENING_WORDS_MAX)
			return -E2BIG;
	}
	for (size_t i = 0; widenings && widenings[i]; i++) {
		_cleanup_free_ char *before = TAKE_PTR(words);

		if (asprintf(&words, "%s%s%s", before ? before : "", before ? "; " : "", widenings[i]) < 0) {
			words = NULL;
			return -ENOMEM;
		}
	}
	*ret = TAKE_PTR(words);
	return 0;
}
