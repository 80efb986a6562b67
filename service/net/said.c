/* SPDX-License-Identifier: MIT */
#include "service/net/said.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>

static size_t body_size(uint16_t type)
{
	switch (type) {
	case RTM_NEWROUTE:
		return sizeof(struct rtmsg);
	case RTM_NEWADDR:
		return sizeof(struct ifaddrmsg);
	case RTM_NEWNEIGH:
		return sizeof(struct ndmsg);
	case RTM_NEWRULE:
		return sizeof(struct fib_rule_hdr);
	case RTM_NEWNEXTHOP:
		return sizeof(struct nhmsg);
	default:
		return 0;
	}
}

/* A prefix's address; without one it is all zeros. */
static int key_address(SaidKey *key, const struct rtattr *attribute, bool needed)
{
	size_t size = key->family == AF_INET ? 4 : key->family == AF_INET6 ? 16 : 0;

	if (size == 0)
		return 0; /* of a family that nobody means */
	if (key->length > 8 * size || (needed && !attribute))
		return -EBADMSG;
	return attribute_bytes(attribute, key->address, size);
}

static int said_key(Said *said)
{
	const struct rtattr **slots = said->slots;
	SaidKey *key = &said->key;
	const struct ifaddrmsg *address = said->body;
	const struct ndmsg *neighbour = said->body;
	const struct rtmsg *route = said->body;

	key->family = *(const uint8_t *)said->body; /* the first of each */
	switch (key->type) {
	case RTM_NEWROUTE:
		key->length = route->rtm_dst_len;
		key->table = route->rtm_table;
		return attribute_u32(slots[RTA_TABLE], &key->table)
			       ?: attribute_u32(slots[RTA_PRIORITY], &key->metric)
			       ?: key_address(key, slots[RTA_DST], key->length > 0);
	case RTM_NEWADDR:
		key->length = address->ifa_prefixlen;
		key->device = address->ifa_index;
		return key_address(key, slots[IFA_LOCAL] ?: slots[IFA_ADDRESS], true);
	case RTM_NEWNEIGH:
		key->device = (uint32_t)neighbour->ndm_ifindex;
		key->proxy = neighbour->ndm_flags & NTF_PROXY;
		return key_address(key, slots[NDA_DST], true);
	case RTM_NEWRULE:
		return attribute_u32(slots[FRA_PRIORITY], &key->metric);
	default:
		return attribute_u32(slots[NHA_ID], &key->table);
	}
}

int said_read(const struct nlmsghdr *header, Said *ret)
{
	uint16_t type = header->nlmsg_type & (uint16_t)~3u;
	const void *attributes;
	size_t size;

	*ret = (Said){ .header = header, .key.type = type };
	if (header->nlmsg_type > type + 1 || body_size(type) == 0)
		return -EBADMSG;
	ret->body = message_body(header, body_size(type), &attributes, &size);
	if (!ret->body || attributes_sort(attributes, size, ret->slots, SAID_SLOTS, &ret->unknown) < 0)
		return -EBADMSG;
	return said_key(ret);
}

int said_name(const Said *said, char **ret)
{
	const SaidKey *key = &said->key;
	const char *version = key->family == AF_INET6 ? "IPv6 " : "";
	_cleanup_free_ char *name = NULL;
	char text[ADDRESS_TEXT_MAX];
	uint32_t address;
	int r;

	memcpy(&address, key->address, sizeof(address));
	if (key->family == AF_INET6)
		ipv6_to_text(key->address, key->type == RTM_NEWNEIGH ? 128 : key->length, text);
	else if (key->family == AF_INET)
		ipv4_to_text(ntohl(address), key->type == RTM_NEWNEIGH ? 32 : key->length, text);
	else
		snprintf(text, sizeof(text), "of the family %u", key->family);
	switch (key->type) {
	case RTM_NEWROUTE:
		r = asprintf(&name, "the %sroute to %s in table %u with metric %u", version, text, key->table,
			     key->metric);
		break;
	case RTM_NEWADDR:
		r = asprintf(&name, "the %saddress %s", version, text);
		break;
	case RTM_NEWNEIGH:
		r = asprintf(&name, "the %sneighbour %s", key->proxy ? "proxy for the " : "", text);
		break;
	case RTM_NEWRULE:
		r = asprintf(&name, "the %s rule of priority %u",
			     key->family == AF_INET    ? "IPv4"
			     : key->family == AF_INET6 ? "IPv6"
						       : text,
			     key->metric);
		break;
	default:
		r = asprintf(&name, "the nexthop object %u", key->table);
	}
	if (r < 0) {
		name = NULL;
		return -ENOMEM;
	}
	*ret = TAKE_PTR(name);
	return 0;
}

/* ---- the comparison ---- */

typedef enum FieldRule {
	FIELD_EQUAL,
	FIELD_KEY,      /* part of the key, by which the two have been found to be of one thing */
	FIELD_VOLATILE, /* counters and times */
	FIELD_KERNELS,  /* who made it: absent or 0 where the kernel does not say */
	FIELD_NONE,     /* written by the kernel where there is none: all ones */
	FIELD_UNMEANT,  /* of no message of ours; here for its name */
} FieldRule;

/*
 * What is compared, in this order, and what is not. An attribute that is not listed is a difference, whatever
 * it says.
 */
typedef struct Field {
	uint16_t type;
	uint16_t at;   /* the attribute; of a header (size > 0) the offset */
	uint8_t size;  /* of a header's field */
	uint8_t first; /* of an attribute's bytes that count, or 0 for all */
	FieldRule rule;
	uint32_t free; /* bits of a header's field */
	const char *name;
} Field;

#define HEADER(structure, member) \
	.at = offsetof(struct structure, member), .size = sizeof(((struct structure *)NULL)->member)

/* clang-format off */
static const Field fields[] = {
	{ RTM_NEWROUTE, RTA_SRC, .rule = FIELD_UNMEANT, .name = "a source prefix" },
	{ RTM_NEWROUTE, RTA_IIF, .rule = FIELD_UNMEANT, .name = "an input device" },
	{ RTM_NEWROUTE, RTA_METRICS, .rule = FIELD_UNMEANT, .name = "path metrics" },
	{ RTM_NEWROUTE, RTA_MULTIPATH, .rule = FIELD_UNMEANT, .name = "several next hops" },
	{ RTM_NEWROUTE, RTA_FLOW, .rule = FIELD_UNMEANT, .name = "a realm" },
	{ RTM_NEWROUTE, RTA_MARK, .rule = FIELD_UNMEANT, .name = "a mark" },
	{ RTM_NEWROUTE, RTA_VIA, .rule = FIELD_UNMEANT, .name = "a next hop of another family" },
	{ RTM_NEWROUTE, RTA_NEWDST, .rule = FIELD_UNMEANT, .name = "a new destination" },
	{ RTM_NEWROUTE, RTA_ENCAP_TYPE, .rule = FIELD_UNMEANT, .name = "an encapsulation" },
	{ RTM_NEWROUTE, RTA_ENCAP, .rule = FIELD_UNMEANT, .name = "an encapsulation" },
	{ RTM_NEWROUTE, RTA_EXPIRES, .rule = FIELD_UNMEANT, .name = "an expiry" },
	{ RTM_NEWROUTE, RTA_NH_ID, .rule = FIELD_UNMEANT, .name = "a nexthop object" },
	{ RTM_NEWROUTE, RTA_DST, .rule = FIELD_KEY },
	{ RTM_NEWROUTE, RTA_TABLE, .rule = FIELD_KEY },
	{ RTM_NEWROUTE, RTA_PRIORITY, .rule = FIELD_KEY },
	{ RTM_NEWROUTE, RTA_OIF, .name = "device" },
	{ RTM_NEWROUTE, RTA_GATEWAY, .name = "gateway" },
	{ RTM_NEWROUTE, RTA_PREFSRC, .name = "source" },
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_type), .name = "type" },
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_scope), .name = "scope" },
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_tos), .name = "type of service" },
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_src_len), .name = "source prefix" },
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_protocol), .name = "protocol" },
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_table), .name = "table in its header" },
	/* The wire comes and goes: no part of what was meant. */
	{ RTM_NEWROUTE, HEADER(rtmsg, rtm_flags), .free = RTNH_F_LINKDOWN, .name = "set of flags" },

	{ RTM_NEWADDR, IFA_LOCAL, .rule = FIELD_KEY },
	{ RTM_NEWADDR, IFA_ADDRESS, .name = "peer" },
	/* The two lifetimes; behind them stand the times of its making and of its last change. */
	{ RTM_NEWADDR, IFA_CACHEINFO, .first = offsetof(struct ifa_cacheinfo, cstamp), .name = "lifetime" },
	{ RTM_NEWADDR, HEADER(ifaddrmsg, ifa_scope), .name = "scope" },
	{ RTM_NEWADDR, IFA_FLAGS, .name = "set of flags" },
	{ RTM_NEWADDR, HEADER(ifaddrmsg, ifa_flags), .name = "set of flags in its header" },
	{ RTM_NEWADDR, ADDRESS_PROTOCOL, .rule = FIELD_KERNELS, .name = "origin" },
	{ RTM_NEWADDR, IFA_LABEL, .name = "label" },

	{ RTM_NEWNEIGH, NDA_DST, .rule = FIELD_KEY },
	{ RTM_NEWNEIGH, NDA_CACHEINFO, .rule = FIELD_VOLATILE },
	{ RTM_NEWNEIGH, NDA_PROBES, .rule = FIELD_VOLATILE },
	{ RTM_NEWNEIGH, NDA_LLADDR, .name = "link address" },
	{ RTM_NEWNEIGH, HEADER(ndmsg, ndm_state), .name = "state" },
	{ RTM_NEWNEIGH, HEADER(ndmsg, ndm_flags), .name = "set of flags" },
	{ RTM_NEWNEIGH, HEADER(ndmsg, ndm_type), .name = "type" },

	{ RTM_NEWRULE, FRA_SUPPRESS_PREFIXLEN, .rule = FIELD_NONE, .name = "a suppressed prefix length" },
	{ RTM_NEWRULE, FRA_DST, .rule = FIELD_UNMEANT, .name = "a destination" },
	{ RTM_NEWRULE, FRA_SRC, .rule = FIELD_UNMEANT, .name = "a source" },
	{ RTM_NEWRULE, FRA_IIFNAME, .rule = FIELD_UNMEANT, .name = "an input device" },
	{ RTM_NEWRULE, FRA_OIFNAME, .rule = FIELD_UNMEANT, .name = "an output device" },
	{ RTM_NEWRULE, FRA_GOTO, .rule = FIELD_UNMEANT, .name = "a jump" },
	{ RTM_NEWRULE, FRA_FWMARK, .rule = FIELD_UNMEANT, .name = "a mark" },
	{ RTM_NEWRULE, FRA_FWMASK, .rule = FIELD_UNMEANT, .name = "a mark's mask" },
	{ RTM_NEWRULE, FRA_FLOW, .rule = FIELD_UNMEANT, .name = "a realm" },
	{ RTM_NEWRULE, FRA_TUN_ID, .rule = FIELD_UNMEANT, .name = "a tunnel" },
	{ RTM_NEWRULE, FRA_SUPPRESS_IFGROUP, .rule = FIELD_UNMEANT, .name = "a suppressed device group" },
	{ RTM_NEWRULE, FRA_L3MDEV, .rule = FIELD_UNMEANT, .name = "a device's table" },
	{ RTM_NEWRULE, FRA_UID_RANGE, .rule = FIELD_UNMEANT, .name = "a user range" },
	{ RTM_NEWRULE, FRA_IP_PROTO, .rule = FIELD_UNMEANT, .name = "a protocol" },
	{ RTM_NEWRULE, FRA_SPORT_RANGE, .rule = FIELD_UNMEANT, .name = "a source port" },
	{ RTM_NEWRULE, FRA_DPORT_RANGE, .rule = FIELD_UNMEANT, .name = "a destination port" },
	{ RTM_NEWRULE, FRA_PRIORITY, .rule = FIELD_KEY },
	{ RTM_NEWRULE, FRA_PAD, .rule = FIELD_VOLATILE },
	{ RTM_NEWRULE, FRA_TABLE, .name = "table" },
	{ RTM_NEWRULE, HEADER(fib_rule_hdr, table), .name = "table in its header" },
	{ RTM_NEWRULE, HEADER(fib_rule_hdr, action), .name = "action" },
	{ RTM_NEWRULE, HEADER(fib_rule_hdr, src_len), .name = "source" },
	{ RTM_NEWRULE, HEADER(fib_rule_hdr, dst_len), .name = "destination" },
	{ RTM_NEWRULE, HEADER(fib_rule_hdr, tos), .name = "type of service" },
	{ RTM_NEWRULE, HEADER(fib_rule_hdr, flags), .name = "set of flags" },
	{ RTM_NEWRULE, FRA_PROTOCOL, .rule = FIELD_KERNELS, .name = "protocol" },
};
/* clang-format on */

static const Field *field_of(uint16_t type, uint16_t attribute)
{
	for (size_t i = 0; i < ELEMENTSOF(fields); i++)
		if (fields[i].type == type && fields[i].size == 0 && fields[i].at == attribute)
			return &fields[i];
	return NULL;
}

static bool is_filled_with(const struct rtattr *attribute, uint8_t byte)
{
	const uint8_t *bytes = RTA_DATA(attribute);

	for (size_t i = 0; i < attribute_size(attribute); i++)
		if (bytes[i] != byte)
			return false;
	return true;
}

static bool is_same(const struct rtattr *a, const struct rtattr *b, size_t first)
{
	size_t size = attribute_size(a);

	return size == attribute_size(b) &&
	       memcmp(RTA_DATA(a), RTA_DATA(b), first > 0 ? MIN_OF(first, size) : size) == 0;
}

static bool header_is_fine(const Field *field, const void *found, const void *meant)
{
	uint32_t is = 0, ought = 0;

	memcpy(&is, (const uint8_t *)found + field->at, field->size);
	memcpy(&ought, (const uint8_t *)meant + field->at, field->size);
	return ((is ^ ought) & ~field->free) == 0;
}

static bool attribute_is_fine(const Field *field, const struct rtattr *is, const struct rtattr *ought)
{
	switch (field->rule) {
	case FIELD_KEY:
	case FIELD_VOLATILE:
		return true;
	case FIELD_UNMEANT:
		return !is;
	case FIELD_NONE:
		return !is || is_filled_with(is, 0xff);
	case FIELD_KERNELS:
		return !is || is_filled_with(is, 0) || (ought && is_same(is, ought, 0));
	case FIELD_EQUAL:
	default:
		return is && ought ? is_same(is, ought, field->first) : is == ought;
	}
}

int said_compare(const Said *found, const Said *meant, char **ret_what)
{
	uint16_t unknown = found->unknown;

	for (uint16_t i = 0; i < SAID_SLOTS && unknown == 0; i++)
		if (found->slots[i] && !field_of(found->key.type, i))
			unknown = i;
	if (unknown != 0)
		return asprintf(ret_what, "has the attribute %u", unknown) < 0 ? -ENOMEM : 0;
	for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
		const Field *field = &fields[i];
		bool named = field->rule == FIELD_UNMEANT || field->rule == FIELD_NONE;

		if (field->type != found->key.type ||
		    (field->size > 0
			     ? header_is_fine(field, found->body, meant->body)
			     : attribute_is_fine(field, found->slots[field->at], meant->slots[field->at])))
			continue;
		return asprintf(ret_what, named ? "has %s" : "has another %s than was meant", field->name) < 0
			       ? -ENOMEM
			       : 0;
	}
	return 1;
}

/* ---- the kernel's own ---- */

/* RFC 1112 §6.4 and RFC 2464 §7: what a multicast address is on the link; the tap's filter drops it. */
static bool is_multicast(const SaidKey *key, const uint8_t *mac)
{
	const uint8_t *address = key->address;

	if (key->family == AF_INET)
		return address[0] >> 4 == 0xe && mac[0] == 0x01 && mac[1] == 0x00 && mac[2] == 0x5e &&
		       mac[3] == (address[1] & 0x7f) && memcmp(mac + 4, address + 2, 2) == 0;
	return address[0] == 0xff && mac[0] == 0x33 && mac[1] == 0x33 &&
	       memcmp(mac + 2, address + 12, 4) == 0;
}

/* Unresolved, or the fixed mapping of a multicast or broadcast address. */
static bool is_harmless(const Said *said)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const struct ndmsg *body = said->body;
	uint8_t mac[6];

	if (body->ndm_flags != 0 || said->unknown != 0)
		return false;
	for (uint16_t i = 0; i < SAID_SLOTS; i++)
		if (said->slots[i] && !field_of(RTM_NEWNEIGH, i))
			return false;
	if (said->slots[NDA_LLADDR] && attribute_bytes(said->slots[NDA_LLADDR], mac, sizeof(mac)) < 0)
		return false;
	if (body->ndm_state == NUD_NONE || body->ndm_state == NUD_INCOMPLETE || body->ndm_state == NUD_FAILED)
		return true;
	return body->ndm_state == NUD_NOARP && said->slots[NDA_LLADDR] &&
	       (memcmp(mac, broadcast, sizeof(mac)) == 0 || is_multicast(&said->key, mac));
}

static bool neighbour_is_kernels(const Said *said, const JailDevices *devices)
{
	const uint32_t far_end = htonl(ROUTES_FAR_END);
	const struct ndmsg *body = said->body;
	const SaidKey *key = &said->key;

	/* Packets to itself never leave; the kernel enters what it looped back. A tun has no link addresses. */
	if (key->device == devices->lo || (devices->ledger != 0 && key->device == devices->ledger))
		return body->ndm_state == NUD_NOARP && body->ndm_flags == 0;
	return key->device == devices->jail &&
	       (key->family != AF_INET || memcmp(key->address, &far_end, sizeof(far_end)) != 0) &&
	       is_harmless(said);
}

/*
 * Where IPv6 could not be switched off, the kernel keeps addresses and routes of its own: loopback, link-local
 * and multicast. The tap's filter lets no frame to any of them out.
 */
static bool ipv6_is_kernels(const Said *said, const JailDevices *devices)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	const bool route = said->key.type == RTM_NEWROUTE;
	const struct rtmsg *body = said->body;
	const uint8_t *bytes = said->key.address;
	const uint8_t length = said->key.length;
	uint32_t device = said->key.device;

	if (devices->ipv6_off || said->key.family != AF_INET6)
		return false;
	if (route && (body->rtm_protocol != RTPROT_KERNEL || body->rtm_src_len != 0 || said->unknown != 0 ||
		      attribute_u32(said->slots[RTA_OIF], &device) < 0))
		return false;
	for (uint16_t i = 0; route && i < SAID_SLOTS; i++)
		if (said->slots[i] && i != RTA_DST && i != RTA_OIF && i != RTA_PRIORITY && i != RTA_TABLE &&
		    i != RTA_PREFSRC && i != RTA_CACHEINFO && i != RTA_PREF && i != RTA_UID)
			return false;
	if (device == devices->lo)
		return length == 128 && memcmp(bytes, loopback, sizeof(loopback)) == 0;
	if (device != devices->jail && !(route && devices->ledger != 0 && device == devices->ledger))
		return false;
	if (route && length >= 8 && bytes[0] == 0xff)
		return true;
	return (route ? length >= 64 : length == 64) && bytes[0] == 0xfe && bytes[1] == 0x80;
}

bool said_is_kernels(const Said *said, const JailDevices *devices)
{
	switch (said->key.type) {
	case RTM_NEWNEIGH:
		return neighbour_is_kernels(said, devices);
	case RTM_NEWADDR:
	case RTM_NEWROUTE:
		return ipv6_is_kernels(said, devices);
	default:
		return false;
	}
}
