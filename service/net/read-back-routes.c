/* SPDX-License-Identifier: MIT */
#include "service/net/read-back.h"

#include "service/net/ledger-device.h"

/* One route that is to be there, and whether it was seen. */
typedef struct Meant {
	Route route;
	bool optional, seen;
} Meant;

static int compare_meant(const void *a, const void *b)
{
	return route_compare_key(&((const Meant *)a)->route, &((const Meant *)b)->route);
}

/* fib_add_ifaddr() of the kernel: what it derives from 127.0.0.1/8 and 192.0.0.2/32 on lo. */
static size_t meant_of_kernel(Meant *meant, uint32_t lo_index)
{
	static const struct {
		uint32_t destination, source;
		uint8_t length, type, scope;
		bool optional;
	} rows[] = {
		{ 0x7f000000, 0x7f000001, 8, RTN_LOCAL, RT_SCOPE_HOST, false },
		{ 0x7f000001, 0x7f000001, 32, RTN_LOCAL, RT_SCOPE_HOST, false },
		{ 0x7fffffff, 0x7f000001, 32, RTN_BROADCAST, RT_SCOPE_LINK, false },
		/* Linux before 5.17 has the network's own address too. */
		{ 0x7f000000, 0x7f000001, 32, RTN_BROADCAST, RT_SCOPE_LINK, true },
		{ ROUTES_SOURCE, ROUTES_SOURCE, 32, RTN_LOCAL, RT_SCOPE_HOST, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		meant[i] = (Meant){
			.route = { .family = AF_INET,
				   .type = rows[i].type,
				   .scope = rows[i].scope,
				   .protocol = RTPROT_KERNEL,
				   .table = RT_TABLE_LOCAL,
				   .length = rows[i].length,
				   .destination = rows[i].destination,
				   .device = lo_index,
				   .source = rows[i].source,
				   .has_source = true },
			.optional = rows[i].optional,
		};
	return ELEMENTSOF(rows);
}

#define KERNEL_ROUTES_MAX 8u

static int meant_new(const Denial *denial, Meant **ret, size_t *ret_n)
{
	const RouteTable *routes = denial->routes;
	Meant *meant = calloc(2 * routes->n_rows + KERNEL_ROUTES_MAX, sizeof(*meant));
	size_t n;

	if (!meant)
		return -ENOMEM;
	n = meant_of_kernel(meant, (uint32_t)denial->lo_index);
	meant[n++].route = route_of_far_end((uint32_t)denial->jail_index);
	for (size_t i = 0; i < routes->n_rows; i++)
		if (!denial->left_out || !denial->left_out[i])
			meant[n++].route = route_of_row(&routes->rows[i], (uint32_t)denial->jail_index);
	for (size_t i = 0; i < routes->n_rows; i++)
		if (ledger_has_row(denial, routes, i))
			meant[n++].route =
				ledger_route_of_row(&routes->rows[i], (uint32_t)denial->ledger_index);
	qsort(meant, n, sizeof(*meant), compare_meant);
	*ret = meant;
	*ret_n = n;
	return 0;
}

static int check_route(const Route *found, Meant *meant, size_t n, char **ret_problem)
{
	const Meant key = { .route = *found };
	char name[ADDRESS_TEXT_MAX];
	Meant *match = bsearch(&key, meant, n, sizeof(*meant), compare_meant);

	if (!match)
		return refuse(ret_problem, -EREMCHG,
			      "the route to %s in table %u with metric %u was not meant to be there",
			      route_to_text(found, name), found->table, found->metric);
	if (match->seen)
		return refuse(ret_problem, -EREMCHG,
			      "the route to %s in table %u with metric %u is there twice",
			      route_to_text(found, name), found->table, found->metric);
	match->seen = true;
	return route_check(found, &match->route, ret_problem);
}

/*
 * Where IPv6 could not be switched off, the kernel keeps routes of its own to the loopback, link-local and
 * multicast addresses; the tap's filter lets no frame to any of them out.
 */
static int check_route6(const Route *found, const Denial *denial, char **ret_problem)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	const uint8_t *bytes = found->bytes;
	char name[ADDRESS_TEXT_MAX];
	bool known = found->protocol == RTPROT_KERNEL && !found->has_gateway && found->source_length == 0;

	if (denial->ipv6_off)
		known = false;
	else if (found->device == (uint32_t)denial->lo_index)
		known = known && found->length == 128 && memcmp(bytes, loopback, sizeof(loopback)) == 0;
	else if (found->device == (uint32_t)denial->jail_index ||
		 (denial->ledger_index != 0 && found->device == (uint32_t)denial->ledger_index))
		known = known && ((found->length >= 64 && bytes[0] == 0xfe && bytes[1] == 0x80) ||
				  (found->length >= 8 && bytes[0] == 0xff));
	else
		known = false;
	if (known && found->attribute == 0)
		return 0;
	return refuse(ret_problem, -EREMCHG, "the IPv6 route to %s in table %u was not meant to be there",
		      route_to_text(found, name), found->table);
}

int read_back_check_routes(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	_cleanup_free_ Meant *meant = NULL;
	const struct nlmsghdr *header;
	char name[ADDRESS_TEXT_MAX];
	size_t n, offset = 0;
	Route route;
	int r;

	r = meant_new(denial, &meant, &n);
	if (r < 0)
		return r;
	while ((header = message_list_next(&state->routes, &offset))) {
		r = route_decode(header, &route);
		if (r < 0 || route.family != AF_INET)
			return -EBADMSG;
		r = check_route(&route, meant, n, ret_problem);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++)
		if (!meant[i].seen && !meant[i].optional)
			return refuse(ret_problem, -EREMCHG,
				      "the route to %s in table %u with metric %u is missing",
				      route_to_text(&meant[i].route, name), meant[i].route.table,
				      meant[i].route.metric);

	offset = 0;
	while ((header = message_list_next(&state->routes6, &offset))) {
		r = route_decode(header, &route);
		if (r < 0 || route.family != AF_INET6)
			return -EBADMSG;
		r = check_route6(&route, denial, ret_problem);
		if (r < 0)
			return r;
	}
	return 0;
}
