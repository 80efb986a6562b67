/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay-fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

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
		cmocka_unit_test(test_waits_for_a_socket),
		cmocka_unit_test(test_without_descriptors),
		cmocka_unit_test(test_nothing_is_left_open),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
