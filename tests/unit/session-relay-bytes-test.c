/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay-fixture.h"

#include <signal.h>
#include <sys/socket.h>

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
		cmocka_unit_test(test_slow_readers_hold_their_senders),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_last_words_are_flushed),
		cmocka_unit_test(test_bytes_move_fast),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
