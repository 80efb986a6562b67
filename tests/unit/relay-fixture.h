/* SPDX-License-Identifier: MIT */
#pragma once

/* Clients connect to a relay's listener, servers listen where it leads; all on one thread, beside its loop.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/session/relay.h"

#define DEADLINE_USEC (10 * USEC_PER_SEC)
#define MANY 100

typedef struct Fixture {
	sd_event *event;
	Relay *relay;
	RelayListener *listener;
	uint16_t front, back; /* ports */
	int server_fd;        /* listens at back */
	int admit_error;
	int make_error;
	bool itself; /* make() binds to back, where nobody listens */
	unsigned made, turns;
} Fixture;

extern Fixture f;

uint64_t now_usec(void);
/* A relay from f.front to f.back, where a server listens. */
void start(unsigned max_connections);
void stop(void);
void turn(uint64_t usec);
/* What the relay can do without anybody else. */
void settle(void);
int client(void);
/* Accept the next one behind the relay. */
int server(void);
/* Return: bytes, 0 at the end, or a negative errno; never -EAGAIN. */
ssize_t receive(int fd, void *buffer, size_t size);
void say(int fd, const char *text);
void hear(int fd, const char *text);
void hear_end(int fd);
void hear_reset(int fd);
/* Close it with a reset. */
void cut(int fd);

#define UNTIL(condition)                                      \
	do {                                                  \
		uint64_t _until = now_usec() + DEADLINE_USEC; \
		while (!(condition)) {                        \
			assert_true(now_usec() < _until);     \
			turn(1000);                           \
		}                                             \
	} while (0)
