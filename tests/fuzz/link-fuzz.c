/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/link/link.h"
#include "tests/fuzz/fuzz.h"

/* What decodes must encode again (a table perhaps in pages), to the same message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(link_message_done) LinkMessage m = LINK_MESSAGE_INIT;
	_cleanup_free_ uint8_t *again = NULL;
	size_t again_size;

	if (link_decode(data, size, &m) < 0)
		return 0;
	/* What else another version says is not kept. */
	if (m.kind == LINK_HELLO && m.version != LINK_VERSION)
		return 0;
	assert(link_encode(&m, &again, &again_size, NULL) == 0);
	assert(again_size == size && memcmp(again, data, size) == 0);
	return 0;
}
