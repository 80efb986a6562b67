/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/plan/request.h"
#include "tests/fuzz/fuzz.h"

/* What decodes must encode again, to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(session_request_done) SessionRequest request = { 0 };
	_cleanup_free_ uint8_t *again = NULL;
	size_t again_size = 0;

	if (session_request_decode(data, size, &request) < 0)
		return 0;
	assert(session_request_encode(&request, &again, &again_size) == 0);
	assert(again_size == size && memcmp(again, data, size) == 0);
	return 0;
}
