/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "dbus/wire.h"
#include "service/daemon/config-file.h"
#include "service/daemon/request.h"
#include "service/daemon/spawn.h"
#include "service/link/pack.h"

/* A bus that is never connected: good enough to build and read messages. */
static int setup(void **state)
{
	sd_bus *bus = NULL;
	int fds[2];

	if (sd_bus_new(&bus) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
	    sd_bus_negotiate_fds(bus, true) < 0 || sd_bus_set_fd(bus, fds[0], fds[0]) < 0 ||
	    sd_bus_start(bus) < 0)
		return -1;
	*state = bus;
	return 0;
}

static int teardown(void **state)
{
	sd_bus_close_unref(*state);
	return 0;
}

static void accepted(int fd, bool terminal)
{
	_cleanup_free_ char *problem = NULL;
	dev_t number = 99;

	assert_true(fd >= 0);
	assert_int_equal(descriptor_check(fd, &number, &problem), 0);
	assert_int_equal(number != 0, terminal);
	close(fd);
}

static void refused(int fd, const char *words)
{
	_cleanup_free_ char *problem = NULL;
	dev_t number = 99;

	assert_true(fd >= 0);
	assert_int_equal(descriptor_check(fd, &number, &problem), -EINVAL);
	assert_non_null(strstr(problem, words));
	assert_int_equal(number, 0);
	close(fd);
}

static int one_of_pair(int domain, int type)
{
	int fds[2];

	assert_int_equal(socketpair(domain, type, 0, fds), 0);
	close(fds[1]);
	return fds[0];
}

static void kinds_of_descriptors(void **state)
{
	int fds[2], master, slave;

	accepted(open("/dev/null", O_RDWR), false);
	accepted(open("/dev/zero", O_RDONLY), false);
	accepted(open("/dev/urandom", O_RDONLY), false);
	accepted(open("/etc/passwd", O_RDONLY), false);
	assert_int_equal(pipe(fds), 0);
	accepted(fds[0], false);
	accepted(fds[1], false);
	accepted(one_of_pair(AF_UNIX, SOCK_STREAM), false);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	accepted(slave, true);

	refused(master, "not the slave");
	refused(one_of_pair(AF_UNIX, SOCK_DGRAM), "no stream");
	refused(one_of_pair(AF_UNIX, SOCK_SEQPACKET), "no stream");
	refused(socket(AF_INET, SOCK_STREAM, 0), "of the network");
	refused(socket(AF_INET6, SOCK_STREAM, 0), "of the network");
	refused(socket(AF_INET, SOCK_DGRAM, 0), "of the network");
	refused(socket(AF_UNIX, SOCK_STREAM, 0), "not connected");
	refused(socket(AF_NETLINK, SOCK_RAW, 0), "no stream");
	refused(open("/", O_RDONLY), "a directory");
	refused(open("/etc/passwd", O_PATH), "O_PATH");
	refused(open("/dev", O_PATH), "O_PATH");
	refused(eventfd(0, 0), "object of the kernel");
	refused(epoll_create1(0), "object of the kernel");
}

typedef struct Words {
	const char *agent, *cwd;
	char **argv, **environment;
	const char *option;
	int key, fd;
} Words;

static int read_words(void **state, const Words *words, LaunchRequest *ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *m = NULL;

	assert_true(sd_bus_message_new_method_call(*state, &m, "a.b", "/x", "x.y", "Z") >= 0);
	assert_true(sd_bus_message_append(m, "s", words->agent) >= 0);
	assert_true(wire_append_vector(m, words->argv) >= 0);
	assert_true(wire_append_vector(m, words->environment) >= 0);
	assert_true(wire_append_bytes(m, words->cwd) >= 0);
	assert_true(sd_bus_message_open_container(m, 'a', "{uh}") >= 0);
	if (words->key >= 0)
		assert_true(sd_bus_message_append(m, "{uh}", (uint32_t)words->key, words->fd) >= 0);
	if (words->key == 2) /* given twice */
		assert_true(sd_bus_message_append(m, "{uh}", 2, words->fd) >= 0);
	assert_true(sd_bus_message_close_container(m) >= 0);
	if (words->option)
		assert_true(sd_bus_message_append(m, "a{sv}", 1, words->option, "s", "x") >= 0);
	else
		assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
	assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
	assert_true(sd_bus_message_rewind(m, true) >= 0);
	return launch_request_read(m, ret, reterr);
}

static void launch_is_read(void **state)
{
	char *argv[] = { (char *)"a", (char *)"", (char *)"\xff", NULL },
	     *environment[] = { (char *)"B=c", NULL };
	_cleanup_(launch_request_done) LaunchRequest request = LAUNCH_REQUEST_INIT;
	_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const Words words = {
		.agent = "shell", .cwd = "/w", .argv = argv, .environment = environment, .key = 1, .fd = fd
	};

	assert_int_equal(read_words(state, &words, &request, &error), 0);
	assert_string_equal(request.agent, "shell");
	assert_string_equal(request.argv[2], "\xff");
	assert_null(request.argv[3]);
	assert_string_equal(request.environment[0], "B=c");
	assert_string_equal(request.cwd, "/w");
	assert_int_equal(request.descriptors, 2);
	assert_int_equal(request.terminals, 0);
	assert_true(request.fds[1] >= 0 && request.fds[1] != fd && request.fds[0] < 0 && request.fds[2] < 0);
	assert_int_equal(fcntl(request.fds[1], F_GETFD), FD_CLOEXEC);
}

static void launch_is_refused(void **state)
{
	char *none[] = { NULL }, **many, *long_word = malloc(REQUEST_STRING_MAX + 2);
	char *too_long[] = { long_word, NULL };
	const struct {
		Words words;
		const char *name, *part;
	} cases[] = {
		{ { "", "/", none, none, NULL, -1, -1 }, CS_ERROR_BAD_REQUEST, "agent" },
		{ { "shell", "w", none, none, NULL, -1, -1 }, CS_ERROR_BAD_REQUEST, "absolute" },
		{ { "shell", "", none, none, NULL, -1, -1 }, CS_ERROR_BAD_REQUEST, "absolute" },
		{ { "shell", "/", none, none, "colour", -1, -1 }, CS_ERROR_BAD_REQUEST, "'colour'" },
		{ { "shell", "/", none, none, NULL, 256, 0 }, CS_ERROR_BAD_REQUEST, "255 is the last" },
		{ { "shell", "/", none, none, NULL, 3, 0 },
		  CS_ERROR_BAD_REQUEST,
		  "neither a file nor a pipe" },
		{ { "shell", "/", none, none, NULL, 2, 0 }, CS_ERROR_BAD_REQUEST, "twice" },
		{ { "shell", "/", too_long, none, NULL, -1, -1 },
		  CS_ERROR_LIMITS_EXCEEDED,
		  "Entry 1 of argv" },
		{ { "shell", "/", none, too_long, NULL, -1, -1 },
		  CS_ERROR_LIMITS_EXCEEDED,
		  "of environment" },
	};
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_non_null(long_word);
	memset(long_word, 'x', REQUEST_STRING_MAX + 1);
	long_word[REQUEST_STRING_MAX + 1] = '\0';
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
		LaunchRequest request = LAUNCH_REQUEST_INIT;
		Words words = cases[i].words;

		words.fd = fd;
		assert_true(read_words(state, &words, &request, &error) < 0);
		assert_string_equal(error.name, cases[i].name);
		assert_non_null(strstr(error.message, cases[i].part));
		assert_null(request.agent);
	}

	many = calloc(CS_REQUEST_STRINGS_MAX + 2, sizeof(*many));
	assert_non_null(many);
	for (size_t i = 0; i <= CS_REQUEST_STRINGS_MAX; i++)
		many[i] = (char *)"";
	for (int both = 0; both < 2; both++) {
		_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
		LaunchRequest request = LAUNCH_REQUEST_INIT;
		/* one too many, and as many as may be with one more in the environment */
		Words words = { "shell", "/", many + both, both ? too_long : none, NULL, -1, -1 };

		assert_true(read_words(state, &words, &request, &error) < 0);
		assert_string_equal(error.name, CS_ERROR_LIMITS_EXCEEDED);
	}
	free(many);
	free(long_word);
}

static int read_keys(void **state, const uint32_t *keys, size_t n, LaunchRequest *ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	char *none[] = { NULL };

	assert_true(sd_bus_message_new_method_call(*state, &m, "a.b", "/x", "x.y", "Z") >= 0);
	assert_true(sd_bus_message_append(m, "s", "shell") >= 0);
	assert_true(wire_append_vector(m, none) >= 0);
	assert_true(wire_append_vector(m, none) >= 0);
	assert_true(wire_append_bytes(m, "/") >= 0);
	assert_true(sd_bus_message_open_container(m, 'a', "{uh}") >= 0);
	for (size_t i = 0; i < n; i++) {
		/* What is at a key is known again by its size. */
		_cleanup_close_ int fd = memfd_create("key", MFD_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, keys[i]), 0);
		assert_true(sd_bus_message_append(m, "{uh}", keys[i], fd) >= 0);
	}
	assert_true(sd_bus_message_close_container(m) >= 0);
	assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
	assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
	assert_true(sd_bus_message_rewind(m, true) >= 0);
	return launch_request_read(m, ret, reterr);
}

static void further_ones_have_an_order(void **state)
{
	static const uint32_t keys[] = { 63, 5, 255, 1, 3 }, twice[] = { 5, 63, 5 };
	static const uint8_t order[] = { 3, 5, 63, 255, 0 };
	_cleanup_(launch_request_done) LaunchRequest request = LAUNCH_REQUEST_INIT;
	_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL, other = SD_BUS_ERROR_NULL;
	LaunchRequest none = LAUNCH_REQUEST_INIT;
	uint32_t many[SLOTS_FURTHER_MAX + 1];
	struct stat st;

	assert_int_equal(read_keys(state, keys, ELEMENTSOF(keys), &request, &error), 0);
	assert_int_equal(request.descriptors, 2 | 15u << SLOTS_FIRST_FURTHER);
	assert_memory_equal(request.further, order, sizeof(order));
	assert_true(slots_are_valid(request.descriptors, request.further));
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
		assert_int_equal(request.fds[slot] >= 0, request.descriptors >> slot & 1);
		if (request.fds[slot] < 0)
			continue;
		assert_int_equal(fstat(request.fds[slot], &st), 0);
		assert_int_equal(st.st_size, slot_number(slot, request.further));
	}

	assert_true(read_keys(state, twice, ELEMENTSOF(twice), &none, &error) < 0);
	assert_non_null(strstr(error.message, "twice"));
	for (size_t i = 0; i < ELEMENTSOF(many); i++)
		many[i] = 40 - (uint32_t)i;
	assert_true(read_keys(state, many, ELEMENTSOF(many), &none, &other) < 0);
	assert_non_null(strstr(other.message, "more than 13"));
}

static void configuration_file(const char *path, int expected, const char *words)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_free_ char *problem = NULL;

	assert_int_equal(config_file_read(path, &config, &problem), expected);
	if (words)
		assert_non_null(strstr(problem, words));
}

static void configuration_is_root_s_alone(void **state)
{
	char path[] = "/tmp/request-check-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	configuration_file("/tmp/request-check-none", 0, NULL);
	configuration_file("/tmp", -EINVAL, "regular");
	configuration_file("/proc/self/exe", -EINVAL, "symbolic link");
	assert_int_equal(write(fd, "max-sessions = 3\n", 17), 17);
	if (geteuid() != 0) {
		configuration_file(path, -EINVAL, "root's");
	} else {
		configuration_file(path, 0, NULL);
		assert_int_equal(fchmod(fd, 0620), 0);
		configuration_file(path, -EINVAL, "chmod");
		assert_int_equal(fchmod(fd, 0602), 0);
		configuration_file(path, -EINVAL, "chmod");
		assert_int_equal(fchmod(fd, 0600), 0);
		assert_int_equal(fchown(fd, 1000, 0), 0);
		configuration_file(path, -EINVAL, "1000");
		assert_int_equal(fchown(fd, 0, 0), 0);
		assert_int_equal(ftruncate(fd, CONFIG_BYTES_MAX + 1), 0);
		configuration_file(path, -EINVAL, "longer");
	}
	close(fd);
	unlink(path);
}

static void requests_are_sealed(void **state)
{
	_cleanup_close_ int fd = sealed_memfd("x", "data", 4);
	char data[8];

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, data, sizeof(data)), 4);
	assert_int_equal(write(fd, "y", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_descriptors),
		cmocka_unit_test(launch_is_read),
		cmocka_unit_test(launch_is_refused),
		cmocka_unit_test(further_ones_have_an_order),
		cmocka_unit_test(configuration_is_root_s_alone),
		cmocka_unit_test(requests_are_sealed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
