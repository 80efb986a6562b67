/* SPDX-License-Identifier: MIT */

/* Messages as bytes: nothing believes a length, and what is not understood is named. */

#include "service/net/link.h"
#include "service/net/meant.h"
#include "service/net/public-address.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

typedef struct Made {
	union {
		struct nlmsghdr header;
		uint8_t bytes[512];
	};
} Made;

static const JailDevices devices = { .lo = 1, .jail = 2 };

static void start(Made *made, uint16_t type, const void *body, size_t size)
{
	memset(made, 0, sizeof(*made));
	made->header.nlmsg_type = type;
	made->header.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + NLMSG_ALIGN(size));
	memcpy(made->bytes + NLMSG_HDRLEN, body, size);
}

static void put(Made *made, uint16_t type, const void *data, size_t size)
{
	struct rtattr attribute = { .rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = type };

	assert_true(made->header.nlmsg_len + RTA_SPACE(size) <= sizeof(made->bytes));
	memcpy(made->bytes + made->header.nlmsg_len, &attribute, sizeof(attribute));
	if (size > 0)
		memcpy(made->bytes + made->header.nlmsg_len + RTA_LENGTH(0), data, size);
	made->header.nlmsg_len += (uint32_t)RTA_SPACE(size);
}

static void put_u32(Made *made, uint16_t type, uint32_t value)
{
	put(made, type, &value, sizeof(value));
}

static int name_of(const struct nlmsghdr *header, char **ret)
{
	Said said;

	return said_read(header, &said) ?: said_name(&said, ret);
}

static bool is_kernels(const struct nlmsghdr *header)
{
	Said said;

	return said_read(header, &said) == 0 && said_is_kernels(&said, &devices);
}

static void test_walk(void **state)
{
	union {
		struct nlmsghdr headers[4];
		uint8_t bytes[64];
	} data = { .headers = { { .nlmsg_len = 16 }, { .nlmsg_len = 17 } } };
	const struct nlmsghdr *header;
	size_t offset = 0;

	assert_int_equal(message_walk(data.bytes, 0, &offset, &header), 0);
	assert_int_equal(message_walk(data.bytes, 64, &offset, &header), 1);
	assert_int_equal(offset, 16);
	assert_int_equal(message_walk(data.bytes, 64, &offset, &header), 1);
	assert_int_equal(offset, 36);

	/* a header that is cut, a length below the header's, one above the datagram's */
	for (size_t size = 1; size < 16; size++) {
		offset = 0;
		assert_int_equal(message_walk(data.bytes, size, &offset, &header), -EBADMSG);
	}
	offset = 0;
	data.headers[0].nlmsg_len = 15;
	assert_int_equal(message_walk(data.bytes, 64, &offset, &header), -EBADMSG);
	data.headers[0].nlmsg_len = 65;
	assert_int_equal(message_walk(data.bytes, 64, &offset, &header), -EBADMSG);
	data.headers[0].nlmsg_len = UINT32_MAX;
	assert_int_equal(message_walk(data.bytes, 64, &offset, &header), -EBADMSG);
	/* the last message's padding may be missing */
	data.headers[0].nlmsg_len = 61;
	assert_int_equal(message_walk(data.bytes, 61, &offset, &header), 1);
	assert_int_equal(offset, 61);
	assert_int_equal(message_walk(data.bytes, 61, &offset, &header), 0);
}

static void test_attributes(void **state)
{
	union {
		struct rtattr attributes[8];
		uint8_t bytes[32];
	} data = { .attributes = { { 8, 1 }, { 0, 0 }, { 5, 2 }, { 0, 0 }, { 4, 0x8003 } } };
	const struct rtattr *slots[4];
	uint16_t unknown = 99;
	uint32_t value = 7;
	uint8_t byte = 7;

	assert_int_equal(attributes_sort(data.bytes, 20, slots, 4, &unknown), 0);
	assert_int_equal(unknown, 0);
	assert_non_null(slots[1]);
	assert_non_null(slots[2]);
	assert_non_null(slots[3]); /* the flag of nested ones is no part of the type */
	assert_int_equal(attribute_u32(slots[1], &value), 0);
	assert_int_equal(attribute_u8(slots[1], &byte), -EBADMSG);
	assert_int_equal(attribute_u32(slots[2], &value), -EBADMSG);
	assert_int_equal(attribute_u8(slots[2], &byte), 0);
	assert_int_equal(attribute_u32(NULL, &value), 0);

	assert_int_equal(attributes_sort(data.bytes, 20, slots, 2, &unknown), 0);
	assert_int_equal(unknown, 2);

	/* cut, too short, too long, twice */
	for (size_t size = 1; size < 20; size++)
		if (size != 8 && size != 13 && size != 14 && size != 15 && size != 16)
			assert_int_equal(attributes_sort(data.bytes, size, slots, 4, NULL), -EBADMSG);
	data.attributes[0].rta_len = 3;
	assert_int_equal(attributes_sort(data.bytes, 20, slots, 4, NULL), -EBADMSG);
	data.attributes[0].rta_len = 21;
	assert_int_equal(attributes_sort(data.bytes, 20, slots, 4, NULL), -EBADMSG);
	data.attributes[0] = (struct rtattr){ 8, 0 };
	assert_int_equal(attributes_sort(data.bytes, 20, slots, 4, NULL), -EBADMSG);
	data.attributes[0] = (struct rtattr){ 8, 2 };
	assert_int_equal(attributes_sort(data.bytes, 20, slots, 4, NULL), -EBADMSG);
}

static void test_names(void **state)
{
	union {
		struct rtattr attribute;
		uint8_t bytes[24];
	} data = { .bytes = "\0\0\0\0abc" };
	char name[8] = "-";

	data.attribute.rta_len = 8;
	assert_int_equal(attribute_name(&data.attribute, name, sizeof(name)), 0);
	assert_string_equal(name, "abc");
	data.attribute.rta_len = 7; /* no NUL */
	assert_int_equal(attribute_name(&data.attribute, name, sizeof(name)), -EBADMSG);
	data.attribute.rta_len = 9; /* two NULs */
	assert_int_equal(attribute_name(&data.attribute, name, sizeof(name)), -EBADMSG);
	data.attribute.rta_len = 4;
	assert_int_equal(attribute_name(&data.attribute, name, sizeof(name)), -EBADMSG);
	data.attribute.rta_len = 8;
	assert_int_equal(attribute_name(&data.attribute, name, 3), -EBADMSG);
}

static void test_list_bound(void **state)
{
	const uint32_t length = 1024 * 1024;
	struct nlmsghdr *header = calloc(1, length);
	MessageList list = { 0 };

	header->nlmsg_len = length;
	for (unsigned i = 0; i < MESSAGE_LIST_BYTES_MAX / length; i++)
		assert_int_equal(message_list_add(&list, header), 0);
	assert_int_equal(message_list_add(&list, header), -EMSGSIZE);
	assert_int_equal(list.n_messages, MESSAGE_LIST_BYTES_MAX / length);
	message_list_done(&list);
	free(header);
}

/* Every prefix of a message is refused or understood, never read past (the sanitizer watches). */
static void test_short_messages(void **state)
{
	struct rtmsg body = { .rtm_family = AF_INET, .rtm_dst_len = 8, .rtm_type = RTN_PROHIBIT };
	_cleanup_free_ char *name = NULL;
	Made made;
	Link link;

	start(&made, RTM_NEWROUTE, &body, sizeof(body));
	put_u32(&made, RTA_DST, htonl(0x0a000000));
	put_u32(&made, RTA_PRIORITY, 4096);
	for (uint32_t length = made.header.nlmsg_len; length >= NLMSG_HDRLEN; length--) {
		_cleanup_free_ struct nlmsghdr *copy = malloc(length);
		static const uint16_t types[] = { RTM_NEWROUTE, RTM_NEWADDR, RTM_NEWNEIGH, RTM_NEWLINK,
						  RTM_NEWRULE };

		memcpy(copy, &made, length);
		copy->nlmsg_len = length;
		for (size_t i = 0; i < ELEMENTSOF(types); i++) {
			copy->nlmsg_type = types[i];
			_cleanup_free_ char *short_name = NULL;

			(void)link_parse(copy, &link);
			(void)name_of(copy, &short_name);
			(void)is_kernels(copy);
		}
	}
	assert_int_equal(name_of(&made.header, &name), 0);
	assert_string_equal(name, "the route to 10.0.0.0/8 in table 0 with metric 4096");

	/* a destination that is missing, or longer than its family */
	body.rtm_dst_len = 33;
	start(&made, RTM_NEWROUTE, &body, sizeof(body));
	put_u32(&made, RTA_DST, 0);
	assert_int_equal(name_of(&made.header, &name), -EBADMSG);
	body.rtm_dst_len = 8;
	start(&made, RTM_NEWROUTE, &body, sizeof(body));
	assert_int_equal(name_of(&made.header, &name), -EBADMSG);
	body.rtm_family = AF_INET6;
	start(&made, RTM_NEWROUTE, &body, sizeof(body));
	put(&made, RTA_DST, "1234", 4);
	assert_int_equal(name_of(&made.header, &name), -EBADMSG);
}

static void add_all(const Meant *meant, MessageList *list)
{
	for (size_t i = 0; i < meant->n; i++)
		assert_int_equal(message_list_add(list, meant->rows[i].message), 0);
}

/* An attribute that this program has never heard of is a difference too, and so is a family. */
static void test_attribute_of_the_future(void **state)
{
	RouteRow rows[] = { { 0x0a000000, 8, ROUTE_DENY, NULL }, { 0, 0, ROUTE_INTERNET, NULL } };
	const RouteTable routes = { .rows = rows, .n_rows = ELEMENTSOF(rows) };
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct rtmsg strange = { .rtm_family = 77 };
	_cleanup_(meant_done) Meant meant = { 0 };
	Made made;

	assert_int_equal(meant_make(&routes, &devices, &meant), 0);
	add_all(&meant, &list);
	assert_int_equal(meant_compare(&meant, &devices, &list, NULL), 0);
	for (size_t i = 0; i < meant.n; i++) {
		struct nlmsghdr *header = meant.rows[i].message;
		_cleanup_(message_list_done) MessageList changed = { 0 };
		_cleanup_free_ char *problem = NULL;

		start(&made, header->nlmsg_type, NLMSG_DATA(header), header->nlmsg_len - NLMSG_HDRLEN);
		put_u32(&made, 200, 1);
		add_all(&meant, &changed);
		assert_int_equal(message_list_add(&changed, &made.header), 0);
		assert_int_equal(meant_compare(&meant, &devices, &changed, &problem), -EREMCHG);
		assert_non_null(strstr(problem, "is there twice: the second has the attribute 200"));
	}
	start(&made, RTM_NEWROUTE, &strange, sizeof(strange));
	assert_int_equal(message_list_add(&list, &made.header), 0);
	assert_int_equal(meant_compare(&meant, &devices, &list, NULL), -EREMCHG);
}

typedef struct Neighbour {
	uint8_t family, flags;
	uint16_t state;
	uint8_t address[16], mac[6];
	bool has_mac, odd_mac, protocol;
} Neighbour;

static bool is_harmless(const Neighbour *n)
{
	const struct ndmsg body = {
		.ndm_family = n->family, .ndm_ifindex = 2, .ndm_state = n->state, .ndm_flags = n->flags
	};
	Made made;

	start(&made, RTM_NEWNEIGH, &body, sizeof(body));
	put(&made, NDA_DST, n->address, n->family == AF_INET ? 4 : 16);
	if (n->has_mac)
		put(&made, NDA_LLADDR, n->mac, sizeof(n->mac));
	else if (n->odd_mac)
		put(&made, NDA_LLADDR, n->mac, 4);
	if (n->protocol)
		put_u32(&made, NDA_PROTOCOL, 5);
	return is_kernels(&made.header);
}

static void test_harmless_neighbours(void **state)
{
	const Neighbour harmless[] = {
		{ .family = AF_INET, .state = NUD_INCOMPLETE, .address = { 10, 0, 0, 1 } },
		{ .family = AF_INET, .state = NUD_FAILED, .address = { 10, 0, 0, 1 } },
		{ .family = AF_INET,
		  .state = NUD_NOARP,
		  .address = { 0xe1, 2, 3, 4 },
		  .has_mac = true,
		  .mac = { 1, 0, 0x5e, 2, 3, 4 } },
		{ .family = AF_INET,
		  .state = NUD_NOARP,
		  .address = { 255, 255, 255, 255 },
		  .has_mac = true,
		  .mac = { 255, 255, 255, 255, 255, 255 } },
		{ .family = AF_INET6,
		  .state = NUD_NOARP,
		  .address = { 0xff, 2, [15] = 0x16 },
		  .has_mac = true,
		  .mac = { 0x33, 0x33, 0, 0, 0, 0x16 } },
	};
	const Neighbour far_end = { .family = AF_INET, .state = NUD_FAILED, .address = { 192, 0, 0, 1 } };

	assert_false(is_harmless(&far_end));
	for (size_t i = 0; i < ELEMENTSOF(harmless); i++) {
		Neighbour n = harmless[i];

		assert_true(is_harmless(&n));
		n.flags = NTF_ROUTER;
		assert_false(is_harmless(&n));
		n = harmless[i];
		n.protocol = true;
		assert_false(is_harmless(&n));
		n = harmless[i];
		n.odd_mac = true;
		n.has_mac = false;
		assert_false(is_harmless(&n));
		for (unsigned bit = 0; bit < 8; bit++) {
			n = harmless[i];
			n.state = (uint16_t)(1u << bit);
			if (n.state == NUD_INCOMPLETE || n.state == NUD_FAILED ||
			    (n.has_mac && n.state == NUD_NOARP))
				continue;
			assert_false(is_harmless(&n));
		}
		for (unsigned byte = 0; n.has_mac && byte < 6; byte++) {
			n = harmless[i];
			n.mac[byte] ^= 0x10;
			assert_false(is_harmless(&n));
		}
	}
}

static void test_public_address(void **state)
{
	RouteRow rows[8] = {
		{ 0xcb007100, 24, ROUTE_DENY, NULL }, { 0xc6336400, 24, ROUTE_ALLOW, NULL },
		{ 0xc0000200, 24, ROUTE_DENY, NULL }, { 0x01000000, 8, ROUTE_DENY, NULL },
		{ 0, 0, ROUTE_INTERNET, NULL },
	};
	RouteTable table = { .rows = rows + 4, .n_rows = 1 };
	uint32_t address = 0;

	assert_int_equal(public_address_find(&table, &address), 0);
	assert_int_equal(address, 0xcb007105);
	table = (RouteTable){ .rows = rows, .n_rows = 5 };
	assert_int_equal(public_address_find(&table, &address), 0);
	assert_int_equal(address, 0x02000101);
	rows[3] = (RouteRow){ 0, 0, ROUTE_DENY, NULL };
	assert_int_equal(public_address_find(&table, &address), -ENOENT);
	assert_int_equal(address, 0x02000101);

	assert_int_equal(route_row_first(&rows[0]), 0xcb007100);
	assert_int_equal(route_row_last(&rows[0]), 0xcb0071ff);
	assert_true(route_row_covers(&rows[0], 0xcb0071ff));
	assert_false(route_row_covers(&rows[0], 0xcb007200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_list_bound),
		cmocka_unit_test(test_short_messages),
		cmocka_unit_test(test_attribute_of_the_future),
		cmocka_unit_test(test_harmless_neighbours),
		cmocka_unit_test(test_public_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
