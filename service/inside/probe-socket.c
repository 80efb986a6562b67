/* SPDX-License-Identifier: MIT */
#include "service/inside/measure.h"
#include "service/inside/probe-socket.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static int connect_to(const struct sockaddr_un *address, socklen_t size, int type)
{
	_cleanup_close_ int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* A full queue of somebody who listens is an answer too. */
	if (connect(fd, (const struct sockaddr *)address, size) < 0 && errno != EAGAIN)
		return -errno;
	return TAKE_FD(fd);
}

int probe_connect_path(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int place_fd = FD_NONE;

	if (strlen(path) < sizeof(address.sun_path)) {
		memcpy(address.sun_path, path, strlen(path) + 1);
	} else {
		place_fd = open(path, O_PATH | O_CLOEXEC);
		if (place_fd < 0)
			return -errno;
		(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place_fd);
	}
	return connect_to(&address, sizeof(address), type);
}

int probe_connect_abstract(const char *name, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(name);

	if (n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path + 1, name, n);
	return connect_to(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n), type);
}

bool probe_hears_token(const Probing *p, int fd)
{
	const char *token = p->expectations ? p->expectations->bait_token : NULL;
	struct pollfd event = { .fd = fd, .events = POLLIN };
	char answer[256];
	ssize_t n;

	if (!token || poll(&event, 1, PROBE_ANSWER_MSEC) <= 0)
		return false;
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	return n > 0 && memmem(answer, (size_t)n, token, strlen(token));
}

bool probe_peer_is_outside(const Probing *p, int fd)
{
	const Expectations *e = p->expectations;
	struct ucred peer;
	socklen_t size = sizeof(peer);

	/* A datagram socket that is not one of a pair has none. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	if (peer.pid == 0)
		return true;
	return e && e->namespaces[NAMESPACE_PID] &&
	       e->namespaces[NAMESPACE_PID] == measure_namespace("self", NAMESPACE_PID);
}

bool probing_connect(Probing *p, const char *path, bool abstract, unsigned *refused)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	bool connected = false;

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		_cleanup_close_ int fd = abstract ? probe_connect_abstract(path, types[i])
						  : probe_connect_path(path, types[i]);

		/* -EAGAIN is an answer, and not here. */
		if (probing_is_starved(fd < 0 ? -fd : 0)) {
			probing_unclear(p, "%s%s: %s", abstract ? "@" : "", path, probing_error(fd));
			return false;
		}
		if (fd < 0)
			continue;
		connected = true;
		/* Of a network that is shared they are in reach; each launch says that it is. */
		if (abstract && p->expectations && !p->expectations->jailed)
			probing_unclear(p, "@%s can be connected: the network is not jailed", path);
		else if (probe_hears_token(p, fd))
			probing_escaped(p, "%s%s answered with the token", abstract ? "@" : "", path);
		else if (types[i] == SOCK_DGRAM || probe_peer_is_outside(p, fd))
			probing_escaped(p, "%s%s of outside takes connections", abstract ? "@" : "", path);
	}
	*refused += !connected;
	return connected;
}

/* {uid}, {home} and {user} are the session's. */
static char *pattern_fill(const Probing *p, const char *pattern)
{
	const Expectations *e = p->expectations;
	const char *home = e && e->home ? e->home : "/root", *user = e && e->user ? e->user : "root";
	const char *brace = strchr(pattern, '{');
	char *path = NULL;
	int r;

	if (!brace)
		return strdup(pattern);
	if (starts_with(brace, "{uid}"))
		r = asprintf(&path, "%.*s%u%s", (int)(brace - pattern), pattern, (unsigned)getuid(),
			     brace + 5);
	else if (starts_with(brace, "{home}"))
		r = asprintf(&path, "%.*s%s%s", (int)(brace - pattern), pattern, home, brace + 6);
	else
		r = asprintf(&path, "%.*s%s%s", (int)(brace - pattern), pattern, user, brace + 6);
	return r < 0 ? NULL : path;
}

void probing_connect_each(Probing *p, const char *const *patterns)
{
	unsigned refused = 0;

	for (; *patterns; patterns++) {
		_cleanup_free_ char *path = pattern_fill(p, *patterns);
		bool abstract = path && path[0] == '@';

		if (path)
			(void)probing_connect(p, path + abstract, abstract, &refused);
	}
	if (refused > 0)
		probing_blocked(p, "none of %u is there", refused);
}

int probe_netlink(int protocol, uint16_t type, uint16_t flags, const void *payload, size_t size)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct pollfd event = { .fd = fd, .events = POLLIN };
	union {
		struct nlmsghdr header;
		uint8_t bytes[1024];
	} message = { 0 };
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (size > sizeof(message) - NLMSG_HDRLEN)
		return -EMSGSIZE;
	message.header = (struct nlmsghdr){ .nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
					    .nlmsg_type = type,
					    .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
					    .nlmsg_seq = 1 };
	memcpy(NLMSG_DATA(&message.header), payload, size);
	if (sendto(fd, &message, message.header.nlmsg_len, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		return -errno;
	if (poll(&event, 1, PROBE_ANSWER_MSEC) <= 0)
		return -ETIME;
	n = recv(fd, &message, sizeof(message), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(struct nlmsgerr)) || message.header.nlmsg_type != NLMSG_ERROR)
		return 0;
	return ((const struct nlmsgerr *)NLMSG_DATA(&message.header))->error;
}
