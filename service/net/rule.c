/* SPDX-License-Identifier: MIT */
#include "service/net/rule.h"

#include "service/net/netlink.h"

#include <linux/fib_rules.h>
#include <sys/socket.h>

typedef struct KernelRule {
	uint32_t priority, table;
} KernelRule;

/* ip-rule(8): local, main, default. IPv6 has no default table. */
static const KernelRule kernel_rules[RULES_KERNEL_MAX] = {
	{ 0, RT_TABLE_LOCAL },
	{ 32766, RT_TABLE_MAIN },
	{ 32767, RT_TABLE_DEFAULT },
};

static const char *const attribute_names[] = {
	[FRA_DST] = "a destination",
	[FRA_SRC] = "a source",
	[FRA_IIFNAME] = "an input device",
	[FRA_OIFNAME] = "an output device",
	[FRA_GOTO] = "a jump",
	[FRA_FWMARK] = "a mark",
	[FRA_FWMASK] = "a mark's mask",
	[FRA_FLOW] = "a realm",
	[FRA_TUN_ID] = "a tunnel",
	[FRA_SUPPRESS_IFGROUP] = "a suppressed device group",
	[FRA_SUPPRESS_PREFIXLEN] = "a suppressed prefix length",
	[FRA_L3MDEV] = "a device's table",
	[FRA_UID_RANGE] = "a user range",
	[FRA_IP_PROTO] = "a protocol",
	[FRA_SPORT_RANGE] = "a source port",
	[FRA_DPORT_RANGE] = "a destination port",
};

const char *rule_attribute_to_string(uint16_t attribute, char buffer[static RULE_ATTRIBUTE_TEXT_MAX])
{
	if (attribute < ELEMENTSOF(attribute_names) && attribute_names[attribute])
		return attribute_names[attribute];
	snprintf(buffer, RULE_ATTRIBUTE_TEXT_MAX, "the attribute %u", attribute);
	return buffer;
}

int rule_decode(const struct nlmsghdr *header, Rule *ret)
{
	Rule rule = { 0 };
	const struct rtattr *slots[FRA_DPORT_RANGE + 1];
	const struct fib_rule_hdr *body;
	uint32_t suppressed = UINT32_MAX;
	const void *attributes;
	size_t size;

	if (header->nlmsg_type != RTM_NEWRULE && header->nlmsg_type != RTM_DELRULE)
		return -EBADMSG;
	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || attributes_sort(attributes, size, slots, ELEMENTSOF(slots), &rule.attribute) < 0)
		return -EBADMSG;
	if (body->family != AF_INET && body->family != AF_INET6)
		return -EAFNOSUPPORT;

	rule.family = body->family;
	rule.action = body->action;
	rule.tos = body->tos;
	rule.source_length = body->src_len;
	rule.destination_length = body->dst_len;
	rule.flags = body->flags;
	rule.table = body->table;
	if (attribute_u32(slots[FRA_TABLE], &rule.table) < 0 ||
	    attribute_u32(slots[FRA_PRIORITY], &rule.priority) < 0 ||
	    attribute_u8(slots[FRA_PROTOCOL], &rule.protocol) < 0 ||
	    attribute_u32(slots[FRA_SUPPRESS_PREFIXLEN], &suppressed) < 0)
		return -EBADMSG;

	for (uint16_t i = 0; i < ELEMENTSOF(slots) && rule.attribute == 0; i++) {
		if (!slots[i] || i == FRA_TABLE || i == FRA_PRIORITY || i == FRA_PROTOCOL || i == FRA_PAD)
			continue;
		/* Always written; all ones means none. */
		if (i == FRA_SUPPRESS_PREFIXLEN && suppressed == UINT32_MAX)
			continue;
		rule.attribute = i;
	}
	*ret = rule;
	return 0;
}

unsigned rules_of_kernel(uint8_t family)
{
	return family == AF_INET ? RULES_KERNEL_MAX : RULES_KERNEL_MAX - 1;
}

uint32_t rule_kernel_priority(unsigned number)
{
	return kernel_rules[number].priority;
}

int rule_is_kernels(const Rule *rule, char **ret_problem)
{
	const char *family = rule->family == AF_INET ? "IPv4" : "IPv6", *what = NULL;
	char attribute[RULE_ATTRIBUTE_TEXT_MAX];

	for (unsigned i = 0; i < rules_of_kernel(rule->family); i++) {
		if (rule->priority != kernel_rules[i].priority)
			continue;
		if (rule->attribute != 0)
			return refuse(ret_problem, -EREMCHG, "the %s rule of priority %u selects by %s",
				      family, rule->priority,
				      rule_attribute_to_string(rule->attribute, attribute));
		if (rule->table != kernel_rules[i].table)
			what = "table";
		else if (rule->action != FR_ACT_TO_TBL)
			what = "action";
		else if (rule->source_length != 0)
			what = "source";
		else if (rule->destination_length != 0)
			what = "destination";
		else if (rule->tos != 0)
			what = "type of service";
		else if (rule->flags != 0)
			what = "set of flags";
		else if (rule->protocol != RTPROT_KERNEL && rule->protocol != RTPROT_UNSPEC)
			what = "protocol";
		if (what)
			return refuse(ret_problem, -EREMCHG,
				      "the %s rule of priority %u has another %s than the kernel's", family,
				      rule->priority, what);
		return (int)i;
	}
	return refuse(ret_problem, -EREMCHG, "there is an %s rule of priority %u", family, rule->priority);
}

/* Before the kernel's own rule for the main table. */
#define TABLES_PRIORITY 32765u

static struct nl_msg *main_table_message(uint16_t type)
{
	const struct fib_rule_hdr body = {
		.family = AF_INET,
		.table = RT_TABLE_MAIN,
		.action = FR_ACT_TO_TBL,
	};
	_cleanup_(nl_msg_freep) struct nl_msg *message = netlink_message(
		type, type == RTM_NEWRULE ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));

	if (!message || netlink_put_u32(message, FRA_PRIORITY, TABLES_PRIORITY) < 0 ||
	    netlink_put_u32(message, FRA_TABLE, RT_TABLE_MAIN) < 0)
		return NULL;
	return TAKE_PTR(message);
}

int rule_step_tables(Denial *denial, char **ret_problem)
{
	static const uint16_t types[] = { RTM_NEWRULE, RTM_DELRULE };

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		_cleanup_(nl_msg_freep) struct nl_msg *message = main_table_message(types[i]);
		_cleanup_free_ char *text = NULL;
		int r;

		if (!message)
			return -ENOMEM;
		r = netlink_program_one(denial->netlink, message, &text);
		if (r < 0)
			return refuse(ret_problem, r,
				      "the kernel does not part its routing tables "
				      "(CONFIG_IP_MULTIPLE_TABLES): %s",
				      text ?: strerror(-r));
	}
	return 0;
}
