/* SPDX-License-Identifier: MIT */
#include "tests/daemon/stand-in-flood.h"

#include <poll.h>

#include "service/link/link.h"
#include "service/link/spawn.h"

typedef struct Packet {
	uint8_t *data;
	size_t size;
} Packet;

static void packet_make(Packet *packet, const LinkMessage *m)
{
	if (link_encode(m, &packet->data, &packet->size, NULL) < 0)
		_exit(99);
}

void flood_link(int link_fd)
{
	static char text[201];
	LinkRow rows[32] = { 0 };
	LinkMessage many = LINK_MESSAGE_INIT, state = LINK_MESSAGE_INIT;
	Packet packets[4];

	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		for (size_t c = 0; c < 7; c++)
			rows[i].columns[c] = c == 0 || c == 3 || c == 6 ? (char *)"7" : text;
	many.serial = 4711;
	many.rows = rows;
	many.total = many.n_rows = ELEMENTSOF(rows);
	many.kind = LINK_ROWS;
	many.table = LINK_TABLE_CHECKS;
	packet_make(&packets[0], &many);
	many.kind = LINK_DENIED;
	many.table = LINK_TABLE_DENIED;
	packet_make(&packets[1], &many);
	state.kind = LINK_STATE;
	state.jailed = true;
	state.state = SESSION_STOPPED;
	packet_make(&packets[2], &state);
	state.state = SESSION_RUNNING;
	packet_make(&packets[3], &state);

	for (size_t i = 0;; i = (i + 1) % ELEMENTSOF(packets)) {
		struct pollfd p[] = { { .fd = link_fd, .events = POLLOUT },
				      { .fd = SPAWN_FD_LIFELINE, .events = POLLIN } };

		if (poll(p, ELEMENTSOF(p), -1) < 0 || (p[0].revents | p[1].revents) & (POLLHUP | POLLERR))
			_exit(0);
		(void)packet_send(link_fd, packets[i].data, packets[i].size);
	}
}

void scan_link(int link_fd)
{
	char address[32] = "169.254.169.254";
	LinkRow row = { .columns = { (char *)"5", (char *)"tcp", address, (char *)"80", (char *)"curl (7)",
				     (char *)"range", (char *)"1" } };
	LinkMessage m = {
		.kind = LINK_DENIED, .table = LINK_TABLE_DENIED, .total = 1, .n_rows = 1, .rows = &row
	};

	for (unsigned i = 0; i < 202; i++) {
		struct pollfd p = { .fd = link_fd, .events = POLLOUT };
		Packet packet;

		packet_make(&packet, &m);
		(void)poll(&p, 1, -1);
		if (packet_send(link_fd, packet.data, packet.size) < 0)
			_exit(98);
		free(packet.data);
		(void)snprintf(address, sizeof(address), "10.0.0.%u", i % 101);
	}
}
