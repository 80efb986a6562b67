/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/session/state-json.h"
#include "service/session/state-merge.h"
#include "tests/fuzz/fuzz.h"

/* Input: up to three texts with 0xff bytes between: the agent's, the person's, the base. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	StateVersion versions[3] = { 0 };
	_cleanup_free_ char *text = NULL;
	const uint8_t *at = data, *end = data + size;
	bool conflict;
	size_t n;

	for (size_t i = 0; i < 3 && at < end; i++) {
		const uint8_t *mark = memchr(at, 0xff, (size_t)(end - at)) ?: end;

		if (state_json_check((const char *)at, (size_t)(mark - at)) == 0)
			versions[i] = (StateVersion){ (const char *)at, (size_t)(mark - at) };
		at = mark < end ? mark + 1 : end;
	}
	if (!versions[0].text && !versions[1].text)
		return 0;
	assert(state_merge(&versions[2], &versions[0], &versions[1], &text, &n, &conflict) == 0);
	/* What both have in common afterwards is what anybody can read. */
	assert(state_json_check(text, n) == 0);
	if (versions[0].text && versions[1].text) {
		_cleanup_free_ char *again = NULL;
		const StateVersion result = { text, n };
		size_t n_again;
		bool second;

		/* The next step has nothing to decide any more. */
		assert(state_merge(&versions[0], &versions[0], &result, &again, &n_again, &second) == 0);
		assert(!second && n_again == n && memcmp(again, text, n) == 0);
	}
	return 0;
}
