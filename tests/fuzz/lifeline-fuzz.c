/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/link/lifeline.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(lifeline_message_done) LifelineMessage m = { .kind = LIFELINE_KIND_MAX };
	_cleanup_free_ uint8_t *again = NULL;
	size_t again_size;

	if (lifeline_decode(data, size, &m) < 0)
		return 0;
	assert(lifeline_encode(&m, &again, &again_size) == 0);
	assert(again_size == size && memcmp(again, data, size) == 0);
	return 0;
}
