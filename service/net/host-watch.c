/* SPDX-License-Identifier: MIT */
#include "service/net/host-watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

/* Bounded: the loop comes back for the rest. */
#define HOST_WATCH_READS_MAX 256u

int host_watch_open(int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE };

	const int nexthops = RTNLGRP_NEXTHOP;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* A kernel without nexthop objects has no such group, and nothing to watch. */
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &nexthops, sizeof(nexthops)) < 0 &&
	    errno != EINVAL)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void host_watch_drain(int fd)
{
	uint8_t byte;

	/* A datagram is taken whole, whatever the size of the buffer; ENOBUFS (events lost) is news as well.
	 */
	for (unsigned i = 0; i < HOST_WATCH_READS_MAX; i++)
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != ENOBUFS)
			return;
}

static int join_numbers(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b, uint32_t **ret,
			size_t *ret_n)
{
	uint32_t *joined = calloc(n_a + n_b + 1, sizeof(*joined));
	size_t n = n_a;

	if (!joined)
		return -ENOMEM;
	for (size_t i = 0; i < n_a; i++)
		joined[i] = a[i];
	for (size_t i = 0; i < n_b; i++) {
		bool known = false;

		for (size_t j = 0; j < n_a && !known; j++)
			known = a[j] == b[i];
		if (!known)
			joined[n++] = b[i];
	}
	*ret = joined;
	*ret_n = n;
	return n > n_a;
}

static int join_subnets(const HostNetwork *known, const HostNetwork *now, HostNetwork *joined)
{
	size_t n = known->n_subnets;

	joined->subnets = calloc(n + now->n_subnets + 1, sizeof(*joined->subnets));
	if (!joined->subnets)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		joined->subnets[i] = known->subnets[i];
	for (size_t i = 0; i < now->n_subnets; i++) {
		const HostPrefix *subnet = &now->subnets[i];
		bool is_known = false;

		for (size_t j = 0; j < known->n_subnets && !is_known; j++)
			is_known = known->subnets[j].address == subnet->address &&
				   known->subnets[j].length == subnet->length;
		if (!is_known)
			joined->subnets[n++] = *subnet;
	}
	joined->n_subnets = n;
	return n > known->n_subnets;
}

int host_network_join(const HostNetwork *known, const HostNetwork *now, HostNetwork *ret)
{
	_cleanup_(host_network_done) HostNetwork joined = { .uplink = now->uplink };
	int subnets, addresses, gateways;

	subnets = join_subnets(known, now, &joined);
	addresses = join_numbers(known->addresses, known->n_addresses, now->addresses, now->n_addresses,
				 &joined.addresses, &joined.n_addresses);
	gateways = join_numbers(known->gateways, known->n_gateways, now->gateways, now->n_gateways,
				&joined.gateways, &joined.n_gateways);
	if (subnets < 0 || addresses < 0 || gateways < 0)
		return -ENOMEM;
	*ret = joined;
	joined = (HostNetwork){ 0 };
	return subnets > 0 || addresses > 0 || gateways > 0;
}
