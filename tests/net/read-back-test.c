/* SPDX-License-Identifier: MIT */

/*
 * A namespace that was closed properly, then changed in one way: each change must be refused, by a sentence
 * that names it.
 */

#include "tests/net/jail.h"

#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include <cmocka.h>

/* A route that finds its gateway by another route needs the far end's own out of the way. */
#define OPEN "route del local 192.0.0.1 dev jail0 table main;"
#define CLOSE ";route add local 192.0.0.1 dev jail0 table main proto static scope host"
#define WAY " via 192.0.0.1 dev jail0 onlink"
#define FULL_WAY WAY " src 192.0.0.2 proto static"
#define FAR_MAC "02:00:00:00:00:01"

typedef struct Mutation {
	const char *commands; /* words for ip(8), or "ipv6", "transient"; ';' between */
	const char *named;    /* the problem has this */
	bool ipv6_stays;      /* as if IPv6 could not be switched off */
} Mutation;

static const Mutation mutations[] = {
	/* routes: more than was meant */
	{ "route add 203.0.113.7" FULL_WAY, "the route to 203.0.113.7" },
	{ "route add 203.0.113.7" FULL_WAY " table 77", "table 77" },
	{ "route add default" FULL_WAY " table 253", "table 253" },
	{ "route add default" FULL_WAY " metric 100", "metric 100" },
	{ "route add 10.1.2.3" FULL_WAY " metric 7", "metric 7" },
	{ "route append default" WAY " src 192.0.0.2", "there twice" },
	{ "route append unreachable 10.0.0.0/8 metric 4096", "10.0.0.0/8" },
	{ "route append prohibit 10.0.0.0/8", "10.0.0.0/8" },
	{ "route add prohibit 10.0.0.0/8 metric 5", "metric 5" },
	{ "route add default dev jail0 metric 200", "metric 200" },
	{ "route add 203.0.113.0/24 dev deny0 src 192.0.0.2 proto static", "203.0.113.0/24" },
	{ "route add 10.20.0.0/16 dev jail0", "10.20.0.0/16" },
	{ "route add 10.20.0.0/16 dev lo", "10.20.0.0/16" },
	{ "route add local 203.0.113.9 dev lo table local", "203.0.113.9" },
	{ "route add broadcast 203.0.113.255 dev jail0 table local", "203.0.113.255" },
	{ "route add throw 10.20.0.0/16", "10.20.0.0/16" },
	{ "route add blackhole 8.8.4.4", "8.8.4.4" },
	/* routes: less */
	{ "route del prohibit 10.0.0.0/8 metric 4096", "10.0.0.0/8" },
	{ "route del prohibit 240.0.0.0/4 metric 4096", "240.0.0.0/4" },
	{ "route del 10.0.0.0/8 dev deny0", "10.0.0.0/8" },
	{ "route del 10.1.2.3", "10.1.2.3" },
	{ "route del 198.51.100.53", "198.51.100.53" },
	{ "route del default", "default" },
	{ "route del local 127.0.0.1 dev lo table local", "127.0.0.1" },
	{ "route del local 192.0.0.2 dev lo table local", "192.0.0.2" },
	{ "route del local 192.0.0.1 dev jail0 table main", "192.0.0.1" },
	{ "route del broadcast 127.255.255.255 dev lo table local", "127.255.255.255" },
	/* routes: other than was meant */
	{ "route del default;route add default" WAY " src 192.0.0.2 proto boot", "protocol" },
	{ "route del default;route add default" WAY " proto static", "source" },
	{ "route del default;route add default" WAY " src 127.0.0.1 proto static", "source" },
	{ "route del default;route add default" FULL_WAY " mtu 1400", "path metrics" },
	{ "route del default;route add default" FULL_WAY " metric 5", "metric 5" },
	{ "route del default;route add default" FULL_WAY " tos 0x10", "type of service" },
	{ "route del default;route add default via 192.0.0.9 dev jail0 onlink src 192.0.0.2 proto "
	  "static",
	  "gateway" },
	{ "route del default;route add default dev jail0 src 192.0.0.2 proto static scope global",
	  "gateway" },
	{ "route del default;route add default dev lo src 192.0.0.2 proto static scope global", "device" },
	{ OPEN "route add 192.0.0.1 dev jail0;route del default;"
	       "route add default via 192.0.0.1 dev jail0 src 192.0.0.2 proto static;route del 192.0.0.1 "
	       "dev jail0" CLOSE,
	  "flags" },
	{ "route del default;route add default proto static src 192.0.0.2 nexthop" WAY
	  " nexthop via 192.0.0.9 dev jail0 onlink",
	  "several next hops" },
	{ "nexthop add id 5" WAY, "nexthop object" },
	{ "nexthop add id 5" WAY ";route del default;route add default nhid 5 src 192.0.0.2 proto static",
	  "nexthop object" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;route add unreachable 10.0.0.0/8 metric 4096 proto "
	  "static",
	  "type" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;route add blackhole 10.0.0.0/8 metric 4096 proto static",
	  "type" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;route add prohibit 10.0.0.0/8 metric 4096", "protocol" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;route add prohibit 10.0.0.0/8 metric 4095 proto static",
	  "metric 4095" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;route add prohibit 10.0.0.0/9 metric 4096 proto static",
	  "10.0.0.0/9" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;"
	  "route add prohibit 10.0.0.0/8 metric 4096 proto static src 192.0.0.2",
	  "source" },
	{ "route del prohibit 10.0.0.0/8 metric 4096;route add prohibit 10.0.0.0/8 metric 4096 proto static "
	  "scope link",
	  "scope" },
	{ OPEN "route add local 192.0.0.1 dev lo table main proto static scope host", "device" },
	/* the ledger's routes */
	{ "route del 10.0.0.0/8 dev deny0;route add 10.0.0.0/8 dev jail0 src 192.0.0.2 proto static",
	  "device" },
	{ "route del 10.0.0.0/8 dev deny0;route add 10.0.0.0/8 dev lo src 192.0.0.2 proto static", "device" },
	{ "route del 10.0.0.0/8 dev deny0;route add 10.0.0.0/8 dev deny0 proto static", "source" },
	{ "route del 10.0.0.0/8 dev deny0;route add 10.0.0.0/8 dev deny0 src 192.0.0.2", "protocol" },
	{ "route del 10.0.0.0/8 dev deny0;route add 10.0.0.0/8 dev deny0 src 192.0.0.2 proto static metric 3",
	  "metric 3" },
	{ "route del 10.0.0.0/8 dev deny0;"
	  "route add 10.0.0.0/8 via 192.0.0.9 dev deny0 onlink src 192.0.0.2 proto static",
	  "10.0.0.0/8" },
	{ "route del 10.0.0.0/8 dev deny0;"
	  "route add 10.0.0.0/8 dev deny0 src 192.0.0.2 proto static scope global",
	  "scope" },
	{ "route del 10.0.0.0/8 dev deny0;route add 10.0.0.0/8 dev deny0 src 192.0.0.2 proto static mtu 700",
	  "path metrics" },
	/* rules */
	{ "rule add from all lookup 77 priority 100", "priority 100" },
	{ "rule add uidrange UID-UID lookup 254 priority 32766", "user range" },
	{ "rule add from 192.0.0.2 lookup 254 priority 32766", "32766" },
	{ "rule add fwmark 5 lookup 254 priority 32766", "mark" },
	{ "rule add oif jail0 lookup 254 priority 32766", "output device" },
	{ "rule add ipproto tcp lookup 254 priority 32766", "protocol" },
	{ "rule add from all lookup 254 priority 32766 suppress_prefixlength 0", "prefix length" },
	{ "rule add from all lookup 254 priority 32766 protocol 3", "32766" },
	{ "rule add prohibit from all priority 50", "priority 50" },
	{ "rule del priority 32767", "32767 is missing" },
	{ "rule del priority 32766", "32766 is missing" },
	{ "rule del priority 32766;rule add from all lookup 77 priority 32766", "table" },
	{ "rule del priority 32766;rule add prohibit from all priority 32766", "32766" },
	{ "rule add not from all lookup 254 priority 32766", "32766" },
	{ "-6 rule add from all lookup 77 priority 100", "IPv6 rule of priority 100" },
	{ "-6 rule del priority 32766", "IPv6 rule of priority 32766 is missing" },
	/* neighbours */
	{ "neigh add 10.0.0.5 lladdr " FAR_MAC " dev jail0 nud permanent", "neighbour 10.0.0.5" },
	{ "neigh add 10.0.0.5 lladdr " FAR_MAC " dev jail0 nud noarp", "neighbour 10.0.0.5" },
	{ "neigh add 10.0.0.5 lladdr " FAR_MAC " dev jail0 nud reachable", "neighbour 10.0.0.5" },
	{ "neigh add 224.0.0.5 lladdr " FAR_MAC " dev jail0 nud noarp", "neighbour 224.0.0.5" },
	{ "neigh replace 192.0.0.1 lladdr 02:00:00:00:00:02 dev jail0 nud permanent", "link address" },
	{ "neigh replace 192.0.0.1 lladdr " FAR_MAC " dev jail0 nud reachable", "state" },
	{ "neigh replace 192.0.0.1 lladdr " FAR_MAC " dev jail0 nud permanent router", "flags" },
	{ "neigh del 192.0.0.1 dev jail0", "192.0.0.1 is missing" },
	{ "neigh add proxy 10.0.0.5 dev jail0", "proxy" },
	{ "neigh del 192.0.0.1 dev jail0;"
	  "neigh add 192.0.0.1 lladdr " FAR_MAC " dev jail0 nud permanent protocol 5",
	  "attribute" },
	{ "route add local 192.0.0.1 dev jail0 table local;neigh del 192.0.0.1 dev jail0;"
	  "neigh add 192.0.0.1 lladdr " FAR_MAC " dev jail0 nud permanent;"
	  "route del local 192.0.0.1 dev jail0 table local",
	  "type" },
	/* addresses */
	{ "addr add 10.5.5.5/24 dev jail0", "address 10.5.5.5/24" },
	{ "addr add 192.0.0.2/32 dev jail0", "address 192.0.0.2" },
	{ "addr add 127.0.0.2/8 dev lo", "address 127.0.0.2/8" },
	{ "addr del 192.0.0.2/32 dev lo", "192.0.0.2 is missing" },
	{ "addr del 127.0.0.1/8 dev lo", "127.0.0.1/8 is missing" },
	{ "addr change 192.0.0.2/32 dev lo valid_lft 1000 preferred_lft 1000", "lifetime" },
	{ "addr del 192.0.0.2/32 dev lo;addr add 192.0.0.2/32 dev lo scope link", "scope" },
	{ "addr del 192.0.0.2/32 dev lo;addr add 192.0.0.2 peer 10.9.9.9/32 dev lo", "peer" },
	{ "addr del 192.0.0.2/32 dev lo;addr add 192.0.0.2/32 dev lo label lo:1", "label" },
	{ "addr del 192.0.0.2/32 dev lo;addr add 192.0.0.2/32 dev lo metric 9", "attribute" },
	{ "addr del 192.0.0.2/32 dev lo;addr add 192.0.0.2/32 broadcast 192.0.0.9 dev lo", "attribute" },
	{ "addr del 192.0.0.2/32 dev lo;addr add 192.0.0.2/24 dev lo", "192.0.0.2/24" },
	/* devices */
	{ "link add v0 type veth peer name v1", "device v" },
	{ "link add tunl0 type bridge", "device tunl0" },
	{ "link add sit0 type bridge;link set sit0 up", "device sit0" },
	{ "link set jail0 down", "device jail0" },
	{ "link set jail0 mtu 1500", "MTU" },
	{ "link set lo mtu 1500", "MTU" },
	{ "link set lo down", "device lo" },
	{ "link set jail0 arp off", "flags" },
	{ "link set jail0 multicast off", "flags" },
	{ "link set jail0 promisc on", "device jail0" },
	{ "link set jail0 allmulticast on", "flags" },
	{ "link set jail0 alias elsewhere", "alias" },
	{ "link property add dev jail0 altname elsewhere", "alternative name" },
	{ "link set jail0 address " FAR_MAC, "link address" },
	{ "link set jail0 group 5", "group" },
	{ "link set jail0 down;link set jail0 name other0;link set other0 up", "device other0" },
	{ "link set deny0 down", "device deny0" },
	{ "link set deny0 mtu 1400", "MTU" },
	{ "link set deny0 multicast off", "flags" },
	{ "link set deny0 alias elsewhere", "alias" },
	{ "link del deny0", "device deny0" },
	{ "link set deny0 down;link set deny0 name other0;link set other0 up", "device other0" },
	{ "addr add 10.5.5.5/24 dev deny0", "address 10.5.5.5/24" },
	{ "neigh add 10.0.0.5 dev deny0 nud permanent", "neighbour 0.0.0.0" },
	{ "transient", "not persistent" },
	/* IPv6 */
	{ "ipv6", "IPv6" },
	{ "ipv6;-6 addr add 2001:db8::1/64 dev jail0", "IPv6 address 2001:db8::1/64", true },
	{ "ipv6;-6 addr add fe80::5/64 dev lo", "IPv6 address fe80::5/64", true },
	{ "ipv6;-6 addr add ::2/128 dev lo", "IPv6 address ::2/128", true },
	{ "ipv6;-6 route add 2001:db8::/32 dev jail0", "2001:db8::/32", true },
	{ "ipv6;-6 route add default dev jail0", "IPv6 route to ::/0", true },
	{ "ipv6;-6 route add unreachable 2001:db8::/32", "2001:db8::/32", true },
	{ "ipv6;-6 route add fe80::/64 dev jail0 table 77", "table 77", true },
	{ "ipv6;-6 neigh add fe80::9 lladdr " FAR_MAC " dev jail0 nud permanent", "neighbour fe80::9", true },
	{ "ipv6;"
	  "route del default;-4 route add 0.0.0.0/0 via inet6 fe80::1 dev jail0 proto static",
	  "another family", true },
};

static bool write_zero(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "0\n", 2) == 2;
}

/* JailFunction */
static int mutate(const Jail *jail, const char *text, char **ret_problem)
{
	_cleanup_free_ char *copy = NULL;
	const char *range = strstr(text, "UID-UID");
	char *save = NULL;

	/* A rule takes only a uid that the namespace maps. */
	if (asprintf(&copy, "%.*s", range ? (int)(range - text) : (int)strlen(text), text) < 0)
		return -ENOMEM;
	if (range) {
		_cleanup_free_ char *start = TAKE_PTR(copy);

		if (asprintf(&copy, "%s%u-%u%s", start, getuid(), getuid(), range + strlen("UID-UID")) < 0)
			return -ENOMEM;
	}
	for (char *command = strtok_r(copy, ";", &save); command; command = strtok_r(NULL, ";", &save)) {
		int r = 0;

		if (streq(command, "ipv6")) {
			if (!write_zero("/proc/sys/net/ipv6/conf/all/disable_ipv6") ||
			    !write_zero("/proc/sys/net/ipv6/conf/lo/disable_ipv6") ||
			    !write_zero("/proc/sys/net/ipv6/conf/jail0/disable_ipv6"))
				r = -errno;
		} else if (streq(command, "transient"))
			r = ioctl(jail->sockets.tap_fd, TUNSETPERSIST, 0);
		else
			r = jail_ip(jail, command, ret_problem);
		if (r != 0)
			return refuse(ret_problem, -EINVAL, "'%s' failed: %d", command, r);
	}
	return 0;
}

static void test_unchanged(void **state)
{
	void **both = *state;
	_cleanup_free_ char *problem = NULL;

	if (denial_read_back(both[1], &problem) < 0)
		fail_msg("%s", problem);
}

/* What the kernel makes by itself where IPv6 could not be switched off is no difference. */
static void test_ipv6_stays(void **state)
{
	void **both = *state;
	Denial *denial = both[1];
	_cleanup_free_ char *problem = NULL;

	assert_true(denial->devices.ipv6_off);
	denial->devices.ipv6_off = false;
	if (jail_run(both[0], mutate, "ipv6", &problem) < 0 || denial_read_back(denial, &problem) < 0)
		fail_msg("%s", problem);
	if (jail_run(both[0], mutate, "-6 addr add fe80::5/64 dev jail0", &problem) < 0 ||
	    denial_read_back(denial, &problem) < 0)
		fail_msg("%s", problem);
}

static void test_mutations(void **state)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(mutations); i++) {
		const Mutation *mutation = &mutations[i];
		_cleanup_free_ char *problem = NULL;
		void *one, **both;
		int r;

		assert_int_equal(closed_jail(&one), 0);
		both = one;
		if (mutation->ipv6_stays)
			((Denial *)both[1])->devices.ipv6_off = false;
		r = jail_run(both[0], mutate, mutation->commands, &problem);
		if (r < 0) {
			print_error("%s: %s\n", mutation->commands, problem);
			wrong++;
		} else {
			r = denial_read_back(both[1], &problem);
			if (r != -EREMCHG || !problem || !strstr(problem, mutation->named)) {
				print_error("%s: %s, expected \"%s\"\n", mutation->commands,
					    r == 0 ? "not seen" : problem, mutation->named);
				wrong++;
			}
		}
		end_jail(&one);
	}
	print_message("%zu changes of the namespace, %u not refused properly\n", ELEMENTSOF(mutations),
		      wrong);
	assert_int_equal(wrong, 0);
}

/* A device as kernels with tunnel drivers put into every namespace, written as the kernel would. */
static void add_device(MessageList *links, const char *name, const char *kind, uint32_t flags)
{
	union {
		struct nlmsghdr header;
		uint8_t bytes[256];
	} message = { .header = { .nlmsg_type = RTM_NEWLINK } };
	struct ifinfomsg body = { .ifi_index = 9, .ifi_flags = flags };
	struct rtattr attribute;
	size_t at = NLMSG_LENGTH(sizeof(body));

	memcpy(message.bytes + NLMSG_HDRLEN, &body, sizeof(body));
	attribute = (struct rtattr){ (uint16_t)RTA_LENGTH(strlen(name) + 1), IFLA_IFNAME };
	memcpy(message.bytes + at, &attribute, sizeof(attribute));
	memcpy(message.bytes + at + sizeof(attribute), name, strlen(name) + 1);
	at += RTA_ALIGN(attribute.rta_len);
	attribute = (struct rtattr){ (uint16_t)RTA_LENGTH(RTA_SPACE(strlen(kind) + 1)), IFLA_LINKINFO };
	memcpy(message.bytes + at, &attribute, sizeof(attribute));
	at += sizeof(attribute);
	attribute = (struct rtattr){ (uint16_t)RTA_LENGTH(strlen(kind) + 1), IFLA_INFO_KIND };
	memcpy(message.bytes + at, &attribute, sizeof(attribute));
	memcpy(message.bytes + at + sizeof(attribute), kind, strlen(kind) + 1);
	at += RTA_ALIGN(attribute.rta_len);
	message.header.nlmsg_len = (uint32_t)at;
	assert_int_equal(message_list_add(links, &message.header), 0);
}

static void test_fallback_devices(void **state)
{
	static const struct {
		const char *name, *kind;
		uint32_t flags;
		bool fine;
	} devices[] = {
		{ "tunl0", "ipip", 0, true },     { "sit0", "sit", 0, true },
		{ "ip6tnl0", "ip6tnl", 0, true }, { "gre0", "gre", 0, true },
		{ "gretap0", "gretap", 0, true }, { "erspan0", "erspan", 0, true },
		{ "ip_vti0", "vti", 0, true },    { "ip6_vti0", "vti6", 0, true },
		{ "ip6gre0", "ip6gre", 0, true }, { "tunl0", "ipip", IFF_UP, false },
		{ "tunl0", "gre", 0, false },     { "tunl1", "ipip", 0, false },
		{ "tunl0", "", 0, false },
	};
	void **both = *state;
	Denial *denial = both[1];

	for (size_t i = 0; i < ELEMENTSOF(devices); i++) {
		_cleanup_free_ char *problem = NULL;
		_cleanup_(read_back_done) ReadBack read = { 0 };

		assert_int_equal(read_back_gather(denial, &read, &problem), 0);
		add_device(&read.messages, devices[i].name, devices[i].kind, devices[i].flags);
		assert_int_equal(read_back_check(&read, denial, &problem), devices[i].fine ? 0 : -EREMCHG);
	}
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unchanged, closed_jail, end_jail),
		cmocka_unit_test_setup_teardown(test_ipv6_stays, closed_jail, end_jail),
		cmocka_unit_test_setup_teardown(test_fallback_devices, closed_jail, end_jail),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
