/* SPDX-License-Identifier: MIT */
#include "service/plan/config.h"

#include <arpa/inet.h>

#include "service/plan/config-values.h"
#include "service/plan/routes.h"

#define LENGTH_MIN 16u
#define LENGTH_MAX 32u
/* "255.255.255.255/32" */
#define ADDRESS_TEXT_MAX 18u

static uint32_t mask_of(unsigned length)
{
	return length == 0 ? 0 : UINT32_MAX << (32 - length);
}

static int length_parse(const char *text, unsigned *ret)
{
	unsigned value = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(*text - '0');
		if (value > LENGTH_MAX)
			return -EINVAL;
	}
	*ret = value;
	return 0;
}

int config_parse_address(const char *text, uint32_t *ret_address, unsigned *ret_length, char **ret_problem)
{
	_cleanup_free_ char *shown = config_display(text);
	char dotted[ADDRESS_TEXT_MAX + 1] = "";
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	unsigned length = LENGTH_MAX;
	struct in_addr parsed;
	uint32_t address;

	if (!shown)
		return -ENOMEM;
	if (strchr(text, ':'))
		return refuse(
			ret_problem, -EINVAL,
			"'%s' is not IPv4, and the jail has no IPv6; write the IPv4 address of that machine",
			shown);
	if (n > ADDRESS_TEXT_MAX)
		n = 0;
	memcpy(dotted, text, n);
	/* inet_pton(3) takes four decimal numbers without leading zeros and nothing else. */
	if (inet_pton(AF_INET, dotted, &parsed) != 1)
		return refuse(
			ret_problem, -EINVAL,
			"'%s' is not an IPv4 address; write A.B.C.D or A.B.C.D/LEN with numbers, not a name",
			shown);
	address = ntohl(parsed.s_addr);

	if (slash && length_parse(slash + 1, &length) < 0)
		return refuse(ret_problem, -EINVAL,
			      "'%s' has no valid prefix length; write a number from 16 to 32 after the '/'",
			      shown);
	if (length == 0)
		return refuse(
			ret_problem, -EINVAL,
			"'%s' is the default route: it would allow every network; name the single networks, "
			"each with a prefix length from 16 to 32",
			shown);
	if (length < LENGTH_MIN)
		return refuse(ret_problem, -EINVAL, "'%s' is too wide; use prefix lengths from 16 to 32",
			      shown);
	if (address & ~mask_of(length)) {
		struct in_addr network = { .s_addr = htonl(address & mask_of(length)) };
		char name[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &network, name, sizeof(name));
		return refuse(ret_problem, -EINVAL,
			      "'%s' has host bits set; write %s/%u for the network or %s for the one address",
			      shown, name, length, dotted);
	}
	/* What no administrator can mean: it would open nothing useful, or the jail's own plumbing. */
	for (const DeniedRange *range = denied_ranges; range->reason; range++) {
		uint32_t mask = mask_of(MIN_OF(length, (unsigned)range->prefix.length));

		if (range->never && (address & mask) == (range->prefix.address & mask))
			return refuse(ret_problem, -EINVAL, "'%s' %s; leave it out", shown, range->never);
	}

	*ret_address = address;
	*ret_length = length;
	return 0;
}

int config_address_text(const char *text, char **ret, char **ret_problem)
{
	return config_value_parse(CONFIG_ALLOW_IP, text, ret, ret_problem);
}
