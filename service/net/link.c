/* SPDX-License-Identifier: MIT */
#include "service/net/link.h"

#include "service/net/ledger-device.h"

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/ip.h>
#include <net/if_arp.h>
#include <netlink/route/link.h>
#include <netlink/route/link/inet.h>
#include <netlink/route/link/inet6.h>

/* linux/if_link.h of some distributions is older than the kernel; the numbers are fixed. */
#define PROPERTY_LIST 52 /* IFLA_PROP_LIST: alternative names */
/* IFF_ flags that come and go with the wire; IFF_LOWER_UP is not in every <net/if.h>. */
#define FLAGS_OF_WIRE ((uint32_t)IFF_RUNNING | 0x10000u)

/* Documentation/admin-guide/sysctl/net.rst, fb_tunnels_only_for_init_net. */
static const struct {
	const char *name, *kind;
} fallback_devices[] = {
	{ "tunl0", "ipip" },  { "sit0", "sit" },       { "ip6tnl0", "ip6tnl" },
	{ "gre0", "gre" },    { "gretap0", "gretap" }, { "erspan0", "erspan" },
	{ "ip_vti0", "vti" }, { "ip6_vti0", "vti6" },  { "ip6gre0", "ip6gre" },
};

/* What is meant of each device: it is brought up by these, and read back. */
typedef struct Device {
	const char *name, *kind;
	uint16_t type;
	uint8_t tun_type;       /* IFF_TUN or IFF_TAP; 0xff: it is none */
	uint8_t persist, other; /* other: the rest of what the tun driver tells */
	uint32_t flags, mtu, queue;
	bool reverse_path, address;
	const char *unlike, *unfit; /* of another type, or persistence */
} Device;

static const Device devices[LINK_FALLBACK] = {
	[LINK_LOOPBACK] = { .name = "lo",
			    .kind = "",
			    .type = ARPHRD_LOOPBACK,
			    .tun_type = 0xff,
			    .persist = 0xff,
			    .other = 0xff,
			    .flags = IFF_UP | IFF_LOOPBACK,
			    .mtu = 65536,
			    .unlike = "it is no loopback device" },
	[LINK_JAIL] = { .name = ROUTES_JAIL_DEVICE,
			.kind = "tun",
			.type = ARPHRD_ETHER,
			.tun_type = IFF_TAP,
			.persist = 1,
			.flags = IFF_UP | IFF_BROADCAST | IFF_MULTICAST,
			.mtu = LINK_MTU,
			.reverse_path = true,
			.address = true,
			.unlike = "it is no tap",
			.unfit = "it is not persistent, so that its filter would go with pasta" },
	[LINK_LEDGER] = { .name = ROUTES_LEDGER_DEVICE,
			  .kind = "tun",
			  .type = ARPHRD_NONE,
			  .tun_type = IFF_TUN,
			  .flags = IFF_UP | IFF_POINTOPOINT | IFF_NOARP | IFF_MULTICAST,
			  .mtu = LEDGER_MTU,
			  .queue = LEDGER_QUEUE,
			  .unlike = "it is no tun",
			  .unfit = "it is persistent, so that it would stay without a reader" },
};

/* A property that no device of ours has. value: 0 is as good as none. */
static const struct {
	uint16_t attribute;
	bool value;
	const char *what;
} strange[] = {
	{ IFLA_MASTER, true, "it has a master device" },
	{ IFLA_LINK_NETNSID, false, "it is tied to another namespace" },
	{ IFLA_GROUP, true, "it is in a device group" },
	{ IFLA_PROMISCUITY, true, "it is promiscuous" },
	{ IFLA_LINKMODE, true, "its link mode is dormant" },
	{ IFLA_PROTO_DOWN, true, "it is down by protocol" },
	{ IFLA_IFALIAS, false, "it has an alias" },
	{ PROPERTY_LIST, false, "it has an alternative name" },
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

static bool is_zero(const struct rtattr *attribute)
{
	const uint8_t *bytes = RTA_DATA(attribute);

	for (size_t i = 0; i < attribute_size(attribute); i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static int decode_strange(const struct rtattr **slots, Link *link)
{
	const struct rtattr *xdp[IFLA_XDP_ATTACHED + 1] = { NULL };
	uint32_t below = 0;
	uint8_t attached = 0;

	if (attribute_u32(slots[IFLA_LINK], &below) < 0 ||
	    (slots[IFLA_XDP] && (attributes_nested(slots[IFLA_XDP], xdp, ELEMENTSOF(xdp), NULL) < 0 ||
				 attribute_u8(xdp[IFLA_XDP_ATTACHED], &attached) < 0)))
		return -EBADMSG;
	if (attached != 0)
		link->strange = "an XDP program is attached";
	else if (below != 0 && below != link->index)
		link->strange = "it lies on another device";
	for (size_t i = 0; !link->strange && i < ELEMENTSOF(strange); i++)
		if (slots[strange[i].attribute] &&
		    !(strange[i].value && is_zero(slots[strange[i].attribute])))
			link->strange = strange[i].what;
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

static bool is_fallback(const Link *link)
{
	for (size_t i = 0; i < ELEMENTSOF(fallback_devices); i++)
		if (streq(link->name, fallback_devices[i].name))
			return streq(link->kind, fallback_devices[i].kind);
	return false;
}

LinkPart link_part(const Link *link, const JailDevices *meant)
{
	const uint32_t indexes[] = { meant->lo, meant->jail, meant->ledger };

	for (size_t i = 0; i < ELEMENTSOF(indexes); i++)
		if (link->index == indexes[i] && streq(link->name, devices[i].name))
			return (LinkPart)i;
	return is_fallback(link) && !(link->flags & IFF_UP) ? LINK_FALLBACK : LINK_OTHER;
}

static const char *link_difference(const Link *link, const Device *device)
{
	static const uint8_t far_end[6] = ROUTES_FAR_END_MAC;

	if (link->type != device->type || !streq(link->kind, device->kind) ||
	    link->tun_type != device->tun_type)
		return device->unlike;
	if (link->tun_persist != device->persist)
		return device->unfit;
	if (link->tun_pi != device->other || link->tun_vnet_header != device->other ||
	    link->tun_multi_queue != device->other)
		return "its frames have extra headers or several queues";
	if ((link->flags & ~FLAGS_OF_WIRE) != device->flags)
		return "its flags are not those of such a device that is up";
	if (link->mtu != device->mtu)
		return "its MTU was changed";
	if (device->reverse_path && link->reverse_path != 1)
		return "it lets datagrams of any sender in (rp_filter)";
	if (device->address && (!link->has_address || (link->address[0] & 1) ||
				memcmp(link->address, far_end, sizeof(far_end)) == 0))
		return "its link address cannot be used";
	return NULL;
}

int link_check(const Link *link, const JailDevices *meant, char **ret_problem)
{
	LinkPart part = link_part(link, meant);
	const char *what = part == LINK_OTHER      ? "it was not meant to be there"
			   : part == LINK_FALLBACK ? NULL
						   : link_difference(link, &devices[part]);

	what = what ?: link->strange;
	return what ? refuse(ret_problem, -EREMCHG, "network device %s: %s", link->name, what) : 0;
}

int link_compare(const JailDevices *meant, const MessageList *found, char **ret_problem)
{
	unsigned seen = meant->ledger == 0 ? 1u << LINK_LEDGER : 0;
	const struct nlmsghdr *header;
	size_t offset = 0;

	while ((header = message_list_next(found, &offset))) {
		unsigned bit;
		Link link;
		int r;

		if (header->nlmsg_type != RTM_NEWLINK)
			continue;
		r = link_parse(header, &link);
		if (r >= 0)
			r = link_check(&link, meant, ret_problem);
		if (r < 0)
			return r;
		bit = 1u << link_part(&link, meant);
		if (bit != 1u << LINK_FALLBACK && (seen & bit))
			return refuse(ret_problem, -EREMCHG, "network device %s: it is there twice",
				      link.name);
		seen |= bit;
	}
	for (size_t i = 0; i < LINK_FALLBACK; i++)
		if (!(seen & 1u << i))
			return refuse(ret_problem, -EREMCHG, "network device %s: it is gone or was replaced",
				      devices[i].name);
	return 0;
}

bool link_is_removal(const struct nlmsghdr *header, const Link *link)
{
	return header->nlmsg_type == RTM_DELLINK && !is_fallback(link);
}

int link_find(Netlink *netlink, const char *name, Link *ret)
{
	_cleanup_(message_list_done) MessageList list = { 0 };
	struct nl_msg *message = NULL;
	const struct nlmsghdr *header;
	size_t offset = 0;
	Link link;
	int r = rtnl_link_build_get_request(0, name, &message);

	r = netlink_ask(netlink, netlink_built(r, message), &list);
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

/* ---- the steps ---- */

/* Takes change, whose flags are switched on; NULL is -ENOMEM. */
static int device_change(Netlink *netlink, uint32_t index, struct rtnl_link *change, char **ret_text)
{
	struct nl_msg *message = NULL;
	int r = -ENOMEM;

	if (change) {
		rtnl_link_set_ifindex(change, (int)index);
		r = rtnl_link_build_add_request(change, 0, &message);
	}
	rtnl_link_put(change);
	return netlink_program_one(netlink, netlink_built(r, message), ret_text);
}

static int device_up(const Denial *denial, uint32_t index, const Device *device, char **ret_problem)
{
	struct rtnl_link *change = rtnl_link_alloc();
	_cleanup_free_ char *text = NULL;
	int r;

	if (change) {
		rtnl_link_set_flags(change, IFF_UP);
		if (device != &devices[LINK_LOOPBACK])
			rtnl_link_set_mtu(change, device->mtu);
		if (device->queue > 0)
			rtnl_link_set_txqlen(change, device->queue);
	}
	r = device_change(denial->netlink, index, change, &text);
	return r < 0 ? refuse(ret_problem, r, "cannot bring %s up: %s", device->name, text ?: strerror(-r))
		     : 0;
}

/* No link-local address of its own, in case that IPv6 could not be switched off. A kernel without it refuses.
 */
static void without_generated_address(const Denial *denial, uint32_t index)
{
	struct rtnl_link *change = rtnl_link_alloc();

	if (change)
		(void)rtnl_link_inet6_set_addr_gen_mode(change, IN6_ADDR_GEN_MODE_NONE);
	(void)device_change(denial->netlink, index, change, NULL);
}

int link_step_loopback(Denial *denial, MeantKind kind, char **ret_problem)
{
	return device_up(denial, denial->devices.lo, &devices[LINK_LOOPBACK], ret_problem);
}

/*
 * pasta opens the port that a datagram came from on all of the host's addresses, and hands in what arrives
 * there: other machines and programs of the host could talk to the agent. With the filter the kernel looks
 * the sender up as if it answered; a denied one ends at its prohibit route, and the datagram is dropped
 * (ip_fib_validate_source). By netlink, since /proc/sys may be read-only.
 */
int link_step_reverse_path(Denial *denial, MeantKind kind, char **ret_problem)
{
	struct rtnl_link *change = rtnl_link_alloc();
	_cleanup_free_ char *text = NULL;
	int r;

	if (change && rtnl_link_inet_set_conf(change, IPV4_DEVCONF_RP_FILTER, 1) < 0) {
		rtnl_link_put(change);
		change = NULL;
	}
	r = device_change(denial->netlink, denial->devices.jail, change, &text);
	if (r < 0)
		return refuse(ret_problem, r, "cannot filter senders by their reverse path: %s",
			      text ?: strerror(-r));
	return 0;
}

int link_step_jail(Denial *denial, MeantKind kind, char **ret_problem)
{
	without_generated_address(denial, denial->devices.jail);
	return device_up(denial, denial->devices.jail, &devices[LINK_JAIL], ret_problem);
}

int link_step_ledger(Denial *denial, MeantKind kind, char **ret_problem)
{
	int r;

	if (denial->devices.ledger == 0)
		return 0;
	without_generated_address(denial, denial->devices.ledger);
	r = device_up(denial, denial->devices.ledger, &devices[LINK_LEDGER], ret_problem);
	return r < 0 ? r : denial_send(denial, kind, ret_problem);
}
