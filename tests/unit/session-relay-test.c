/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "service/session/relay.h"

/* Clients connect to the relay's listener, servers listen where it leads; all on one thread, beside its loop.
 */

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

static Fixture f;

static uint64_t now_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / NSEC_PER_USEC;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int listening(uint16_t *ret_port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof(address);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(fd, 2 * MANY), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static int admit(void *userdata, int fd)
{
	return f.admit_error;
}

static int make(void *userdata, int family)
{
	struct sockaddr_in address = loopback(f.back);
	int fd;

	f.made++;
	if (f.make_error < 0)
		return f.make_error;
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && f.itself && family == AF_INET)
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd < 0 ? -errno : fd;
}

static const RelayCalls calls = { .admit = admit, .make = make };

static void start(unsigned max_connections)
{
	int fd;

	f = (Fixture){ .server_fd = FD_NONE };
	assert_true(sd_event_new(&f.event) >= 0);
	assert_int_equal(relay_new(f.event, max_connections, &f.relay), 0);
	f.server_fd = listening(&f.back);
	fd = listening(&f.front);
	assert_int_equal(relay_listen(f.relay, fd, f.back, &calls, NULL, &f.listener), 0);
}

static void stop(void)
{
	f.relay = relay_free(f.relay);
	close_fdp(&f.server_fd);
	f.event = sd_event_unref(f.event);
}

static void turn(uint64_t usec)
{
	assert_true(sd_event_run(f.event, usec) >= 0);
	f.turns++;
}

/* What the relay can do without anybody else. */
static void settle(void)
{
	while (sd_event_run(f.event, 0) > 0)
		f.turns++;
}

#define UNTIL(condition)                                      \
	do {                                                  \
		uint64_t _until = now_usec() + DEADLINE_USEC; \
		while (!(condition)) {                        \
			assert_true(now_usec() < _until);     \
			turn(1000);                           \
		}                                             \
	} while (0)

static int client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in address = loopback(f.front);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	return fd;
}

static int server(void)
{
	int fd = FD_NONE;

	UNTIL((fd = accept4(f.server_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0);
	return fd;
}

/* Return: bytes, 0 at the end, or a negative errno; never -EAGAIN. */
static ssize_t receive(int fd, void *buffer, size_t size)
{
	ssize_t n;

	UNTIL((n = recv(fd, buffer, size, 0)) >= 0 || errno != EAGAIN);
	return n < 0 ? -errno : n;
}

static void say(int fd, const char *text)
{
	size_t size = strlen(text);

	UNTIL(send(fd, text, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void hear(int fd, const char *text)
{
	size_t size = strlen(text), done = 0;
	char buffer[256];

	while (done < size) {
		ssize_t n = receive(fd, buffer + done, size - done);

		assert_true(n > 0);
		done += (size_t)n;
	}
	assert_memory_equal(buffer, text, size);
}

static void hear_end(int fd)
{
	char byte;

	assert_int_equal(receive(fd, &byte, 1), 0);
}

static void hear_reset(int fd)
{
	char byte;

	assert_int_equal(receive(fd, &byte, 1), -ECONNRESET);
}

static void cut(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(fd);
}

static void test_both_halves_end_by_themselves(void **state)
{
	for (int first = 0; first < 2; first++) {
		int ends[2];

		start(8);
		ends[0] = client();
		ends[1] = server();
		say(ends[0], "to the server");
		hear(ends[1], "to the server");
		say(ends[1], "to the client");
		hear(ends[0], "to the client");
		assert_int_equal(relay_connections(f.relay), 1);

		assert_int_equal(shutdown(ends[first], SHUT_WR), 0);
		hear_end(ends[1 - first]);
		say(ends[1 - first], "still here");
		hear(ends[first], "still here");
		assert_int_equal(relay_connections(f.relay), 1);
		(void)close(ends[1 - first]);
		hear_end(ends[first]);
		UNTIL(relay_connections(f.relay) == 0);
		(void)close(ends[first]);
		stop();
	}
}

static void test_last_bytes_before_an_end_arrive(void **state)
{
	int a, b;

	start(8);
	a = client();
	say(a, "said and gone");
	(void)close(a);
	b = server();
	hear(b, "said and gone");
	hear_end(b);
	(void)close(b);
	stop();
}

static void test_resets_pass(void **state)
{
	for (int first = 0; first < 2; first++)
		for (int half = 0; half < 3; half++) {
			int ends[2];

			start(8);
			ends[0] = client();
			ends[1] = server();
			say(ends[0], "x");
			hear(ends[1], "x");
			/* With both directions open, with that of the one who resets ended before, with the
			 * other's. */
			if (half == 1) {
				assert_int_equal(shutdown(ends[first], SHUT_WR), 0);
				hear_end(ends[1 - first]);
			}
			if (half == 2) {
				assert_int_equal(shutdown(ends[1 - first], SHUT_WR), 0);
				hear_end(ends[first]);
			}
			cut(ends[first]);
			UNTIL(relay_connections(f.relay) == 0);
			if (half == 1) {
				/* Its end was read: what fails is to write. */
				UNTIL(send(ends[1 - first], "y", 1, MSG_NOSIGNAL) < 0);
				assert_true(errno == EPIPE || errno == ECONNRESET);
			} else {
				hear_reset(ends[1 - first]);
			}
			(void)close(ends[1 - first]);
			stop();
		}
}

static void test_nobody_listens(void **state)
{
	uint64_t begin;
	int fd;

	start(8);
	close_fdp(&f.server_fd);
	begin = now_usec();
	fd = client();
	hear_reset(fd);
	assert_true(now_usec() - begin < USEC_PER_SEC);
	assert_int_equal(f.made, 2); /* of IPv4 and of IPv6 */
	assert_int_equal(relay_connections(f.relay), 0);
	(void)close(fd);
	stop();
}

static void test_a_connection_to_itself_is_none(void **state)
{
	int fd;

	start(8);
	close_fdp(&f.server_fd);
	f.itself = true;
	fd = client();
	hear_reset(fd);
	(void)close(fd);
	stop();
}

static void test_who_may_not_come_is_reset(void **state)
{
	int fd;

	start(8);
	f.admit_error = -EACCES;
	fd = client();
	hear_reset(fd);
	assert_int_equal(f.made, 0);
	(void)close(fd);
	stop();
}

static void test_one_too_many_is_reset(void **state)
{
	int a, b, c, s;

	start(2);
	a = client();
	b = client();
	UNTIL(relay_connections(f.relay) == 2);
	c = client();
	hear_reset(c);
	(void)close(c);
	(void)close(a);
	(void)close(b);
	s = server();
	(void)close(s);
	s = server();
	(void)close(s);
	UNTIL(relay_connections(f.relay) == 0);
	a = client();
	s = server();
	say(s, "again");
	hear(a, "again");
	(void)close(a);
	(void)close(s);
	stop();
}

/* Whoever does not read is waited for; what waits lies in sockets and one pipe. */
static void test_slow_readers_hold_their_senders(void **state)
{
	enum { BLOCK = 64 * 1024 };
	static uint8_t block[BLOCK], back[BLOCK];
	size_t sent = 0, received = 0;
	uint64_t until;
	int a, b, other, other_server;
	unsigned before;

	start(8);
	a = client();
	b = server();
	until = now_usec() + DEADLINE_USEC;
	for (unsigned quiet = 0; quiet < 20;) {
		ssize_t n;

		for (size_t i = 0; i < BLOCK; i++)
			block[i] = (uint8_t)((sent + i) * 31 >> 3);
		n = send(a, block, BLOCK, MSG_NOSIGNAL);
		assert_true(n > 0 || errno == EAGAIN);
		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		turn(1000);
		assert_true(now_usec() < until);
		assert_true(sent < 64u * 1024 * 1024);
	}
	/* Nothing turns while nothing moves. */
	settle();
	before = f.turns;
	for (int i = 0; i < 5; i++)
		assert_int_equal(sd_event_run(f.event, 1000), 0);
	assert_int_equal(f.turns, before);
	/* And others go on. */
	other = client();
	other_server = server();
	say(other, "past it");
	hear(other_server, "past it");

	while (received < sent) {
		ssize_t n = receive(b, back, BLOCK);

		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(back[i], (uint8_t)((received + (size_t)i) * 31 >> 3));
		received += (size_t)n;
	}
	(void)close(a);
	hear_end(b);
	(void)close(b);
	(void)close(other);
	(void)close(other_server);
	stop();
}

static void test_many_at_once(void **state)
{
	enum { SIZE = 200 * 1000 };
	static struct {
		int a, b;
		size_t sent, echoed, received;
		size_t held; /* read by the echo and not yet sent */
		uint8_t buffer[4096];
	} pairs[MANY];
	uint64_t until;
	size_t done = 0;

	start(MANY);
	for (size_t i = 0; i < MANY; i++) {
		pairs[i].a = client();
		pairs[i].b = server();
		pairs[i].sent = pairs[i].received = pairs[i].held = 0;
	}
	/* The order in which they were accepted need not be that of the clients: the echo does not care. */
	until = now_usec() + DEADLINE_USEC;
	while (done < MANY) {
		done = 0;
		assert_true(now_usec() < until);
		for (size_t i = 0; i < MANY; i++) {
			uint8_t out[1500], in[4096];
			size_t want = MIN_OF(sizeof(out), (size_t)SIZE - pairs[i].sent);
			ssize_t n;

			for (size_t k = 0; k < want; k++)
				out[k] = (uint8_t)((pairs[i].sent + k) * (2 * i + 3) >> 4);
			n = want > 0 ? send(pairs[i].a, out, want, MSG_NOSIGNAL) : 0;
			pairs[i].sent += n > 0 ? (size_t)n : 0;
			if (pairs[i].held == 0) {
				n = recv(pairs[i].b, pairs[i].buffer, sizeof(pairs[i].buffer), 0);
				pairs[i].held = n > 0 ? (size_t)n : 0;
			}
			if (pairs[i].held > 0) {
				n = send(pairs[i].b, pairs[i].buffer, pairs[i].held, MSG_NOSIGNAL);
				if (n > 0) {
					pairs[i].held -= (size_t)n;
					memmove(pairs[i].buffer, pairs[i].buffer + n, pairs[i].held);
				}
			}
			n = recv(pairs[i].a, in, sizeof(in), 0);
			for (ssize_t k = 0; k < n; k++)
				assert_int_equal(
					in[k], (uint8_t)((pairs[i].received + (size_t)k) * (2 * i + 3) >> 4));
			pairs[i].received += n > 0 ? (size_t)n : 0;
			done += pairs[i].received == SIZE;
		}
		settle();
	}
	assert_int_equal(relay_connections(f.relay), MANY);
	for (size_t i = 0; i < MANY; i++)
		(void)close(pairs[i].a);
	for (size_t i = 0; i < MANY; i++) {
		hear_end(pairs[i].b);
		(void)close(pairs[i].b);
	}
	UNTIL(relay_connections(f.relay) == 0);
	stop();
}

/* Sockets of the other side come one by one, and late. */
static void test_waits_for_a_socket(void **state)
{
	int a, b, c, d;

	start(8);
	f.make_error = -EAGAIN;
	a = client();
	c = client();
	say(a, "early");
	settle();
	assert_int_equal(relay_connections(f.relay), 1);
	f.make_error = 0;
	relay_wake(f.relay);
	b = server();
	hear(b, "early");
	d = server();
	say(c, "late");
	hear(d, "late");
	f.make_error = -ECONNRESET;
	(void)close(a);
	a = client();
	hear_reset(a);
	(void)close(a);
	(void)close(b);
	(void)close(c);
	(void)close(d);
	stop();
}

/* A listener that cannot be served is left alone for a while, not asked without end. */
static void test_without_descriptors(void **state)
{
	struct rlimit limit, low;
	int a, b, last;
	unsigned before;

	start(8);
	a = client();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	last = dup(0);
	assert_true(last >= 0);
	low = (struct rlimit){ (rlim_t)last, limit.rlim_max };
	(void)close(last);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	before = f.turns;
	for (uint64_t until = now_usec() + 300 * USEC_PER_MSEC; now_usec() < until;)
		turn(until - now_usec());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(f.turns - before < 20);
	b = server();
	say(a, "after all");
	hear(b, "after all");
	(void)close(a);
	(void)close(b);
	stop();
}

static void test_nothing_is_left_open(void **state)
{
	int first = dup(0), last, a, b, c;

	(void)close(first);
	start(8);
	a = client();
	b = server();
	c = client();
	say(a, "held back");
	relay_listener_close(f.listener);
	hear(b, "held back");
	stop();
	hear_reset(a);
	hear_reset(b);
	(void)close(a);
	(void)close(b);
	(void)close(c);
	last = dup(0);
	assert_int_equal(last, first);
	(void)close(last);
}

/* What was said before the end is passed on without another turn of the loop. */
static void test_last_words_are_flushed(void **state)
{
	static uint8_t said[100 * 1000], heard[100 * 1000];
	size_t received = 0;
	int a, b;

	start(8);
	a = client();
	b = server();
	say(a, "hello");
	hear(b, "hello");
	assert_int_equal(send(b, said, sizeof(said), MSG_NOSIGNAL), sizeof(said));
	(void)close(b);
	relay_flush(f.relay);
	f.relay = relay_free(f.relay);
	while (received < sizeof(heard)) {
		ssize_t n = recv(a, heard, sizeof(heard), MSG_DONTWAIT);

		assert_true(n > 0);
		received += (size_t)n;
	}
	assert_int_equal(recv(a, heard, 1, MSG_DONTWAIT), 0);
	(void)close(a);
	stop();
}

/* No more than a sanity check: ./bench measures. */
static void test_bytes_move_fast(void **state)
{
	enum { BLOCK = 256 * 1024 };
	static uint8_t block[BLOCK];
	const size_t size = 256u * 1024 * 1024;
	size_t sent = 0, received = 0;
	uint64_t begin;
	int a, b;

	start(8);
	a = client();
	b = server();
	begin = now_usec();
	while (received < size) {
		ssize_t n = send(a, block, MIN_OF(size - sent, (size_t)BLOCK), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		settle();
		n = recv(b, block, BLOCK, 0);
		received += n > 0 ? (size_t)n : 0;
		assert_true(now_usec() - begin < DEADLINE_USEC);
	}
	print_message("%.0f MB/s\n", (double)size / (double)(now_usec() - begin));
	(void)close(a);
	(void)close(b);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_halves_end_by_themselves),
		cmocka_unit_test(test_last_bytes_before_an_end_arrive),
		cmocka_unit_test(test_resets_pass),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_a_connection_to_itself_is_none),
		cmocka_unit_test(test_who_may_not_come_is_reset),
		cmocka_unit_test(test_one_too_many_is_reset),
		cmocka_unit_test(test_slow_readers_hold_their_senders),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_waits_for_a_socket),
		cmocka_unit_test(test_without_descriptors),
		cmocka_unit_test(test_nothing_is_left_open),
		cmocka_unit_test(test_last_words_are_flushed),
		cmocka_unit_test(test_bytes_move_fast),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
