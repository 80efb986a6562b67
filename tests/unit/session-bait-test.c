/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "service/link/bait-name.h"
#include "service/session/bait.h"

#define ID "bait234567testid"

typedef struct Fixture {
	sd_event *event;
	Bait *bait;
	char path[64];
} Fixture;

static int setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	{
		_cleanup_free_ char *path = bait_path(ID);

		assert_non_null(path);
		(void)snprintf(fixture->path, sizeof(fixture->path), "%s", path);
	}
	(void)unlink(fixture->path);
	assert_true(sd_event_new(&fixture->event) >= 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	(void)bait_free(fixture->bait);
	(void)sd_event_unref(fixture->event);
	free(fixture);
	return 0;
}

static const ExpectedBait *find(const Bait *bait, BaitKind kind)
{
	size_t n;
	const ExpectedBait *items = bait_list(bait, &n);

	for (size_t i = 0; i < n; i++)
		if (items[i].kind == kind)
			return &items[i];
	return NULL;
}

static socklen_t address_of(const ExpectedBait *bait, struct sockaddr_storage *to)
{
	struct sockaddr_in *to4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)to;
	struct sockaddr_un *un = (struct sockaddr_un *)to;
	size_t before = bait->kind == BAIT_ABSTRACT;

	memset(to, 0, sizeof(*to));
	switch (bait->kind) {
	case BAIT_TCP4:
	case BAIT_UDP4:
		*to4 = (struct sockaddr_in){ .sin_family = AF_INET,
					     .sin_port = htons(bait->port),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		return sizeof(*to4);
	case BAIT_TCP6:
	case BAIT_UDP6:
		*to6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
					      .sin6_port = htons(bait->port),
					      .sin6_addr = IN6ADDR_LOOPBACK_INIT };
		return sizeof(*to6);
	default:
		un->sun_family = AF_UNIX;
		memcpy(un->sun_path + before, bait->name, strlen(bait->name));
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + before + strlen(bait->name));
	}
}

/* Ask as a probe does. */
static bool answers(Fixture *fixture, const ExpectedBait *bait)
{
	bool stream = bait->kind != BAIT_UDP4 && bait->kind != BAIT_UDP6;
	struct sockaddr_storage to;
	socklen_t size = address_of(bait, &to);
	_cleanup_close_ int fd =
		socket(to.ss_family, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char answer[64] = "";

	if (fd < 0 || (connect(fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS))
		return false;
	if (!stream)
		assert_int_equal(send(fd, "x", 1, 0), 1);
	for (unsigned i = 0; i < 20 && recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT) <= 0; i++)
		(void)sd_event_run(fixture->event, 50 * USEC_PER_MSEC);
	return streq(answer, bait_token(fixture->bait));
}

static void each_gives_the_token(void **state)
{
	static const BaitKind needed[] = { BAIT_TCP4, BAIT_UDP4, BAIT_ABSTRACT, BAIT_PATH };
	Fixture *fixture = *state;
	const ExpectedBait *items;
	struct stat st;
	size_t n;

	assert_int_equal(bait_new(fixture->event, ID, &fixture->bait), 0);
	assert_int_equal(strlen(bait_token(fixture->bait)), 32);
	for (size_t i = 0; i < ELEMENTSOF(needed); i++)
		assert_non_null(find(fixture->bait, needed[i]));
	items = bait_list(fixture->bait, &n);
	/* The id is nobody's to see, and everybody sees the names of sockets. */
	for (size_t i = 0; i < n; i++)
		assert_true(!items[i].name || !strstr(items[i].name, ID));
	for (size_t i = 0; i < n; i++)
		assert_true(answers(fixture, &items[i]));
	assert_int_equal(stat(fixture->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	fixture->bait = bait_free(fixture->bait);
	assert_int_equal(access(fixture->path, F_OK), -1);
}

/* Somebody was there first: it is not touched, and is no bait. */
static void a_taken_path_is_left_alone(void **state)
{
	Fixture *fixture = *state;
	int fd = open(fixture->path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(bait_new(fixture->event, ID, &fixture->bait), 0);
	assert_null(find(fixture->bait, BAIT_PATH));
	assert_non_null(find(fixture->bait, BAIT_TCP4));
	fixture->bait = bait_free(fixture->bait);
	assert_int_equal(unlink(fixture->path), 0);
}

static void tokens_differ(void **state)
{
	Fixture *fixture = *state;
	char first[64];

	assert_int_equal(bait_new(fixture->event, ID, &fixture->bait), 0);
	(void)snprintf(first, sizeof(first), "%s", bait_token(fixture->bait));
	fixture->bait = bait_free(fixture->bait);
	assert_int_equal(bait_new(fixture->event, ID, &fixture->bait), 0);
	assert_string_not_equal(bait_token(fixture->bait), first);
}

/* Whoever asks without end is not answered without end. */
static void answers_are_counted(void **state)
{
	Fixture *fixture = *state;
	const ExpectedBait *bait;
	struct sockaddr_storage to;
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size;

	assert_int_equal(bait_new(fixture->event, ID, &fixture->bait), 0);
	assert_false(bait_is_spent(fixture->bait));
	bait = find(fixture->bait, BAIT_UDP4);
	size = address_of(bait, &to);
	for (unsigned i = 0; i <= BAIT_ANSWERS_MAX; i++) {
		assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, size), 1);
		(void)sd_event_run(fixture->event, 0);
	}
	assert_false(answers(fixture, find(fixture->bait, BAIT_ABSTRACT)));
	assert_true(bait_is_spent(fixture->bait));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_gives_the_token, setup, teardown),
		cmocka_unit_test_setup_teardown(a_taken_path_is_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(tokens_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_are_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
