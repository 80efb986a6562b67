/* SPDX-License-Identifier: MIT */
#include "service/net/denial.h"

#include "service/link/pack.h"
#include "service/net/link.h"

int denial_check_table(const RouteTable *routes, char **ret_problem)
{
	size_t defaults = 0, denials = 0;

	for (size_t i = 0; i < routes->n_rows; i++) {
		const RouteRow *row = &routes->rows[i];

		if (row->length > 32 || row->verdict >= ROUTE_VERDICT_MAX ||
		    (row->verdict == ROUTE_INTERNET) != (row->length == 0))
			return refuse(ret_problem, -EINVAL, "the table of routes is not sound");
		defaults += row->verdict == ROUTE_INTERNET;
		denials += row->verdict == ROUTE_DENY;
	}
	if (routes->n_rows > ROUTES_MAX || defaults != 1 || denials == 0)
		return refuse(ret_problem, -EINVAL, "the table of routes denies nothing, or leads nowhere");
	return 0;
}

int denial_init(Denial *denial, const JailSockets *sockets, const RouteTable *routes, char **ret_problem)
{
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	_cleanup_free_ bool *left_out = NULL;
	Link lo, jail, ledger = { 0 };
	int r;

	r = denial_check_table(routes, ret_problem);
	if (r < 0)
		return r;
	left_out = calloc(routes->n_rows, sizeof(*left_out));
	if (!left_out)
		return -ENOMEM;
	r = netlink_new(sockets->route_fd, &netlink);
	if (r < 0)
		return refuse(ret_problem, r, "the jail's rtnetlink socket cannot be used: %s", strerror(-r));
	r = link_find(netlink, "lo", &lo);
	if (r >= 0)
		r = link_find(netlink, ROUTES_JAIL_DEVICE, &jail);
	if (r >= 0 && sockets->ledger_fd >= 0)
		r = link_find(netlink, ROUTES_LEDGER_DEVICE, &ledger);
	if (r < 0)
		return refuse(ret_problem, r, "the jail's devices cannot be found: %s", strerror(-r));

	*denial = (Denial){
		.netlink = TAKE_PTR(netlink),
		.tap_fd = sockets->tap_fd,
		.routes = routes,
		.ipv6_off = sockets->ipv6_off,
		.lo_index = (int)lo.index,
		.jail_index = (int)jail.index,
		.ledger_index = (int)ledger.index,
		.left_out = TAKE_PTR(left_out),
	};
	return 0;
}

void denial_done(Denial *denial)
{
	denial->netlink = netlink_free(denial->netlink);
	denial->warnings = strings_free(denial->warnings);
	free(denial->left_out);
	denial->left_out = NULL;
	denial->tap_fd = FD_NONE;
}

int denial_apply(Denial *denial, char **ret_problem)
{
	for (const DenialStep *step = denial_steps; step->name; step++) {
		_cleanup_free_ char *problem = NULL;
		int r = step->apply(denial, &problem);

		if (r < 0)
			return refuse(ret_problem, r,
				      "closing the jail's network failed at its step '%s': %s", step->name,
				      problem ?: strerror(-r));
	}
	return 0;
}
