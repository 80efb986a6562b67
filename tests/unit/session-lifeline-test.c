/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "service/link/lifeline.h"
#include "service/link/link.h"
#include "service/session/lifeline.h"

typedef struct Fixture {
	sd_event *event;
	Lifeline *lifeline;
	int fd; /* launch's end */
	unsigned signals, keys, resumes, behind, gone;
	int last;
	uint8_t buffer[LIFELINE_PACKET_MAX];
} Fixture;

static void on_signal(void *userdata, int number)
{
	Fixture *fixture = userdata;

	fixture->signals++;
	fixture->last = number;
}

static void on_key(void *userdata, int number)
{
	Fixture *fixture = userdata;

	fixture->keys++;
	fixture->last = number;
}

static void on_resume(void *userdata, bool behind)
{
	Fixture *fixture = userdata;

	fixture->resumes++;
	fixture->behind += behind;
}

static void on_gone(void *userdata)
{
	Fixture *fixture = userdata;

	fixture->gone++;
}

static int setup(void **state)
{
	static const LifelineCalls calls = { on_signal, on_key, on_resume, on_gone };
	Fixture *fixture = calloc(1, sizeof(*fixture));
	int fds[2];

	assert_non_null(fixture);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fixture->fd = fds[0];
	assert_true(sd_event_new(&fixture->event) >= 0);
	assert_true(lifeline_new(fixture->event, fds[1], &calls, fixture, &fixture->lifeline) >= 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	(void)lifeline_free(fixture->lifeline);
	(void)sd_event_unref(fixture->event);
	close_fdp(&fixture->fd);
	free(fixture);
	return 0;
}

static void settle(Fixture *fixture)
{
	while (sd_event_run(fixture->event, 0) > 0)
		continue;
}

static void say(Fixture *fixture, LifelineKind kind, int number)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(lifeline_encode(&(LifelineMessage){ .kind = kind, .number = number }, &data, &size),
			 0);
	assert_int_equal(packet_send(fixture->fd, data, size), 0);
	settle(fixture);
}

/* Return: the kind of the next message, LIFELINE_KIND_MAX when there is none. */
static LifelineKind hear(Fixture *fixture, int *ret_number)
{
	LifelineMessage m = { .kind = LIFELINE_KIND_MAX };
	LifelineKind kind;
	ssize_t n;

	settle(fixture);
	n = packet_receive(fixture->fd, fixture->buffer, sizeof(fixture->buffer));
	if (n <= 0)
		return LIFELINE_KIND_MAX;
	assert_int_equal(lifeline_decode(fixture->buffer, (size_t)n, &m), 0);
	kind = m.kind;
	*ret_number = m.number;
	lifeline_message_done(&m);
	return kind;
}

static void signals_that_a_person_sends_pass(void **state)
{
	static const int passing[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGWINCH
	};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ELEMENTSOF(passing); i++) {
		say(fixture, LIFELINE_SIGNAL, passing[i]);
		assert_int_equal(fixture->signals, i + 1);
		assert_int_equal(fixture->last, passing[i]);
	}
	say(fixture, LIFELINE_RESUME, 0);
	assert_int_equal(fixture->resumes, 1);
	assert_int_equal(fixture->behind, 0);
	say(fixture, LIFELINE_RESUME_BEHIND, 0);
	assert_int_equal(fixture->resumes, 2);
	assert_int_equal(fixture->behind, 1);
	say(fixture, LIFELINE_KEY, SIGINT);
	assert_int_equal(fixture->keys, 1);
	assert_int_equal(fixture->last, SIGINT);
	assert_int_equal(fixture->gone, 0);
}

static void another_signal_ends_the_lifeline(void **state)
{
	Fixture *fixture = *state;

	say(fixture, LIFELINE_KEY, SIGKILL);
	assert_int_equal(fixture->keys, 0);
	assert_int_equal(fixture->gone, 1);
}

static void what_only_a_session_says_ends_it(void **state)
{
	Fixture *fixture = *state;

	say(fixture, LIFELINE_EXITED, 0);
	assert_int_equal(fixture->gone, 1);
}

static void closing_is_told_once(void **state)
{
	Fixture *fixture = *state;

	fixture->fd = close_fd(fixture->fd);
	settle(fixture);
	lifeline_exited(fixture->lifeline, 0);
	settle(fixture);
	assert_int_equal(fixture->gone, 1);
	assert_true(lifeline_is_flushed(fixture->lifeline));
}

/* A launch that is stopped while its agent stops and goes on for ever costs bounded memory, and learns the
 * exit. */
static void the_exit_has_its_place(void **state)
{
	Fixture *fixture = *state;
	LifelineKind kind, last = LIFELINE_KIND_MAX;
	unsigned heard = 0;
	int number = 0;

	for (unsigned i = 0; i < 10000; i++)
		lifeline_stopped(fixture->lifeline, SIGTSTP);
	lifeline_exited(fixture->lifeline, 3 << 8);
	assert_false(lifeline_is_flushed(fixture->lifeline));
	while ((kind = hear(fixture, &number)) != LIFELINE_KIND_MAX) {
		last = kind;
		heard++;
	}
	assert_int_equal(last, LIFELINE_EXITED);
	assert_int_equal(number, 3 << 8);
	assert_true(heard < 2000);
	assert_true(lifeline_is_flushed(fixture->lifeline));
}

static void a_long_warning_is_cut(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *text = calloc(1, 100001);
	int number;

	assert_non_null(text);
	memset(text, 'x', 100000);
	lifeline_warning(fixture->lifeline, text);
	lifeline_started(fixture->lifeline);
	assert_int_equal(hear(fixture, &number), LIFELINE_WARNING);
	assert_int_equal(hear(fixture, &number), LIFELINE_STARTED);
}

#define LIFELINE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIFELINE_TEST(signals_that_a_person_sends_pass),
		LIFELINE_TEST(another_signal_ends_the_lifeline),
		LIFELINE_TEST(what_only_a_session_says_ends_it),
		LIFELINE_TEST(closing_is_told_once),
		LIFELINE_TEST(the_exit_has_its_place),
		LIFELINE_TEST(a_long_warning_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
