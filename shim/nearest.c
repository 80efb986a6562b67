/* SPDX-License-Identifier: MIT */
#include "shim/nearest.h"

#define WORD_MOST 32u
#define STEPS_MOST 2u

static unsigned least(unsigned a, unsigned b)
{
	return MIN_OF(a, b);
}

/* The optimal string alignment distance (Damerau; Levenshtein with neighbours swapped); both words are short.
 */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned rows[3][WORD_MOST + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2], *spare;

	for (unsigned j = 0; j <= n_b; j++)
		last[j] = j;
	for (unsigned i = 1; i <= n_a; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= n_b; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		spare = before, before = last, last = now, now = spare;
	}
	return last[n_b];
}

/* Return: the only one that word begins; NULL for none or several. */
static const char *find_begun(const char *word, const char *const *names)
{
	const char *found = NULL;

	for (; *names; names++) {
		if (!starts_with(*names, word))
			continue;
		if (found)
			return NULL;
		found = *names;
	}
	return found;
}

const char *nearest_name(const char *word, const char *const *names)
{
	size_t n = strlen(word);
	unsigned best = STEPS_MOST + 1;
	const char *found;

	if (n == 0 || n > WORD_MOST)
		return NULL;
	found = n > 1 ? find_begun(word, names) : NULL;
	if (found)
		return found;
	for (; *names; names++) {
		size_t length = strlen(*names);
		unsigned steps = length <= WORD_MOST ? distance(word, n, *names, length) : best;

		if (steps < best && 2 * steps < n) {
			best = steps;
			found = *names;
		} else if (steps == best) {
			found = NULL;
		}
	}
	return found;
}
