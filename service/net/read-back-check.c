/* SPDX-License-Identifier: MIT */
#include "service/net/read-back.h"

#include "service/net/address.h"
#include "service/net/ledger-device.h"
#include "service/net/link.h"
#include "service/net/neighbour.h"
#include "service/net/rule.h"

#include <linux/neighbour.h>
#include <net/if_arp.h>

/* IFF_ flags that come and go with the wire. IFF_LOWER_UP and IFF_DORMANT are not in every <net/if.h>. */
#define FLAG_LOWER_UP 0x10000u
#define FLAGS_OF_WIRE ((uint32_t)IFF_RUNNING | FLAG_LOWER_UP)
#define LOOPBACK_MTU 65536u
#define TUN_TYPE_TAP 2 /* IFF_TAP of linux/if_tun.h, as IFLA_TUN_TYPE has it */

static int differs(char **ret_problem, const Link *link, const char *what)
{
	return refuse(ret_problem, -EREMCHG, "network device %s: %s", link->name, what);
}

static int check_loopback(const Link *link, char **ret_problem)
{
	if (link->type != ARPHRD_LOOPBACK)
		return differs(ret_problem, link, "it is no loopback device");
	if ((link->flags & ~FLAGS_OF_WIRE) != (IFF_UP | IFF_LOOPBACK))
		return differs(ret_problem, link, "its flags are not those of a loopback device that is up");
	if (link->mtu != LOOPBACK_MTU)
		return differs(ret_problem, link, "its MTU was changed");
	if (link->kind[0])
		return differs(ret_problem, link, "it is a virtual device");
	return 0;
}

static int check_jail(const Link *link, char **ret_problem)
{
	static const uint8_t far_end[6] = ROUTES_FAR_END_MAC;

	if (link->type != ARPHRD_ETHER || !streq(link->kind, "tun") || link->tun_type != TUN_TYPE_TAP)
		return differs(ret_problem, link, "it is no tap");
	if (link->tun_persist != 1)
		return differs(ret_problem, link,
			       "it is not persistent, so that its filter would go with pasta");
	if (link->tun_pi != 0 || link->tun_vnet_header != 0 || link->tun_multi_queue != 0)
		return differs(ret_problem, link, "its frames have extra headers or several queues");
	if ((link->flags & ~FLAGS_OF_WIRE) != (IFF_UP | IFF_BROADCAST | IFF_MULTICAST))
		return differs(ret_problem, link, "its flags are not those of an Ethernet device that is up");
	if (link->mtu != LINK_MTU)
		return differs(ret_problem, link, "its MTU was changed");
	if (link->reverse_path != 1)
		return differs(ret_problem, link, "it lets datagrams of any sender in (rp_filter)");
	if (!link->has_address || (link->address[0] & 1) ||
	    memcmp(link->address, far_end, sizeof(far_end)) == 0)
		return differs(ret_problem, link, "its link address cannot be used");
	return 0;
}

typedef enum LinkPart {
	LINK_LOOPBACK,
	LINK_JAIL,
	LINK_LEDGER,
	LINK_FALLBACK, /* of a kernel with tunnel drivers; never up */
	LINK_OTHER,
} LinkPart;

static LinkPart part_of(const Link *link, const Denial *denial)
{
	if (link->index == (uint32_t)denial->lo_index && streq(link->name, "lo"))
		return LINK_LOOPBACK;
	if (link->index == (uint32_t)denial->jail_index && streq(link->name, ROUTES_JAIL_DEVICE))
		return LINK_JAIL;
	if (denial->ledger_index != 0 && link->index == (uint32_t)denial->ledger_index &&
	    streq(link->name, ROUTES_LEDGER_DEVICE))
		return LINK_LEDGER;
	return link_is_fallback(link) && !(link->flags & IFF_UP) ? LINK_FALLBACK : LINK_OTHER;
}

int read_back_check_link(const Link *link, const Denial *denial, char **ret_problem)
{
	int r = 0;

	switch (part_of(link, denial)) {
	case LINK_LOOPBACK:
		r = check_loopback(link, ret_problem);
		break;
	case LINK_JAIL:
		r = check_jail(link, ret_problem);
		break;
	case LINK_LEDGER:
		r = ledger_device_check(link, ret_problem);
		break;
	case LINK_FALLBACK:
		break;
	case LINK_OTHER:
		return differs(ret_problem, link, "it was not meant to be there");
	}
	return r < 0 || !link->strange ? r : differs(ret_problem, link, link->strange);
}

static int check_links(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	static const struct {
		LinkPart part;
		const char *name;
	} needed[] = { { LINK_JAIL, ROUTES_JAIL_DEVICE },
		       { LINK_LEDGER, ROUTES_LEDGER_DEVICE },
		       { LINK_LOOPBACK, "lo" } };
	const struct nlmsghdr *header;
	unsigned seen = 0;
	size_t offset = 0;

	while ((header = message_list_next(&state->links, &offset))) {
		unsigned bit;
		Link link;
		int r = link_parse(header, &link);

		if (r < 0)
			return r;
		r = read_back_check_link(&link, denial, ret_problem);
		if (r < 0)
			return r;
		bit = 1u << part_of(&link, denial);
		if (bit != 1u << LINK_FALLBACK && (seen & bit))
			return differs(ret_problem, &link, "it was not meant to be there");
		seen |= bit;
	}
	if (denial->ledger_index == 0)
		seen |= 1u << LINK_LEDGER;
	for (size_t i = 0; i < ELEMENTSOF(needed); i++)
		if (!(seen & 1u << needed[i].part))
			return refuse(ret_problem, -EREMCHG, "network device %s: it is gone or was replaced",
				      needed[i].name);
	return 0;
}

static int check_address(const Address *address, const Denial *denial, bool seen[2], char **ret_problem)
{
	const char *what = NULL;
	char name[ADDRESS_TEXT_MAX];
	int which = -1;

	if (address->device == (uint32_t)denial->lo_index) {
		if (address->local == 0x7f000001 && address->length == 8)
			which = 0;
		else if (address->local == ROUTES_SOURCE && address->length == 32)
			which = 1;
	}
	if (which < 0 || seen[which])
		what = "was not meant to be there";
	else if (address->peer != address->local)
		what = "has a peer";
	else if (address->scope != (which == 0 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE))
		what = "has another scope than was meant";
	else if (address->flags != IFA_F_PERMANENT || !address->forever)
		what = "has other flags than were meant, or a lifetime";
	else if (address->protocol != 0 && !(which == 0 && address->protocol == 1))
		what = "has another origin than was meant";
	else if (!streq(address->label, "lo"))
		what = "has a label that was not meant";
	else if (address->attribute != 0)
		what = "has an attribute that was not meant";
	if (what)
		return refuse(ret_problem, -EREMCHG, "address %s %s", address_to_text(address, name), what);
	seen[which] = true;
	return 0;
}

/* Where IPv6 could not be switched off, nothing beyond the loopback and link-local addresses is let pass. */
static int check_address6(const Address *address, const Denial *denial, char **ret_problem)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	char name[ADDRESS_TEXT_MAX];

	if (!denial->ipv6_off) {
		if (address->device == (uint32_t)denial->lo_index && address->length == 128 &&
		    memcmp(address->bytes, loopback, sizeof(loopback)) == 0)
			return 0;
		if (address->device == (uint32_t)denial->jail_index && address->length == 64 &&
		    address->bytes[0] == 0xfe && address->bytes[1] == 0x80)
			return 0;
	}
	return refuse(ret_problem, -EREMCHG, "IPv6 address %s was not meant to be there",
		      address_to_text(address, name));
}

static int check_addresses(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	const struct nlmsghdr *header;
	bool seen[2] = { false, false };
	size_t offset = 0;

	while ((header = message_list_next(&state->addresses, &offset))) {
		Address address;
		int r = address_decode(header, &address);

		if (r == -EAFNOSUPPORT)
			return refuse(ret_problem, -EREMCHG, "there is an address of another family than IP");
		if (r < 0)
			return r;
		r = address.family == AF_INET ? check_address(&address, denial, seen, ret_problem)
					      : check_address6(&address, denial, ret_problem);
		if (r < 0)
			return r;
	}
	if (!seen[0] || !seen[1])
		return refuse(ret_problem, -EREMCHG, "address %s is missing on lo",
			      seen[0] ? "192.0.0.2" : "127.0.0.1/8");
	return 0;
}

bool read_back_neighbour_is_kernels(const Neighbour *neighbour, const Denial *denial)
{
	/* Packets to itself never leave; the kernel enters what it looped back. */
	if (neighbour->device == (uint32_t)denial->lo_index ||
	    /* A tun has no link addresses. */
	    (denial->ledger_index != 0 && neighbour->device == (uint32_t)denial->ledger_index))
		return neighbour->state == NUD_NOARP && neighbour->flags == 0;
	return neighbour->device == (uint32_t)denial->jail_index &&
	       (neighbour->family != AF_INET || neighbour->address != ROUTES_FAR_END) &&
	       neighbour_is_harmless(neighbour);
}

static int check_neighbour(const Neighbour *neighbour, const Denial *denial, bool *seen, char **ret_problem)
{
	static const uint8_t far_end[6] = ROUTES_FAR_END_MAC;
	const char *what = NULL;
	char name[ADDRESS_TEXT_MAX];

	if (read_back_neighbour_is_kernels(neighbour, denial))
		return 0;
	if (neighbour->device == (uint32_t)denial->jail_index && neighbour->family == AF_INET &&
	    neighbour->address == ROUTES_FAR_END && !*seen) {
		if (!neighbour->has_mac || memcmp(neighbour->mac, far_end, sizeof(far_end)) != 0)
			what = "has another link address than was meant";
		else if (neighbour->state != NUD_PERMANENT)
			what = "is not permanent";
		else if (neighbour->flags != 0)
			what = "has flags that were not meant";
		else if (neighbour->type != RTN_UNICAST)
			what = "has another type than was meant";
		else if (neighbour->attribute != 0)
			what = "has an attribute that was not meant";
		*seen = true;
	} else
		what = "was not meant to be there";
	if (what)
		return refuse(ret_problem, -EREMCHG, "neighbour %s %s", neighbour_to_text(neighbour, name),
			      what);
	return 0;
}

static int check_neighbours(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	const struct nlmsghdr *header;
	char name[ADDRESS_TEXT_MAX];
	Neighbour neighbour;
	bool seen = false;
	size_t offset = 0;
	int r;

	while ((header = message_list_next(&state->neighbours, &offset))) {
		r = neighbour_decode(header, &neighbour);
		if (r == -EAFNOSUPPORT)
			return refuse(ret_problem, -EREMCHG,
				      "there is a neighbour of another family than IP");
		if (r < 0)
			return r;
		r = check_neighbour(&neighbour, denial, &seen, ret_problem);
		if (r < 0)
			return r;
	}
	if (!seen)
		return refuse(ret_problem, -EREMCHG, "neighbour %s is missing on " ROUTES_JAIL_DEVICE,
			      ipv4_to_text(ROUTES_FAR_END, 32, name));

	offset = 0;
	header = message_list_next(&state->proxies, &offset);
	if (header) {
		r = neighbour_decode(header, &neighbour);
		return r < 0 ? r
			     : refuse(ret_problem, -EREMCHG, "neighbour %s is a proxy that was not meant",
				      neighbour_to_text(&neighbour, name));
	}
	return 0;
}

/* none: a kernel without this family has no rules; the dump is empty then. */
static int check_rules(const MessageList *list, uint8_t family, bool none, char **ret_problem)
{
	const struct nlmsghdr *header;
	unsigned seen = 0;
	size_t offset = 0;

	if (none && list->n_messages == 0)
		return 0;
	while ((header = message_list_next(list, &offset))) {
		Rule rule;
		int r = rule_decode(header, &rule);

		if (r == -EAFNOSUPPORT || (r >= 0 && rule.family != family))
			return -EBADMSG;
		if (r < 0)
			return r;
		r = rule_is_kernels(&rule, ret_problem);
		if (r < 0)
			return r;
		if (seen & 1u << r)
			return refuse(ret_problem, -EREMCHG, "there is another %s rule of priority %u",
				      family == AF_INET ? "IPv4" : "IPv6", rule.priority);
		seen |= 1u << r;
	}
	for (unsigned i = 0; i < rules_of_kernel(family); i++)
		if (!(seen & 1u << i))
			return refuse(ret_problem, -EREMCHG, "the kernel's %s rule of priority %u is missing",
				      family == AF_INET ? "IPv4" : "IPv6", rule_kernel_priority(i));
	return 0;
}

static int check_lookup(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	const Route *route = &state->public_route;
	char name[ADDRESS_TEXT_MAX];

	ipv4_to_text(state->public_address, 32, name);
	if (state->lookup < 0)
		return refuse(ret_problem, -EREMCHG, "the public address %s has no route: %s", name,
			      strerror(-state->lookup));
	if (route->family != AF_INET || route->type != RTN_UNICAST ||
	    route->device != (uint32_t)denial->jail_index || !route->has_gateway ||
	    route->gateway != ROUTES_FAR_END || !route->has_source || route->source != ROUTES_SOURCE)
		return refuse(ret_problem, -EREMCHG,
			      "the public address %s is not reached by way of " ROUTES_JAIL_DEVICE, name);
	return 0;
}

int read_back_check(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	int r;

	r = check_links(state, denial, ret_problem);
	if (r >= 0)
		r = check_addresses(state, denial, ret_problem);
	if (r >= 0)
		r = check_neighbours(state, denial, ret_problem);
	if (r >= 0)
		r = check_rules(&state->rules, AF_INET, false, ret_problem);
	if (r >= 0)
		r = check_rules(&state->rules6, AF_INET6, true, ret_problem);
	if (r >= 0 && state->nexthops.n_messages > 0)
		r = refuse(ret_problem, -EREMCHG, "there is a nexthop object");
	if (r >= 0)
		r = read_back_check_routes(state, denial, ret_problem);
	if (r >= 0)
		r = check_lookup(state, denial, ret_problem);
	return r;
}
