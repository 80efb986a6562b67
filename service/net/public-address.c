/* SPDX-License-Identifier: MIT */
#include "service/net/public-address.h"

static uint32_t row_mask(const RouteRow *row)
{
	return row->length == 0 ? 0 : UINT32_MAX << (32 - MIN_OF(row->length, 32));
}

uint32_t route_row_first(const RouteRow *row)
{
	return row->address & row_mask(row);
}

uint32_t route_row_last(const RouteRow *row)
{
	return row->address | ~row_mask(row);
}

bool route_row_covers(const RouteRow *row, uint32_t address)
{
	return (address & row_mask(row)) == route_row_first(row);
}

static bool is_left_to_default(const RouteTable *routes, uint32_t address)
{
	for (size_t i = 0; i < routes->n_rows; i++)
		if (routes->rows[i].verdict != ROUTE_INTERNET && route_row_covers(&routes->rows[i], address))
			return false;
	return true;
}

int public_address_find(const RouteTable *routes, uint32_t *ret)
{
	static const uint32_t documentation[] = { 0xcb007105, 0xc6336405, 0xc0000205 };

	for (size_t i = 0; i < ELEMENTSOF(documentation); i++)
		if (is_left_to_default(routes, documentation[i])) {
			*ret = documentation[i];
			return 0;
		}
	for (uint32_t first = 1; first < 224; first++)
		for (uint32_t second = 0; second < 256; second += 17) {
			uint32_t address = first << 24 | second << 16 | 0x0101;

			if (first != 127 && is_left_to_default(routes, address)) {
				*ret = address;
				return 0;
			}
		}
	return -ENOENT;
}
