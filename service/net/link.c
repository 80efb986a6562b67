/* SPDX-License-Identifier: MIT */
#include "service/net/link.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <net/if_arp.h>

/* linux/if_link.h of some distributions is older than the kernel; the numbers are fixed. */
#define PROPERTY_LIST 52 /* IFLA_PROP_LIST: alternative names */

typedef struct FallbackDevice {
	const char *name, *kind;
} FallbackDevice;

/* Documentation/admin-guide/sysctl/net.rst, fb_tunnels_only_for_init_net. */
static const FallbackDevice fallback_devices[] = {
	{ "tunl0", "ipip" },  { "sit0", "sit" },       { "ip6tnl0", "ip6tnl" },
	{ "gre0", "gre" },    { "gretap0", "gretap" }, { "erspan0", "erspan" },
	{ "ip_vti0", "vti" }, { "ip6_vti0", "vti6" },  { "ip6gre0", "ip6gre" },
};

static int decode_tun(const struct rtattr *data, Link *link)
{
	const struct rtattr *slots[IFLA_TUN_MAX + 1];
	int r = attributes_nested(data, slots, ELEMENTSOF(slots), NULL);

	if (r < 0)
		return r;
	if (attribute_u8(slots[IFLA_TUN_TYPE], &link->tun_type) < 0 ||
	    attribute_u8(slots[IFLA_TUN_PI], &link->tun_pi) < 0 ||
	    attribute_u8(slots[IFLA_TUN_VNET_HDR], &link->tun_vnet_header) < 0 ||
	    attribute_u8(slots[IFLA_TUN_PERSIST], &link->tun_persist) < 0 ||
	    attribute_u8(slots[IFLA_TUN_MULTI_QUEUE], &link->tun_multi_queue) < 0)
		return -EBADMSG;
	return 0;
}

static int decode_info(const struct rtattr *info, Link *link)
{
	const struct rtattr *slots[IFLA_INFO_SLAVE_DATA + 1];

	if (attributes_nested(info, slots, ELEMENTSOF(slots), NULL) < 0 ||
	    attribute_name(slots[IFLA_INFO_KIND], link->kind, sizeof(link->kind)) < 0)
		return -EBADMSG;
	if (slots[IFLA_INFO_SLAVE_KIND])
		link->strange = "it belongs to another device";
	if (slots[IFLA_INFO_DATA] && streq(link->kind, "tun"))
		return decode_tun(slots[IFLA_INFO_DATA], link);
	return 0;
}

static int decode_strange(const struct rtattr **slots, Link *link)
{
	const struct rtattr *xdp[IFLA_XDP_ATTACHED + 1];
	uint32_t group = 0, promiscuity = 0, master = 0, below = 0;
	uint8_t mode = 0, down = 0, attached = 0;

	if (attribute_u32(slots[IFLA_GROUP], &group) < 0 ||
	    attribute_u32(slots[IFLA_PROMISCUITY], &promiscuity) < 0 ||
	    attribute_u32(slots[IFLA_MASTER], &master) < 0 || attribute_u32(slots[IFLA_LINK], &below) < 0 ||
	    attribute_u8(slots[IFLA_LINKMODE], &mode) < 0 || attribute_u8(slots[IFLA_PROTO_DOWN], &down) < 0)
		return -EBADMSG;
	if (slots[IFLA_XDP] && (attributes_nested(slots[IFLA_XDP], xdp, ELEMENTSOF(xdp), NULL) < 0 ||
				attribute_u8(xdp[IFLA_XDP_ATTACHED], &attached) < 0))
		return -EBADMSG;

	if (attached != 0)
		link->strange = "an XDP program is attached";
	else if (master != 0)
		link->strange = "it has a master device";
	else if (below != 0 && below != link->index)
		link->strange = "it lies on another device";
	else if (slots[IFLA_LINK_NETNSID])
		link->strange = "it is tied to another namespace";
	else if (group != 0)
		link->strange = "it is in a device group";
	else if (promiscuity != 0)
		link->strange = "it is promiscuous";
	else if (mode != 0)
		link->strange = "its link mode is dormant";
	else if (down != 0)
		link->strange = "it is down by protocol";
	else if (slots[IFLA_IFALIAS])
		link->strange = "it has an alias";
	else if (slots[PROPERTY_LIST])
		link->strange = "it has an alternative name";
	return 0;
}

/*
 * IFLA_AF_SPEC holds a nest for each family; IPv4's has the settings as an array of 32-bit numbers in the
 * order of IPV4_DEVCONF_ (linux/ip.h), which starts at 1.
 */
static int decode_settings(const struct rtattr *families, Link *link)
{
	const struct rtattr *family[AF_INET + 1], *ipv4[IFLA_INET_CONF + 1];
	size_t index = IPV4_DEVCONF_RP_FILTER - 1;

	if (attributes_nested(families, family, ELEMENTSOF(family), NULL) < 0)
		return -EBADMSG;
	if (!family[AF_INET])
		return 0;
	if (attributes_nested(family[AF_INET], ipv4, ELEMENTSOF(ipv4), NULL) < 0)
		return -EBADMSG;
	if (!ipv4[IFLA_INET_CONF])
		return 0;
	if (attribute_size(ipv4[IFLA_INET_CONF]) < (index + 1) * sizeof(uint32_t))
		return -EBADMSG;
	memcpy(&link->reverse_path,
	       (const uint8_t *)RTA_DATA(ipv4[IFLA_INET_CONF]) + index * sizeof(uint32_t),
	       sizeof(link->reverse_path));
	return 0;
}

int link_parse(const struct nlmsghdr *header, Link *ret)
{
	Link link = {
		.tun_type = 0xff,
		.tun_pi = 0xff,
		.tun_vnet_header = 0xff,
		.tun_persist = 0xff,
		.tun_multi_queue = 0xff,
	};
	const struct rtattr *slots[(IFLA_MAX > PROPERTY_LIST ? IFLA_MAX : PROPERTY_LIST) + 1];
	const struct ifinfomsg *body;
	const void *attributes;
	size_t size;

	if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK)
		return -EBADMSG;
	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || body->ifi_index <= 0 ||
	    attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) < 0)
		return -EBADMSG;

	link.index = (uint32_t)body->ifi_index;
	link.type = body->ifi_type;
	link.flags = body->ifi_flags;
	if (!slots[IFLA_IFNAME] || attribute_name(slots[IFLA_IFNAME], link.name, sizeof(link.name)) < 0 ||
	    attribute_u32(slots[IFLA_MTU], &link.mtu) < 0)
		return -EBADMSG;
	if (slots[IFLA_ADDRESS] && attribute_size(slots[IFLA_ADDRESS]) == sizeof(link.address)) {
		memcpy(link.address, RTA_DATA(slots[IFLA_ADDRESS]), sizeof(link.address));
		link.has_address = true;
	}
	if (decode_strange(slots, &link) < 0)
		return -EBADMSG;
	if (slots[IFLA_AF_SPEC] && decode_settings(slots[IFLA_AF_SPEC], &link) < 0)
		return -EBADMSG;
	if (slots[IFLA_LINKINFO] && decode_info(slots[IFLA_LINKINFO], &link) < 0)
		return -EBADMSG;

	*ret = link;
	return 0;
}

bool link_is_fallback(const Link *link)
{
	for (size_t i = 0; i < ELEMENTSOF(fallback_devices); i++)
		if (streq(link->name, fallback_devices[i].name))
			return streq(link->kind, fallback_devices[i].kind);
	return false;
}

int link_find(Netlink *netlink, const char *name, Link *ret)
{
	struct ifinfomsg body = { .ifi_family = AF_UNSPEC };
	_cleanup_(nl_msg_freep) struct nl_msg *message = netlink_message(RTM_GETLINK, 0, &body, sizeof(body));
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct nlmsghdr *header;
	size_t offset = 0;
	Link link;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_put(message, IFLA_IFNAME, name, strlen(name) + 1);
	if (r >= 0)
		r = netlink_ask(netlink, message, &list);
	if (r < 0)
		return r;
	header = message_list_next(&list, &offset);
	r = header ? link_parse(header, &link) : -EBADMSG;
	if (r < 0)
		return r;
	/* An alternative name finds a device too. */
	if (!streq(link.name, name))
		return -ENODEV;
	*ret = link;
	return 0;
}

struct nl_msg *link_change_message(int index, uint32_t flags)
{
	struct ifinfomsg body = {
		.ifi_family = AF_UNSPEC,
		.ifi_index = index,
		.ifi_flags = flags,
		.ifi_change = flags,
	};

	return netlink_message(RTM_NEWLINK, 0, &body, sizeof(body));
}

int link_step_loopback(Denial *denial, char **ret_problem)
{
	_cleanup_(nl_msg_freep) struct nl_msg *message = link_change_message(denial->lo_index, IFF_UP);
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_program_one(denial->netlink, message, NULL);
	if (r < 0)
		return refuse(ret_problem, r, "cannot bring the loopback device up: %s", strerror(-r));
	return 0;
}

int link_without_generated_address(const Denial *denial, int index)
{
	_cleanup_(nl_msg_freep) struct nl_msg *message = link_change_message(index, 0);
	struct nlattr *families, *family;
	uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
	int r;

	if (!message)
		return -ENOMEM;
	families = nla_nest_start(message, IFLA_AF_SPEC);
	family = families ? nla_nest_start(message, AF_INET6) : NULL;
	if (!family)
		return -ENOMEM;
	r = netlink_put(message, IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof(mode));
	if (r < 0)
		return r;
	nla_nest_end(message, family);
	nla_nest_end(message, families);
	(void)netlink_program_one(denial->netlink, message, NULL);
	return 0;
}

/*
 * pasta opens the port that a datagram came from on all of the host's addresses, and hands in what arrives
 * there: other machines and programs of the host could talk to the agent. With the filter the kernel looks
 * the sender up as if it answered; a denied one ends at its prohibit route, and the datagram is dropped
 * (ip_fib_validate_source). By netlink, since /proc/sys may be read-only.
 */
int link_step_reverse_path(Denial *denial, char **ret_problem)
{
	_cleanup_(nl_msg_freep) struct nl_msg *message = link_change_message(denial->jail_index, 0);
	struct nlattr *families, *family, *settings;
	int r;

	if (!message)
		return -ENOMEM;
	families = nla_nest_start(message, IFLA_AF_SPEC);
	family = families ? nla_nest_start(message, AF_INET) : NULL;
	settings = family ? nla_nest_start(message, IFLA_INET_CONF) : NULL;
	if (!settings)
		return -ENOMEM;
	r = netlink_put_u32(message, IPV4_DEVCONF_RP_FILTER, 1);
	if (r < 0)
		return r;
	nla_nest_end(message, settings);
	nla_nest_end(message, family);
	nla_nest_end(message, families);
	r = netlink_program_one(denial->netlink, message, NULL);
	if (r < 0)
		return refuse(ret_problem, r, "cannot filter senders by their reverse path: %s",
			      strerror(-r));
	return 0;
}

int link_step_jail(Denial *denial, char **ret_problem)
{
	_cleanup_(nl_msg_freep) struct nl_msg *message = NULL;
	_cleanup_free_ char *text = NULL;
	int r;

	r = link_without_generated_address(denial, denial->jail_index);
	if (r < 0)
		return r;

	message = link_change_message(denial->jail_index, IFF_UP);
	if (!message)
		return -ENOMEM;
	r = netlink_put_u32(message, IFLA_MTU, LINK_MTU);
	if (r < 0)
		return r;
	r = netlink_program_one(denial->netlink, message, &text);
	if (r < 0)
		return refuse(ret_problem, r, "cannot bring " ROUTES_JAIL_DEVICE " up: %s",
			      text ?: strerror(-r));
	return 0;
}
