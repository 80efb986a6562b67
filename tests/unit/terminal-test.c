/* SPDX-License-Identifier: MIT */

/* launch at the terminal: modes, keys, sizes, stops, the background, and terminals that others use too. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "tests/unit/person.h"

/* The agent's side of the PTY is the agent's alone, or the end of its output would not be seen. */
static void expect_no_slave(const Person *person)
{
	char outer[64], path[64], target[64];
	struct dirent *entry;
	DIR *fds;

	assert_int_equal(ttyname_r(person->slave_fd, outer, sizeof(outer)), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)person->pid);
	fds = opendir(path);
	assert_non_null(fds);
	while ((entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		if (starts_with(target, "/dev/pts/") && !strstr(target, "ptmx"))
			assert_string_equal(target, outer);
	}
	(void)closedir(fds);
}

static void terminal_is_proxied(void **state)
{
	_cleanup_(person_end) Person person;
	_cleanup_free_ char *rest = NULL;

	(void)state;
	START(0, "stty size; stty -a | grep -c icanon; read line; echo \"got $line\"; exit 3");
	expect_text(person.terminal_fd, "33 77\r\n1\r\n");
	assert_true(is_raw(&person));
	expect_no_slave(&person);
	person_type(&person, "word\r");
	expect_text(person.terminal_fd, "word\r\ngot word\r\n");
	expect_exit(&person, 3);
	expect_modes_restored(&person);
	rest = read_waiting(person.terminal_fd);
	assert_string_equal(rest, "");
}

static void size_follows(void **state)
{
	_cleanup_(person_end) Person person;
	struct winsize size = { .ws_row = 10, .ws_col = 40 };

	(void)state;
	START(0, "trap 'stty size' WINCH; echo ready; while :; do read l && exit 0; done");
	expect_text(person.terminal_fd, "ready\r\n");
	assert_int_equal(ioctl(person.terminal_fd, TIOCSWINSZ, &size), 0);
	expect_text(person.terminal_fd, "10 40\r\n");
	person_type(&person, "x\r");
	expect_exit(&person, 0);
}

static void keys_are_the_agents(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(0, "echo ready; cat; echo never");
	expect_text(person.terminal_fd, "ready\r\n");
	person_type(&person, "x\n");
	expect_text(person.terminal_fd, "x\r\nx\r\n");
	person_type(&person, "\x03");
	expect_death(&person, SIGINT);
	expect_modes_restored(&person);
}

static void stops_and_comes_back(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	/* An agent that leaves its modes set when it stops; the shell must not get them. */
	START(0, "trap 'printf \"c\"' CONT; printf '\\033[?1049h\\033[?25lui'; kill -TSTP 0; printf '<'; "
		 "read l; "
		 "stty size; printf '\\033[?25h\\033[?1049l'");
	expect_text(person.terminal_fd, "\x1b[?1049h\x1b[?25lui");
	expect_stop(&person, SIGTSTP);
	expect_modes_restored(&person);
	expect_text(person.terminal_fd, "\x1b[?25h\x1b[?1049l");

	assert_int_equal(ioctl(person.terminal_fd, TIOCSWINSZ, &(struct winsize){ .ws_row = 5, .ws_col = 6 }),
			 0);
	assert_int_equal(write(person.command_fd, "f", 1), 1);
	/* One continuation, and the size that the terminal has now. */
	expect_text(person.terminal_fd, "\x1b[?1049h\x1b[?25lc<");
	assert_true(is_raw(&person));
	person_type(&person, "\r");
	expect_next(person.terminal_fd, "\r\n5 6\r\n");
	expect_exit(&person, 0);
	expect_text(person.terminal_fd, "\x1b[?25h\x1b[?1049l");
	expect_modes_restored(&person);
}

static void typed_stop(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(0, "echo ready; sed -u 's/^/> /'; echo \"sed $?\"; exit 4");
	expect_text(person.terminal_fd, "ready\r\n");
	person_type(&person, "x\n");
	expect_text(person.terminal_fd, "> x\r\n");
	for (int i = 0; i < 3; i++) {
		person_type(&person, "\x1a");
		expect_stop(&person, SIGTSTP);
		assert_int_equal(write(person.command_fd, "f", 1), 1);
		person_type(&person, "again\n");
		/* The echo is the terminal's; the answer says that it runs again. */
		expect_text(person.terminal_fd, "> again\r\n");
	}
	person_type(&person, "\x04");
	expect_text(person.terminal_fd, "sed 0\r\n");
	expect_exit(&person, 4);
}

static void modes_are_undone_after_a_kill(void **state)
{
	_cleanup_(person_end) Person person;
	_cleanup_free_ char *rest = NULL;

	(void)state;
	START(0, "printf '\\033[?1049h\\033[?2004h\\033[>1u\\033[?1003h\\033[?10'; kill -KILL $$");
	expect_death(&person, SIGKILL);
	rest = read_waiting(person.terminal_fd);
	assert_non_null(strstr(rest, "\x1b[?10\x18\x1b[?1003l\x1b[?2004l\x1b[<1u\x1b[?1049l"));
	expect_modes_restored(&person);
}

static void the_last_byte_is_written(void **state)
{
	_cleanup_(person_end) Person person;
	_cleanup_free_ char *all = NULL;
	size_t n = 0;

	(void)state;
	START(0, "head -c 1000000 /dev/zero | tr '\\0' x; printf END");
	all = calloc(1, 2000000);
	/* Slowly at first: the terminal takes nothing until here. */
	while (!strstr(n > 3 ? all + n - 3 : all, "END")) {
		struct pollfd event = { .fd = person.terminal_fd, .events = POLLIN };
		ssize_t got;

		assert_true(poll(&event, 1, DEADLINE_MSEC) > 0);
		got = read(person.terminal_fd, all + n, 1999999 - n);
		assert_true(got > 0);
		n += (size_t)got;
	}
	assert_int_equal(n, 1000003);
	expect_exit(&person, 0);
}

static void hang_up_reaches_the_agent(void **state)
{
	_cleanup_(person_end) Person person;
	char directory[] = "/tmp/launch-test-XXXXXX", path[64], script[256];
	int fd, status;
	char seen[16] = "";

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_return_code(mkfifo(path, 0600), errno);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_return_code(fd, errno);
	snprintf(script, sizeof(script),
		 "trap 'echo hup >>%s; exit 0' HUP; echo ready; while :; do read l; done", path);
	START(0, script);
	expect_text(person.terminal_fd, "ready\r\n");
	person.slave_fd = close_fd(person.slave_fd);
	person.terminal_fd = close_fd(person.terminal_fd);
	status = 0;
	/* The shell dies of it as well, so its report may be missing. */
	(void)!read(person.control_fd, &status, sizeof(status));
	assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 10000), 1);
	assert_true(read(fd, seen, sizeof(seen) - 1) > 0);
	assert_string_equal(seen, "hup\n");
	(void)unlink(path);
	(void)rmdir(directory);
	close_fd(fd);
}

static void background_keeps_off_the_terminal(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	/* As natively: an agent that wants raw mode in the background stops until it has the foreground. */
	START(KEY_BACKGROUND, "stty raw -echo; echo raw; read l; stty sane; echo cooked");
	expect_stop(&person, SIGTTOU);
	expect_modes_restored(&person);
	assert_int_equal(write(person.command_fd, "f", 1), 1);
	expect_text(person.terminal_fd, "raw");
	assert_true(is_raw(&person));
	person_type(&person, "x\n");
	expect_text(person.terminal_fd, "cooked");
	expect_exit(&person, 0);
}

static void background_output_is_written(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(KEY_BACKGROUND, "echo hello; exit 2");
	expect_text(person.terminal_fd, "hello\r\n");
	expect_exit(&person, 2);
	expect_modes_restored(&person);
}

/* `claude -p | less`: less owns the terminal, until the agent itself asks for its keys. */
static void others_terminal_is_left_alone(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(KEY_OUT_PIPE, "echo to-pipe; echo to-terminal >&2; stty raw -echo; echo now >&2; head -c 1; "
			    "stty sane; echo sane");
	expect_text(person.out_fd, "to-pipe\n");
	expect_text(person.terminal_fd, "to-terminal\r\n");
	expect_text(person.terminal_fd, "now");
	assert_true(is_raw(&person));
	person_type(&person, "k");
	expect_text(person.out_fd, "k");
	expect_text(person.out_fd, "sane\n");
	expect_exit(&person, 0);
	expect_modes_restored(&person);
}

/* ... and while the agent has not asked for single keys, every key is less's. */
static void others_keys_are_not_taken(void **state)
{
	_cleanup_(person_end) Person person;
	char keys[16] = "";

	(void)state;
	START(KEY_OUT_PIPE | KEY_IN_PIPE, "echo ready; read l; exit 0");
	expect_text(person.out_fd, "ready\n");
	person_type(&person, "for less\n");
	person.in_fd = close_fd(person.in_fd);
	/* stderr alone is the terminal here; the agent ends with its own input. */
	expect_exit(&person, 0);
	assert_int_equal(read(person.slave_fd, keys, sizeof(keys) - 1), 9);
	assert_string_equal(keys, "for less\n");
}

/* `echo prompt | claude`: keys come from the terminal as soon as the agent makes it raw. */
static void piped_input_mirrors_the_modes(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(KEY_IN_PIPE,
	      "read l; echo \"$l\"; stty -F /dev/tty raw -echo opost; echo raw; head -c 2 </dev/tty; "
	      "stty -F /dev/tty sane; echo; echo cooked");
	assert_int_equal(write(person.in_fd, "prompt\n", 7), 7);
	expect_text(person.terminal_fd, "prompt\r\nraw\r\n");
	assert_true(is_raw(&person));
	person_type(&person, "ab");
	expect_text(person.terminal_fd, "ab");
	expect_text(person.terminal_fd, "cooked");
	expect_exit(&person, 0);
	expect_modes_restored(&person);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terminal_is_proxied),
		cmocka_unit_test(size_follows),
		cmocka_unit_test(keys_are_the_agents),
		cmocka_unit_test(stops_and_comes_back),
		cmocka_unit_test(typed_stop),
		cmocka_unit_test(modes_are_undone_after_a_kill),
		cmocka_unit_test(the_last_byte_is_written),
		cmocka_unit_test(hang_up_reaches_the_agent),
		cmocka_unit_test(background_keeps_off_the_terminal),
		cmocka_unit_test(background_output_is_written),
		cmocka_unit_test(others_terminal_is_left_alone),
		cmocka_unit_test(others_keys_are_not_taken),
		cmocka_unit_test(piped_input_mirrors_the_modes),
	};

	return cmocka_run_group_tests(tests, world_make, world_end);
}
