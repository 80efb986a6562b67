/* SPDX-License-Identifier: MIT */

/*
 * What the kernel does by itself in a closed namespace is little, and everything else is somebody's:
 *
 * links       their carrier comes and goes with pasta; a driver that is loaded adds its fallback device.
 *             Their events often name nobody, so they are judged by what they say.
 * neighbours  unresolved ones come and go with what is tried; the kernel names nobody for them.
 * addresses,  never of IPv4. Of IPv6, where it could not be switched off, link-local ones; nobody is named,
 * routes      and the read-back judges.
 * rules, nexthop objects, settings of a device: never.
 *
 * Our own changes carry our port. Nobody else can have it: ports are one to a socket in each namespace.
 */

#include "service/net/foreign.h"

#include "service/link/pack.h"
#include "service/net/link.h"

#include <linux/netconf.h>
#include <sys/socket.h>

/* who: a netlink port; by habit of most programs their process id. 0: the kernel, or an ioctl(2). */
static int foreign(const struct nlmsghdr *header, const char *what, char **ret_what)
{
	/* Of each kind RTM_NEW..., RTM_DEL..., RTM_GET..., RTM_SET... */
	bool added = header->nlmsg_type % 4 == 0;
	_cleanup_free_ char *port = NULL;

	if (header->nlmsg_pid != 0 && asprintf(&port, ", netlink port %u", header->nlmsg_pid) < 0) {
		port = NULL;
		return -ENOMEM;
	}
	return refuse(ret_what, -EREMCHG, "%s was %s by another program%s", what,
		      added ? "added or changed" : "removed", port ?: "");
}

static int judge_link(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look, char **ret_what)
{
	Link link;
	int r = link_parse(header, &link);

	if (r < 0)
		return r;
	*ret_look = true;
	if (link_is_removal(header, &link))
		return refuse(ret_what, -EREMCHG, "network device %s: it was removed", link.name);
	return link_check(&link, &view->denial->devices, ret_what);
}

static int judge_meant(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
		       char **ret_what)
{
	const JailDevices *devices = &view->denial->devices;
	_cleanup_free_ char *name = NULL;
	Said said;
	int r;

	r = said_read(header, &said);
	if (r >= 0)
		r = said_name(&said, &name);
	if (r < 0)
		return r;
	if (header->nlmsg_pid == 0 && said.key.type == RTM_NEWNEIGH && said_is_kernels(&said, devices))
		return 0;
	if (header->nlmsg_pid == 0 && (said.key.type == RTM_NEWADDR || said.key.type == RTM_NEWROUTE) &&
	    said.key.family == AF_INET6 && !devices->ipv6_off) {
		*ret_look = true;
		return 0;
	}
	return foreign(header, name, ret_what);
}

/* A new device has settings too; whether it may be there, its own event tells. */
static int judge_setting(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what)
{
	const struct rtattr *slots[NETCONFA_MAX + 1];
	const struct netconfmsg *body;
	const void *attributes;
	size_t size;
	uint32_t index = 0;

	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) < 0 ||
	    attribute_u32(slots[NETCONFA_IFINDEX], &index) < 0)
		return -EBADMSG;
	*ret_look = true;
	if (index != 0 && index != view->denial->devices.lo && index != view->denial->devices.jail &&
	    index != view->denial->devices.ledger && index != (uint32_t)NETCONFA_IFINDEX_ALL &&
	    index != (uint32_t)NETCONFA_IFINDEX_DEFAULT)
		return 0;
	return foreign(header,
		       slots[NETCONFA_RP_FILTER]    ? "the setting rp_filter"
		       : slots[NETCONFA_FORWARDING] ? "the setting forwarding"
						    : "a setting of the IPv4 stack",
		       ret_what);
}

int foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look, char **ret_what)
{
	bool ours = header->nlmsg_pid != 0 && header->nlmsg_pid == view->own_port;

	switch (header->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return judge_link(view, header, ret_look, ret_what);
	case RTM_NEWADDR:
	case RTM_DELADDR:
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
	case RTM_NEWRULE:
	case RTM_DELRULE:
		return ours ? 0 : judge_meant(view, header, ret_look, ret_what);
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		return judge_meant(view, header, ret_look, ret_what);
	case RTM_NEWNETCONF:
	case RTM_DELNETCONF:
		return judge_setting(view, header, ret_look, ret_what);
	default:
		*ret_look = true;
		return 0;
	}
}
