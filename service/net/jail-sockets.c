/* SPDX-License-Identifier: MIT */
#include "service/net/jail-sockets.h"

#include "service/net/ledger-device.h"
#include "service/net/netlink.h"
#include "service/net/tap.h"

#include <fcntl.h>
#include <sys/socket.h>

#define IPV6_PATH "/proc/sys/net/ipv6"
#define IPV4_PATH "/proc/sys/net/ipv4/conf"

void jail_sockets_close(JailSockets *sockets)
{
	sockets->route_fd = close_fd(sockets->route_fd);
	sockets->watch_fd = close_fd(sockets->watch_fd);
	sockets->diag_fd = close_fd(sockets->diag_fd);
	sockets->tap_fd = close_fd(sockets->tap_fd);
	sockets->ledger_fd = close_fd(sockets->ledger_fd);
}

static bool write_setting(const char *path, const char *value)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

/*
 * "default" governs devices that are made later, "all" those that exist. A /proc/sys that is mounted
 * read-only (a container) leaves IPv6 on: the read-back then allows nothing beyond link-local, and the filter
 * drops its frames.
 */
static bool switch_ipv6_off(void)
{
	if (access(IPV6_PATH, F_OK) < 0 && errno == ENOENT)
		return true;
	return write_setting(IPV6_PATH "/conf/default/disable_ipv6", "1") &&
	       write_setting(IPV6_PATH "/conf/all/disable_ipv6", "1") &&
	       write_setting(IPV6_PATH "/conf/lo/disable_ipv6", "1");
}

/*
 * A namespace inherits also what widens: to take one's own addresses and 127/8 from the wire. A setting for
 * all devices adds to jail0's own. Best effort: the reverse path filter drops most of both anyway.
 */
static void take_nothing_odd(void)
{
	(void)write_setting(IPV4_PATH "/all/accept_local", "0");
	(void)write_setting(IPV4_PATH "/all/route_localnet", "0");
	(void)write_setting(IPV4_PATH "/" ROUTES_JAIL_DEVICE "/accept_local", "0");
	(void)write_setting(IPV4_PATH "/" ROUTES_JAIL_DEVICE "/route_localnet", "0");
}

/*
 * A new namespace inherits the host's settings of IPv4 (devconf_inherit_init_net). A host that leaves routes
 * without carrier aside would make the jail's default route vanish whenever the wire is away. Best effort:
 * where it cannot be written, the read-back refuses such a jail.
 */
static void keep_routes_without_carrier(void)
{
	(void)write_setting(IPV4_PATH "/all/ignore_routes_with_linkdown", "0");
	(void)write_setting(IPV4_PATH "/" ROUTES_JAIL_DEVICE "/ignore_routes_with_linkdown", "0");
}

/*
 * A new namespace lets nobody have a ping socket (icmp(7)); without them an agent could not even find out
 * whether a host answers. They go by the same routes and the same filter as everything else. The one group
 * that is mapped, the caller's. Best effort.
 */
static void let_ping(void)
{
	_cleanup_free_ char *range = NULL;

	if (asprintf(&range, "%u %u", getegid(), getegid()) < 0)
		range = NULL;
	if (range)
		(void)write_setting("/proc/sys/net/ipv4/ping_group_range", range);
}

int jail_sockets_open(JailSockets *ret, char **ret_problem)
{
	const uint32_t groups = RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE |
				RTMGRP_IPV4_RULE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;
	/* Groups above 31 have no bit in the address (rtnetlink.h). */
	static const int more_groups[] = { RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP };
	_cleanup_(jail_sockets_close) JailSockets sockets = JAIL_SOCKETS_INIT;
	_cleanup_free_ char *ledger_problem = NULL;
	int r;

	/* Before the tap: a device that is made later starts without IPv6. */
	sockets.ipv6_off = switch_ipv6_off();

	r = tap_open(&sockets.tap_fd, ret_problem);
	if (r < 0)
		return r;
	(void)ledger_device_open(&sockets.ledger_fd, &ledger_problem);
	keep_routes_without_carrier();
	take_nothing_odd();
	let_ping();

	r = netlink_open(NETLINK_ROUTE, 0, &sockets.route_fd);
	if (r >= 0)
		r = netlink_open(NETLINK_ROUTE, groups, &sockets.watch_fd);
	if (r < 0)
		return refuse(ret_problem, r, "no rtnetlink socket in the jail's network: %s", strerror(-r));
	for (size_t i = 0; i < ELEMENTSOF(more_groups); i++)
		/* A kernel without nexthop objects has no such group, and nothing to watch. */
		if (setsockopt(sockets.watch_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &more_groups[i],
			       sizeof(more_groups[i])) < 0 &&
		    errno != EINVAL)
			return refuse(ret_problem, -errno, "cannot watch the jail's network: %s",
				      strerror(errno));

	r = netlink_open(NETLINK_SOCK_DIAG, 0, &sockets.diag_fd);
	if (r < 0)
		return refuse(ret_problem, r,
			      "no socket to look at the jail's connections (CONFIG_INET_DIAG): %s",
			      strerror(-r));

	if (ledger_problem && ret_problem)
		*ret_problem = TAKE_PTR(ledger_problem);
	*ret = sockets;
	sockets = JAIL_SOCKETS_INIT;
	return 0;
}
