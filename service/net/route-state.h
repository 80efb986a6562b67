/* SPDX-License-Identifier: MIT */
#pragma once

/* The routes that decide about packets, each with how the kernel holds it now. */

#include "service/net/denial.h"

typedef struct RouteShown {
	uint32_t address; /* host order */
	uint8_t length;
	RouteVerdict verdict;
	const char *device; /* "" for a denial, which has none */
	const char *reason; /* borrowed from the table of routes, or a constant */
	const char *state;  /* "in force", "left out", "missing", "different", "unknown" */
} RouteShown;

/*
 * First what is the namespace's own (its loopback, its address, the far end's, which it holds itself), then
 * the rows of denial->routes in their order. A dump that fails makes every state "unknown". Return: 0 with
 * *ret, to be freed with free(); -ENOMEM.
 */
int routes_show(const Denial *denial, RouteShown **ret, size_t *ret_n);
