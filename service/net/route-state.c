/* SPDX-License-Identifier: MIT */
#include "service/net/route-state.h"

#include "service/net/ledger-device.h"

typedef struct Found {
	Route *routes; /* of IPv4, by key */
	size_t n;
	bool unknown;
} Found;

static void found_done(Found *found)
{
	free(found->routes);
}

static int compare(const void *a, const void *b)
{
	return route_compare_key(a, b);
}

/* Return: 0, also where nothing can be known; -ENOMEM. */
static int found_read(const Denial *denial, Found *found)
{
	const struct rtmsg body = { .rtm_family = AF_INET };
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct nlmsghdr *header;
	size_t offset = 0;
	int r;

	r = netlink_dump(denial->netlink, RTM_GETROUTE, &body, sizeof(body), &list);
	if (r < 0) {
		found->unknown = true;
		return r == -ENOMEM ? r : 0;
	}
	found->routes = calloc(list.n_messages + 1, sizeof(*found->routes));
	if (!found->routes)
		return -ENOMEM;
	while ((header = message_list_next(&list, &offset))) {
		Route *route = &found->routes[found->n];

		if (route_decode(header, route) < 0 || route->family != AF_INET) {
			found->unknown = true;
			return 0;
		}
		found->n++;
	}
	qsort(found->routes, found->n, sizeof(*found->routes), compare);
	return 0;
}

static const char *state_of(const Found *found, const Route *meant)
{
	const Route *route;

	if (found->unknown)
		return "unknown";
	route = bsearch(meant, found->routes, found->n, sizeof(*found->routes), compare);
	if (!route)
		return "missing";
	return route_check(route, meant, NULL) < 0 ? "different" : "in force";
}

static Route local_route(uint32_t destination, uint8_t length, uint32_t source, uint32_t device)
{
	return (Route){
		.family = AF_INET,
		.type = RTN_LOCAL,
		.scope = RT_SCOPE_HOST,
		.protocol = RTPROT_KERNEL,
		.table = RT_TABLE_LOCAL,
		.length = length,
		.destination = destination,
		.device = device,
		.source = source,
		.has_source = true,
	};
}

static size_t show_own(const Denial *denial, const Found *found, RouteShown *shown)
{
	const uint32_t lo = (uint32_t)denial->lo_index, jail = (uint32_t)denial->jail_index;
	const struct {
		Route route;
		const char *device, *reason;
	} own[] = {
		{ local_route(0x7f000000, 8, 0x7f000001, lo), "lo",
		  "the jail's own loopback, not the host's" },
		{ local_route(ROUTES_SOURCE, 32, ROUTES_SOURCE, lo), "lo", "the jail's own address" },
		{ route_of_far_end(jail), ROUTES_JAIL_DEVICE, "the jail's own: it names the far end" },
	};

	for (size_t i = 0; i < ELEMENTSOF(own); i++)
		shown[i] = (RouteShown){ .address = own[i].route.destination,
					 .length = own[i].route.length,
					 .verdict = ROUTE_ALLOW,
					 .device = own[i].device,
					 .reason = own[i].reason,
					 .state = state_of(found, &own[i].route) };
	return ELEMENTSOF(own);
}

#define OWN_ROUTES 3u

int routes_show(const Denial *denial, RouteShown **ret, size_t *ret_n)
{
	const RouteTable *routes = denial->routes;
	_cleanup_free_ RouteShown *shown = calloc(routes->n_rows + OWN_ROUTES, sizeof(*shown));
	_cleanup_(found_done) Found found = { 0 };
	size_t n;
	int r;

	if (!shown)
		return -ENOMEM;
	r = found_read(denial, &found);
	if (r < 0)
		return r;
	n = show_own(denial, &found, shown);
	for (size_t i = 0; i < routes->n_rows; i++) {
		const RouteRow *row = &routes->rows[i];
		const Route meant = route_of_row(row, (uint32_t)denial->jail_index);
		bool ledger = ledger_has_row(denial, routes, i);
		const char *state = state_of(&found, &meant);

		/* Of two routes the one that is worse off says how the row is. */
		if (ledger && streq(state, "in force")) {
			const Route explained = ledger_route_of_row(row, (uint32_t)denial->ledger_index);

			state = state_of(&found, &explained);
		}

		shown[n++] = (RouteShown){
			.address = row->address,
			.length = row->length,
			.verdict = row->verdict,
			.device = ledger                       ? ROUTES_LEDGER_DEVICE
				  : row->verdict == ROUTE_DENY ? ""
							       : ROUTES_JAIL_DEVICE,
			.reason = row->reason,
			.state = denial->left_out && denial->left_out[i] ? "left out" : state,
		};
	}
	*ret = TAKE_PTR(shown);
	*ret_n = n;
	return 0;
}
