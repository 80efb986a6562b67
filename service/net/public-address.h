/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/routes.h"

/*
 * An address that the table leaves to the default route, for probes: a documentation address where one is
 * free (RFC 5737), else the first unicast address that no other row covers. Return: 0 with *ret in host byte
 * order; -ENOENT when the rows leave none.
 */
int public_address_find(const RouteTable *routes, uint32_t *ret);

/* Does the row cover address? */
bool route_row_covers(const RouteRow *row, uint32_t address);
/* The first and the last address of a row. */
uint32_t route_row_first(const RouteRow *row);
uint32_t route_row_last(const RouteRow *row);
