/* SPDX-License-Identifier: MIT */
#include "service/session/network.h"

#include "dbus/names.h"
#include "service/net/diag.h"
#include "service/net/host.h"
#include "service/net/monitor.h"

int network_prepare(Network *network, const Config *config, const char **ret_error, char **ret_problem)
{
	int r;

	*ret_error = CS_ERROR_JAIL_UNAVAILABLE;
	network->jailed = config_flag(config, CONFIG_EGRESS_JAIL);
	if (!network->jailed)
		return 0;
	r = host_network_read(&network->host, ret_problem);
	if (r < 0)
		return r;
	return routes_make(&network->host, config, &network->routes, ret_problem);
}

int network_lock(Network *network, Holder *holder, const char **ret_error, char **ret_problem)
{
	int r;

	*ret_error = CS_ERROR_JAIL_UNAVAILABLE;
	if (!network->jailed)
		return 0;
	r = denial_init(&network->denial, &network->sockets, &network->routes, ret_problem);
	if (r < 0)
		return r;
	network->denial_open = true;
	r = denial_apply(&network->denial, ret_problem);
	if (r == 0)
		r = holder_self_test(holder, ret_problem);
	/* Both copies, and before pasta: a queue of the tap that is still open would take frames meant for
	 * it. */
	if (r == 0)
		r = holder_close_tap(holder, ret_problem);
	close_fdp(&network->sockets.tap_fd);
	network->denial.tap_fd = FD_NONE;
	/* From here on every event is held against what was meant, and the read-back sees what was before. */
	if (r == 0)
		r = monitor_forget(network->sockets.watch_fd);
	if (r < 0)
		return r;
	*ret_error = CS_ERROR_ROUTES_DIFFER;
	return denial_read_back(&network->denial, ret_problem);
}

void network_done(Network *network)
{
	if (network->denial_open)
		denial_done(&network->denial);
	jail_sockets_close(&network->sockets);
	route_table_done(&network->routes);
	host_network_done(&network->host);
	free(network->ledger_problem);
	*network = NETWORK_INIT;
}

int network_read_back(Network *network, char **ret_problem)
{
	return network->denial_open ? denial_read_back(&network->denial, ret_problem) : 0;
}

void network_end_flows(Network *network)
{
	if (network->denial_open)
		(void)flows_end_denied(network->sockets.diag_fd, &network->routes, NULL);
}

/*
 * Before the routes go and once more after: before, the kernel's reset still finds its way, so that pasta
 * closes its half and the far end learns of it; after, whatever was made anew in between. Where flows cannot
 * be ended nothing passes all the same.
 */
int network_change(Network *network, const Config *config, char **ret_problem)
{
	_cleanup_(route_table_done) RouteTable wanted = { 0 };
	int r;

	if (!network->denial_open)
		return 0;
	r = routes_make_again(&network->host, config, network->routes.forwarder, &wanted, ret_problem);
	if (r < 0)
		return r;
	(void)flows_end_denied(network->sockets.diag_fd, &wanted, NULL);
	r = denial_change(&network->denial, &network->routes, &wanted, ret_problem);
	if (r < 0)
		return r;
	network_end_flows(network);
	return 0;
}

/*
 * With host in the place of the one that is known. On failure of any kind but -EREMCHG that one stays. No
 * flow is looked at here: an agent may hold so many that a denial would come seconds late.
 */
static int change_host(Network *network, const Config *config, HostNetwork *host, char **ret_problem)
{
	_cleanup_(route_table_done) RouteTable wanted = { 0 };
	HostNetwork before = network->host;
	int r;

	network->host = *host;
	r = routes_make_again(&network->host, config, network->routes.forwarder, &wanted, ret_problem);
	if (r >= 0)
		r = denial_change(&network->denial, &network->routes, &wanted, ret_problem);
	if (r < 0) {
		network->host = before;
		return r;
	}
	host_network_done(&before);
	*host = (HostNetwork){ 0 };
	return 0;
}

int network_host_again(Network *network, const Config *config, char **ret_problem)
{
	_cleanup_(host_network_done) HostNetwork now = { 0 }, joined = { 0 };
	_cleanup_free_ char *problem = NULL;
	int r;

	if (!network->denial_open)
		return 0;
	r = host_network_read(&now, ret_problem);
	if (r < 0)
		return r;
	network->host.uplink = now.uplink;
	r = host_network_join(&network->host, &now, &joined);
	if (r <= 0)
		return r;
	r = change_host(network, config, &joined, &problem);
	/* A machine that has been in very many networks: what was is given up for what is. */
	if (r == -E2BIG) {
		freep(&problem);
		r = change_host(network, config, &now, &problem);
	}
	if (r < 0)
		return refuse(ret_problem, r, "%s", problem ?: strerror(-r));
	return 1;
}
