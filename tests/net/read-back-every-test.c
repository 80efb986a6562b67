/* SPDX-License-Identifier: MIT */

/*
 * What the kernel wrote of a namespace that was closed properly, changed in every byte, by every attribute
 * and by every message: whatever says something is noticed. No list of what could be wrong is needed, so what
 * a new kind of route brings is held too.
 */

#include "tests/net/jail.h"

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Bytes that say nothing of what was meant: padding. */
static bool is_free_body(uint16_t type, size_t offset)
{
	switch (type) {
	case RTM_NEWADDR:
	case RTM_NEWROUTE:
		return false;
	case RTM_NEWRULE:
		return offset == offsetof(struct fib_rule_hdr, res1) ||
		       offset == offsetof(struct fib_rule_hdr, res2);
	default:
		return offset == offsetof(struct ndmsg, ndm_pad1) ||
		       offset == offsetof(struct ndmsg, ndm_pad2) ||
		       offset == offsetof(struct ndmsg, ndm_pad2) + 1;
	}
}

static bool is_free_attribute(uint16_t type, uint16_t attribute, size_t offset)
{
	if (type == RTM_NEWNEIGH)
		return attribute == NDA_CACHEINFO || attribute == NDA_PROBES;
	if (type == RTM_NEWADDR)
		return attribute == IFA_CACHEINFO && offset >= offsetof(struct ifa_cacheinfo, cstamp);
	return false;
}

static size_t body_size(uint16_t type)
{
	return type == RTM_NEWADDR ? sizeof(struct ifaddrmsg) : sizeof(struct rtmsg);
}

static bool is_free(const struct nlmsghdr *header, size_t offset, uint8_t flip)
{
	size_t at = NLMSG_HDRLEN + body_size(header->nlmsg_type);

	STATIC_ASSERT(sizeof(struct rtmsg) == sizeof(struct ndmsg) &&
		      sizeof(struct rtmsg) == sizeof(struct fib_rule_hdr));
	/* RTNH_F_LINKDOWN: the wire comes and goes */
	if (header->nlmsg_type == RTM_NEWROUTE &&
	    offset == NLMSG_HDRLEN + offsetof(struct rtmsg, rtm_flags) && flip == RTNH_F_LINKDOWN)
		return true;
	if (offset < at)
		return is_free_body(header->nlmsg_type, offset - NLMSG_HDRLEN);
	while (at < header->nlmsg_len) {
		const struct rtattr *attribute = (const void *)((const uint8_t *)header + at);

		/* NLA_F_NET_BYTEORDER, in the upper byte of the type */
		if (offset == at + 3 && flip == NLA_F_NET_BYTEORDER >> 8)
			return true;
		if (offset < at + RTA_ALIGN(attribute->rta_len))
			return offset >= at + attribute->rta_len || /* padding */
			       (offset >= at + RTA_LENGTH(0) &&
				is_free_attribute(header->nlmsg_type, attribute->rta_type & NLA_TYPE_MASK,
						  offset - at - RTA_LENGTH(0)));
		at += RTA_ALIGN(attribute->rta_len);
	}
	return true;
}

/* Change one byte after the other of what the kernel wrote: whatever says something is noticed. */
static unsigned check_every_byte(const ReadBack *read, Denial *denial)
{
	const MessageList *list = &read->messages;
	unsigned wrong = 0;

	for (size_t offset = 0, next = 0; offset < list->size; offset = next) {
		const struct nlmsghdr *header = message_list_next(list, &next);

		if (header->nlmsg_type == RTM_NEWLINK)
			continue;
		for (size_t i = NLMSG_HDRLEN; i < header->nlmsg_len; i++) {
			static const uint8_t flips[] = { 0x01, 0x10, 0x40 };

			for (size_t flip = 0; flip < ELEMENTSOF(flips); flip++) {
				_cleanup_free_ char *problem = NULL;

				list->data[offset + i] ^= flips[flip];
				if (read_back_check(read, denial, &problem) == 0) {
					list->data[offset + i] ^= flips[flip];
					if (!is_free(header, i, flips[flip])) {
						print_error("type %u, byte %zu: not seen\n",
							    header->nlmsg_type, i);
						wrong++;
					}
				} else
					list->data[offset + i] ^= flips[flip];
			}
		}
	}
	return wrong;
}

/* What the kernel adds by itself, or what has no part in how a packet goes. */
static bool may_be_added(uint16_t type, uint16_t attribute)
{
	switch (type) {
	case RTM_NEWNEIGH:
		return attribute == NDA_CACHEINFO || attribute == NDA_PROBES;
	case RTM_NEWRULE:
		return attribute == FRA_PAD;
	default:
		return false;
	}
}

/*
 * Add to one message after the other every attribute that it has not, known or not: each says something that
 * was not meant.
 */
static unsigned check_every_attribute(ReadBack *read, Denial *denial)
{
	MessageList *list = &read->messages;
	unsigned wrong = 0;

	for (size_t at = 0; at < list->n_messages; at++) {
		for (uint16_t type = 1; type < 64; type++) {
			_cleanup_free_ char *problem = NULL;
			MessageList original = *list, changed = { 0 };
			const struct nlmsghdr *header;
			bool has = false, taken, link = false;
			uint16_t kind = 0;
			size_t offset = 0;

			for (size_t n = 0; (header = message_list_next(&original, &offset)); n++) {
				_cleanup_free_ struct nlmsghdr *longer =
					calloc(1, header->nlmsg_len + RTA_SPACE(4));
				struct rtattr attribute = { RTA_LENGTH(4), type };
				size_t begin = NLMSG_HDRLEN + body_size(header->nlmsg_type);
				const uint32_t value = 1;

				memcpy(longer, header, header->nlmsg_len);
				link = link || (n == at && header->nlmsg_type == RTM_NEWLINK);
				for (size_t i = begin; n == at && !link && i < header->nlmsg_len;) {
					struct rtattr there;

					memcpy(&there, (const uint8_t *)header + i, sizeof(there));
					has = has || (there.rta_type & NLA_TYPE_MASK) == type;
					i += RTA_ALIGN(there.rta_len);
				}
				if (n == at && !has && !link) {
					size_t end = NLMSG_ALIGN(header->nlmsg_len);

					kind = header->nlmsg_type;
					memcpy((uint8_t *)longer + end, &attribute, sizeof(attribute));
					memcpy((uint8_t *)longer + end + RTA_LENGTH(0), &value, 4);
					longer->nlmsg_len = (uint32_t)(end + RTA_SPACE(4));
				}
				assert_int_equal(message_list_add(&changed, longer), 0);
			}
			*list = changed;
			taken = read_back_check(read, denial, &problem) == 0;
			*list = original;
			message_list_done(&changed);
			if (taken && !has && !link && !may_be_added(kind, type)) {
				print_error("message %zu of type %u: attribute %u: not seen\n", at, kind,
					    type);
				wrong++;
			}
		}
	}
	return wrong;
}

/* Leave out one message after the other, then have it twice. */
static unsigned check_every_message(ReadBack *read, Denial *denial)
{
	MessageList *list = &read->messages;
	unsigned wrong = 0;

	for (size_t left_out = 0; left_out < list->n_messages; left_out++) {
		for (unsigned copies = 0; copies <= 2; copies++) {
			_cleanup_free_ char *problem = NULL;
			MessageList original = *list, changed = { 0 };
			const struct nlmsghdr *header;
			size_t offset = 0, n = 0;

			while ((header = message_list_next(&original, &offset))) {
				for (unsigned i = 0; i < (n == left_out ? copies : 1); i++)
					assert_int_equal(message_list_add(&changed, header), 0);
				n++;
			}
			*list = changed;
			if ((read_back_check(read, denial, &problem) == 0) != (copies == 1)) {
				print_error("message %zu %u times: not seen\n", left_out, copies);
				wrong++;
			}
			*list = original;
			message_list_done(&changed);
		}
	}
	return wrong;
}

static void test_every_byte(void **state)
{
	void **both = *state;
	Denial *denial = both[1];
	_cleanup_free_ char *problem = NULL;
	ReadBack read;
	unsigned wrong = 0;

	assert_int_equal(read_back_gather(denial, &read, &problem), 0);
	assert_int_equal(read_back_check(&read, denial, &problem), 0);
	wrong += check_every_byte(&read, denial);
	wrong += check_every_attribute(&read, denial);
	wrong += check_every_message(&read, denial);
	assert_int_equal(read_back_check(&read, denial, &problem), 0);
	read_back_done(&read);
	assert_int_equal(wrong, 0);
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_byte, closed_jail, end_jail),
	};

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
