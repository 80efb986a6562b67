/* SPDX-License-Identifier: MIT */
#include "dbus/why.h"

#include <arpa/inet.h>

#include "base/paths.h"

#define LINKS_MAX 40 /* as the kernel: path_resolution(7) */

static const char *cell(const ClientTable *table, ssize_t row, size_t column)
{
	return table->cells[(size_t)row * table->n_columns + column];
}

static bool is_kind(const ClientTable *exposure, ssize_t row, const char *kind)
{
	return streq(cell(exposure, row, EXPOSURE_KIND), kind);
}

ssize_t why_entry(const ClientTable *exposure, const char *path)
{
	for (ssize_t row = (ssize_t)exposure->n_rows - 1; row >= 0; row--) {
		const char *place = cell(exposure, row, EXPOSURE_PATH);
		bool itself = is_kind(exposure, row, "directory") || is_kind(exposure, row, "link");

		if (is_kind(exposure, row, "descriptor"))
			continue;
		if (itself ? streq(path, place) : path_is_within(path, place))
			return row;
	}
	return WHY_NONE;
}

ssize_t why_descriptor(const ClientTable *exposure, const char *path, size_t *index)
{
	while (*index < exposure->n_rows) {
		ssize_t row = (ssize_t)(*index)++;

		if (is_kind(exposure, row, "descriptor") && streq(cell(exposure, row, EXPOSURE_PATH), path))
			return row;
	}
	return WHY_NONE;
}

const char *why_meaning(const ClientTable *exposure, ssize_t row, const char *path)
{
	const char *mode = cell(exposure, row, EXPOSURE_MODE);
	bool itself = streq(cell(exposure, row, EXPOSURE_PATH), path);

	if (streq(mode, "masked"))
		return itself ? "hidden: something empty stands in its place"
			      : "hidden: something empty stands in the place of a directory above it";
	if (is_kind(exposure, row, "dev") || is_kind(exposure, row, "proc"))
		return "the jail has its own";
	if (is_kind(exposure, row, "link"))
		return "a link that the session made";
	if (is_kind(exposure, row, "file"))
		return "a read-only file that the session made";
	if (is_kind(exposure, row, "device"))
		return "the device can be used, as its permissions allow";
	if (streq(mode, "private"))
		return itself ? "a private directory of the session, empty at its start"
			      : "not what is outside: a private directory, empty at the start, lies above it";
	if (streq(mode, "rw"))
		return "can be read and changed, as its permissions allow";
	return "can be read, as its permissions allow, and not changed";
}

const char *why_nothing(const ClientTable *exposure, ssize_t row, const char *path)
{
	const char *mode = cell(exposure, row, EXPOSURE_MODE);

	if (!is_kind(exposure, row, "bind") || streq(cell(exposure, row, EXPOSURE_PATH), path))
		return NULL;
	if (streq(mode, "rw"))
		return "nothing is there; the agent may make it, as permissions allow";
	return streq(mode, "ro") ? "nothing is there, and the agent cannot make it" : NULL;
}

/* Is what lies outside at path what the agent sees there, or a link that was made like the one outside? */
static bool shows_outside(const ClientTable *exposure, const char *path)
{
	ssize_t row = why_entry(exposure, path);

	if (row == WHY_NONE)
		return false;
	return is_kind(exposure, row, "link") ||
	       (is_kind(exposure, row, "bind") && !streq(cell(exposure, row, EXPOSURE_MODE), "masked"));
}

/* Take the last component off; "" is the root. */
static void cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* Prepend what a link says to what is still to be walked. Return: 0 or -ENOMEM. */
static int put_before(const char *target, char **rest)
{
	char *longer;

	if (asprintf(&longer, "%s/%s", target, *rest) < 0)
		return -ENOMEM;
	free(*rest);
	*rest = longer;
	return 0;
}

int why_resolve(const ClientTable *exposure, const char *path, WhyReadLink read_link, char **ret)
{
	_cleanup_free_ char *done = strdup(""), *rest = strdup(path);
	unsigned links = 0;

	if (!done || !rest)
		return -ENOMEM;
	for (;;) {
		_cleanup_free_ char *name = NULL, *left = NULL, *next = NULL, *target = NULL;
		const char *begin = rest + strspn(rest, "/");
		size_t n = strcspn(begin, "/");

		if (n == 0)
			break;
		name = strndup(begin, n);
		left = strdup(begin + n);
		if (!name || !left)
			return -ENOMEM;
		free(rest);
		rest = TAKE_PTR(left);
		if (streq(name, "."))
			continue;
		if (streq(name, "..")) {
			cut_last(done);
			continue;
		}
		if (asprintf(&next, "%s/%s", done, name) < 0) {
			next = NULL;
			return -ENOMEM;
		}
		if (shows_outside(exposure, next) && read_link(next, &target) == 0) {
			if (++links > LINKS_MAX)
				return -ELOOP;
			if (put_before(target, &rest) < 0)
				return -ENOMEM;
			if (target[0] == '/')
				*done = '\0';
			continue;
		}
		free(done);
		done = TAKE_PTR(next);
	}
	if (*done == '\0') {
		free(done);
		done = strdup("/");
		if (!done)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(done);
	return 0;
}

/* "default" or "A.B.C.D/LEN". Return: 0 or -EINVAL. */
static int parse_destination(const char *text, uint32_t *ret_address, unsigned *ret_length)
{
	_cleanup_free_ char *copy = strdup(text);
	struct in_addr address;
	char *slash, *end = NULL;
	unsigned long length;

	if (streq(text, "default")) {
		*ret_address = *ret_length = 0;
		return 0;
	}
	slash = copy ? strchr(copy, '/') : NULL;
	if (!slash || slash[1] < '0' || slash[1] > '9')
		return -EINVAL;
	*slash = '\0';
	length = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || length > 32 || inet_pton(AF_INET, copy, &address) != 1)
		return -EINVAL;
	*ret_address = ntohl(address.s_addr);
	*ret_length = (unsigned)length;
	return 0;
}

static uint32_t mask_of(unsigned length)
{
	return length == 0 ? 0 : ~0u << (32 - length);
}

/* Of a route that is there. */
static bool read_route(const ClientTable *routes, ssize_t row, uint32_t *ret_destination,
		       unsigned *ret_length)
{
	const char *state = cell(routes, row, ROUTE_STATE);

	return !streq(state, "left out") && !streq(state, "missing") &&
	       parse_destination(cell(routes, row, ROUTE_DESTINATION), ret_destination, ret_length) == 0;
}

ssize_t why_route(const ClientTable *routes, WhyNetwork network)
{
	ssize_t best = WHY_NONE;
	unsigned best_length = 0;
	bool best_denies = false;

	for (ssize_t row = 0; row < (ssize_t)routes->n_rows; row++) {
		bool denies = streq(cell(routes, row, ROUTE_VERDICT), "deny");
		uint32_t destination;
		unsigned length;

		if (!read_route(routes, row, &destination, &length) || length > network.length ||
		    ((network.address ^ destination) & mask_of(length)) != 0)
			continue;
		if (best != WHY_NONE &&
		    (length < best_length || (length == best_length && (denies || !best_denies))))
			continue;
		best = row;
		best_length = length;
		best_denies = denies;
	}
	return best;
}

size_t why_others(const ClientTable *routes, WhyNetwork network, const char *verdict)
{
	size_t n = 0;

	for (ssize_t row = 0; row < (ssize_t)routes->n_rows; row++) {
		WhyNetwork inner;

		if (read_route(routes, row, &inner.address, &inner.length) && inner.length > network.length &&
		    ((network.address ^ inner.address) & mask_of(network.length)) == 0 &&
		    why_route(routes, inner) == row && !streq(cell(routes, row, ROUTE_VERDICT), verdict))
			n++;
	}
	return n;
}

bool why_overlap(WhyNetwork a, WhyNetwork b)
{
	return ((a.address ^ b.address) & mask_of(a.length < b.length ? a.length : b.length)) == 0;
}

static bool overlaps_any(WhyNetwork network, const WhyNetwork *others, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (why_overlap(network, others[i]))
			return true;
	return false;
}

/* As claude-sandbox.conf(5) refuses allow-ip. */
bool why_may_be_allowed(WhyNetwork network)
{
	static const WhyNetwork never[] = {
		{ 0x00000000u, 8 },
		{ 0x7f000000u, 8 },
		{ 0xc0000000u, 24 },
		{ 0xe0000000u, 3 },
	};

	return network.length >= 16 && !overlaps_any(network, never, ELEMENTSOF(never));
}

/* RFC 1918, 6598, 3927, 2544; and the one public address that a cloud answers at itself. */
bool why_is_internal(WhyNetwork network)
{
	static const WhyNetwork internal[] = {
		{ 0x0a000000u, 8 },  { 0xac100000u, 12 }, { 0xc0a80000u, 16 }, { 0x64400000u, 10 },
		{ 0xa9fe0000u, 16 }, { 0xc6120000u, 15 }, { 0xa83f8110u, 32 },
	};

	return overlaps_any(network, internal, ELEMENTSOF(internal));
}

int why_network(const char *text, WhyNetwork *ret)
{
	WhyNetwork network;

	if (parse_destination(text, &network.address, &network.length) < 0)
		return -EINVAL;
	network.address &= mask_of(network.length);
	*ret = network;
	return 0;
}

WhyFamily why_address(const char *text, uint32_t *ret_ipv4)
{
	size_t n = strlen(text);
	_cleanup_free_ char *inner = NULL;
	struct in6_addr ipv6;
	struct in_addr ipv4;

	if (inet_pton(AF_INET, text, &ipv4) == 1) {
		*ret_ipv4 = ntohl(ipv4.s_addr);
		return WHY_IPV4;
	}
	inner = n > 2 && text[0] == '[' && text[n - 1] == ']' ? strndup(text + 1, n - 2) : strdup(text);
	if (!inner || inet_pton(AF_INET6, inner, &ipv6) != 1)
		return WHY_NO_ADDRESS;
	if (!IN6_IS_ADDR_V4MAPPED(&ipv6))
		return WHY_IPV6;
	memcpy(&ipv4, ipv6.s6_addr + 12, sizeof(ipv4));
	*ret_ipv4 = ntohl(ipv4.s_addr);
	return WHY_IPV4;
}

const char *why_verdict(const char *verdict)
{
	if (streq(verdict, "deny"))
		return "refused, whatever way is tried";
	if (streq(verdict, "dns"))
		return "reached: names are resolved there";
	return streq(verdict, "internet") ? "reached, as the internet" : "reached";
}
