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
#include "service/net/address.h"
#include "service/net/link.h"
#include "service/net/neighbour.h"
#include "service/net/nexthop.h"
#include "service/net/read-back.h"
#include "service/net/route.h"
#include "service/net/rule.h"

#include <linux/netconf.h>
#include <linux/neighbour.h>

/* who: a netlink port; by habit of most programs their process id. 0: the kernel, or an ioctl(2). */
static int foreign(const struct nlmsghdr *header, bool added, const char *what, char **ret_what)
{
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
	if (header->nlmsg_type == RTM_DELLINK && !link_is_fallback(&link))
		return refuse(ret_what, -EREMCHG, "network device %s: it was removed", link.name);
	return read_back_check_link(&link, view->denial, ret_what);
}

static int judge_address(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what)
{
	char name[ADDRESS_TEXT_MAX];
	_cleanup_free_ char *what = NULL;
	Address address;
	int r = address_decode(header, &address);

	if (r < 0 && r != -EAFNOSUPPORT)
		return r;
	if (r == 0 && address.family == AF_INET6 && !view->denial->ipv6_off && header->nlmsg_pid == 0) {
		*ret_look = true;
		return 0;
	}
	if (asprintf(&what, "the address %s",
		     r == 0 ? address_to_text(&address, name) : "of a strange kind") < 0) {
		what = NULL;
		return -ENOMEM;
	}
	return foreign(header, header->nlmsg_type == RTM_NEWADDR, what, ret_what);
}

static int judge_neighbour(const ForeignView *view, const struct nlmsghdr *header, char **ret_what)
{
	char name[ADDRESS_TEXT_MAX];
	_cleanup_free_ char *what = NULL;
	Neighbour neighbour;
	int r = neighbour_decode(header, &neighbour);

	if (r < 0 && r != -EAFNOSUPPORT)
		return r;
	if (r == 0 && header->nlmsg_pid == 0 && read_back_neighbour_is_kernels(&neighbour, view->denial))
		return 0;
	if (asprintf(&what, "the neighbour %s",
		     r == 0 ? neighbour_to_text(&neighbour, name) : "of a strange kind") < 0) {
		what = NULL;
		return -ENOMEM;
	}
	return foreign(header, header->nlmsg_type == RTM_NEWNEIGH, what, ret_what);
}

static int judge_route(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
		       char **ret_what)
{
	char name[ADDRESS_TEXT_MAX];
	_cleanup_free_ char *what = NULL;
	Route route;
	int r = route_decode(header, &route);

	if (r < 0 && r != -EAFNOSUPPORT)
		return r;
	if (r == 0 && route.family == AF_INET6 && !view->denial->ipv6_off && header->nlmsg_pid == 0) {
		*ret_look = true;
		return 0;
	}
	if (r < 0)
		return foreign(header, header->nlmsg_type == RTM_NEWROUTE, "a route of another family",
			       ret_what);
	if (asprintf(&what, "the route to %s in table %u with metric %u", route_to_text(&route, name),
		     route.table, route.metric) < 0) {
		what = NULL;
		return -ENOMEM;
	}
	return foreign(header, header->nlmsg_type == RTM_NEWROUTE, what, ret_what);
}

static int judge_rule(const struct nlmsghdr *header, char **ret_what)
{
	_cleanup_free_ char *what = NULL;
	Rule rule;

	if (rule_decode(header, &rule) < 0)
		return foreign(header, header->nlmsg_type == RTM_NEWRULE, "a rule of another family",
			       ret_what);
	if (asprintf(&what, "the %s rule of priority %u", rule.family == AF_INET ? "IPv4" : "IPv6",
		     rule.priority) < 0) {
		what = NULL;
		return -ENOMEM;
	}
	return foreign(header, header->nlmsg_type == RTM_NEWRULE, what, ret_what);
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
	if (index != (uint32_t)view->denial->lo_index && index != (uint32_t)view->denial->jail_index &&
	    index != (uint32_t)view->denial->ledger_index &&
	    (view->denial->ledger_index == 0 || index != (uint32_t)view->denial->ledger_index) &&
	    index != (uint32_t)NETCONFA_IFINDEX_ALL && index != (uint32_t)NETCONFA_IFINDEX_DEFAULT)
		return 0;
	return foreign(header, true,
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
		return ours ? 0 : judge_address(view, header, ret_look, ret_what);
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		return ours ? 0 : judge_neighbour(view, header, ret_what);
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return ours ? 0 : judge_route(view, header, ret_look, ret_what);
	case RTM_NEWRULE:
	case RTM_DELRULE:
		return ours ? 0 : judge_rule(header, ret_what);
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		return foreign(header, header->nlmsg_type == RTM_NEWNEXTHOP, "a nexthop object", ret_what);
	case RTM_NEWNETCONF:
	case RTM_DELNETCONF:
		return judge_setting(view, header, ret_look, ret_what);
	default:
		*ret_look = true;
		return 0;
	}
}
