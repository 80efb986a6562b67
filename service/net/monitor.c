/* SPDX-License-Identifier: MIT */

/*
 * When does a frame that is sent to jail0 reach whoever attached? Two things happen in the kernel: the
 * carrier comes on at once (IFF_LOWER_UP), and a work queue gives the device its queue back if it had taken
 * it away (together with IFF_RUNNING, net/core/link_watch.c). Until then frames are dropped, so the wire is
 * up when both flags are set.
 *
 * That work queue also sends the news, but for the whole machine at most once a second where nothing is
 * urgent: when many sessions start, the event "LOWER_UP" may be a second late although the wire works. What
 * comes at once is the event of somebody attaching, sent before the carrier is on. So each event about jail0
 * makes monitor_read() ask how it is now, on the same socket; the kernel answers, behind the events, when
 * whoever attaches is done.
 */

#include "service/net/monitor.h"

#include "service/net/link.h"

#include <sys/socket.h>

#define FLAGS_WIRE_UP (0x10000u /* IFF_LOWER_UP, netdevice(7) */ | IFF_RUNNING)
#define DATAGRAMS_MAX 4096u /* at a time; a flood must not keep the loop from everything else */

typedef struct Reading {
	Monitor *monitor;
	uint32_t port; /* of the watching socket: what names it is an answer */
	bool ask;
} Reading;

static bool is_up(const Link *link)
{
	return (link->flags & FLAGS_WIRE_UP) == FLAGS_WIRE_UP;
}

static int ask_for_jail(const Reading *reading)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		char name[RTA_ALIGN(sizeof(ROUTES_JAIL_DEVICE))];
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST,
			    .nlmsg_pid = reading->port },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(ROUTES_JAIL_DEVICE)), .rta_type = IFLA_IFNAME },
		.name = ROUTES_JAIL_DEVICE,
	};

	return send(reading->monitor->watch_fd, &request, sizeof(request), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int read_link(Reading *reading, const struct nlmsghdr *header, bool is_answer)
{
	Link link;
	int r = link_parse(header, &link);

	if (r < 0 || !streq(link.name, ROUTES_JAIL_DEVICE))
		return r;
	reading->monitor->wire_up = header->nlmsg_type == RTM_NEWLINK && is_up(&link);
	if (!is_answer)
		reading->ask = true;
	return 0;
}

static int read_message(Reading *reading, const struct nlmsghdr *header)
{
	bool is_answer = header->nlmsg_pid == reading->port;
	Monitor *monitor = reading->monitor;
	_cleanup_free_ char *what = NULL;
	int r = 0;

	if (is_answer && header->nlmsg_type == NLMSG_ERROR) {
		monitor->wire_up = false; /* the device has gone */
		return 0;
	}
	if (!is_answer) {
		monitor->n_events++;
		r = foreign_judge(&monitor->view, header, &monitor->look, &what);
		if (r == -EREMCHG && !monitor->foreign)
			monitor->foreign = TAKE_PTR(what);
	}
	if (r < 0 && r != -EREMCHG)
		return r;
	if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK)
		return 0;
	return read_link(reading, header, is_answer);
}

static int port_of(int fd, uint32_t *ret)
{
	struct sockaddr_nl local = { 0 };
	socklen_t length = sizeof(local);

	if (getsockname(fd, (struct sockaddr *)&local, &length) < 0)
		return -errno;
	*ret = local.nl_pid;
	return 0;
}

int monitor_init(Monitor *monitor, const JailSockets *sockets, const Denial *denial)
{
	*monitor = (Monitor){ .watch_fd = sockets->watch_fd, .view.denial = denial };
	return port_of(sockets->route_fd, &monitor->view.own_port);
}

void monitor_done(Monitor *monitor)
{
	freep(&monitor->foreign);
}

int monitor_read(Monitor *monitor)
{
	Reading reading = { .monitor = monitor };
	_cleanup_free_ uint8_t *buffer = NULL;
	size_t buffer_size = 0;
	int r = port_of(monitor->watch_fd, &reading.port);

	for (unsigned i = 0; r >= 0 && i < DATAGRAMS_MAX; i++) {
		const struct nlmsghdr *header;
		size_t offset = 0;
		ssize_t n = netlink_receive(monitor->watch_fd, &buffer, &buffer_size);

		if (n == -EAGAIN) {
			if (!reading.ask)
				break;
			reading.ask = false;
			r = ask_for_jail(&reading);
			continue;
		}
		if (n < 0) {
			r = n == -EMSGSIZE ? -ENOBUFS : (int)n;
			break;
		}
		while ((r = message_walk(buffer, (size_t)n, &offset, &header)) > 0) {
			r = read_message(&reading, header);
			if (r < 0)
				break;
		}
	}
	if (r < 0)
		monitor->look = true;
	return r;
}

int monitor_forget(int watch_fd)
{
	uint8_t byte;

	/* A datagram is taken whole, whatever the size of the buffer. Bounded by what the socket holds. */
	for (unsigned i = 0; i < DATAGRAMS_MAX; i++)
		if (recv(watch_fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != ENOBUFS)
			return errno == EAGAIN ? 0 : -errno;
	return -EBUSY;
}

int monitor_wire_is_up(int route_fd)
{
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	Link link;
	int r;

	r = netlink_new(route_fd, NETLINK_ROUTE, &netlink);
	if (r < 0)
		return r;
	r = link_find(netlink, ROUTES_JAIL_DEVICE, &link);
	if (r < 0)
		return r;
	return is_up(&link);
}
