/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/link/report.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(init_orders_done) InitOrders orders = { 0 };
	Report report;

	if (report_decode(data, size, &report) == 0) {
		uint8_t again[REPORT_SIZE];

		report_encode(&report, again);
		assert(size == REPORT_SIZE && memcmp(again, data, size) == 0);
	}
	if (init_orders_decode(data, size, &orders) == 0) {
		_cleanup_free_ uint8_t *again = NULL;
		size_t again_size;

		assert(init_orders_encode(&orders, &again, &again_size) == 0);
		assert(again_size == size && memcmp(again, data, size) == 0);
	}
	return 0;
}
