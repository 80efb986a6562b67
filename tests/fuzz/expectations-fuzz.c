/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/link/rows.h"
#include "service/plan/expectations.h"
#include "tests/fuzz/fuzz.h"

/* A row, or what the battery expects: what decodes must encode again, to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(expectations_done) Expectations expectations = { 0 };
	_cleanup_(row_done) Row row = { 0 };
	size_t again_size = 0;

	if (row_decode(data, size, &row) == 0) {
		_cleanup_free_ uint8_t *again = NULL;

		assert(row_encode(&row, &again, &again_size) == 0);
		assert(again_size == size && memcmp(again, data, size) == 0);
	}
	if (expectations_decode(data, size, &expectations) == 0) {
		_cleanup_free_ uint8_t *again = NULL;

		assert(expectations_encode(&expectations, &again, &again_size) == 0);
		assert(again_size == size && memcmp(again, data, size) == 0);
	}
	return 0;
}
