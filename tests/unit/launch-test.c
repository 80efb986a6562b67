/* SPDX-License-Identifier: MIT */

/* launch but for the terminal: streams, statuses, signals, errors, the way in. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/unit/person.h"

static void pipes_and_statuses(void **state)
{
	static const struct {
		const char *script, *in, *out, *err;
		int code;
	} cases[] = {
		/* Nothing is written to who does not read it: it may have ended by then. */
		{ "echo out; echo err >&2; exit 0", "", "out\n", "err\n", 0 },
		{ "cat; exit 7", "typed\n", "typed\n", "", 7 },
		{ "exit 255", "", "", "", 255 },
	};
	(void)state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		for (unsigned keys = KEY_PIPES; keys <= (KEY_PIPES | KEY_NO_TERMINAL);
		     keys += KEY_NO_TERMINAL) {
			_cleanup_(person_end) Person person;
			_cleanup_free_ char *out = NULL, *err = NULL;

			START(keys, cases[i].script);
			assert_int_equal(write(person.in_fd, cases[i].in, strlen(cases[i].in)),
					 strlen(cases[i].in));
			person.in_fd = close_fd(person.in_fd);
			out = read_rest(person.out_fd);
			err = read_rest(person.err_fd);
			assert_string_equal(out, cases[i].out);
			assert_string_equal(err, cases[i].err);
			expect_exit(&person, cases[i].code);
		}
	}
}

static void dies_as_the_agent_did(void **state)
{
	static const int numbers[] = { SIGTERM, SIGKILL, SIGSEGV, SIGHUP };

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
		_cleanup_(person_end) Person person;
		char script[32];

		snprintf(script, sizeof(script), "kill -%d $$", numbers[i]);
		START(0, script);
		expect_death(&person, numbers[i]);
		expect_modes_restored(&person);
	}
}

static void signals_are_forwarded(void **state)
{
	static const struct {
		int number;
		const char *trap, *said;
	} cases[] = { { SIGTERM, "TERM", "sig TERM\n" }, { SIGUSR1, "USR1", "sig USR1\n" },
		      { SIGUSR2, "USR2", "sig USR2\n" }, { SIGHUP, "HUP", "sig HUP\n" },
		      { SIGINT, "INT", "sig INT\n" },    { SIGQUIT, "QUIT", "sig QUIT\n" },
		      { SIGCONT, "CONT", "sig CONT\n" }, { SIGWINCH, "WINCH", "sig WINCH\n" } };
	(void)state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(person_end) Person person;
		char script[256];

		snprintf(script, sizeof(script),
			 "trap 'echo sig %s' %s; trap 'exit 11' ALRM; echo ready; while :; do read l || exit "
			 "9; done",
			 cases[i].trap, cases[i].trap);
		START(KEY_PIPES, script);
		expect_text(person.out_fd, "ready\n");
		assert_int_equal(kill(person.pid, cases[i].number), 0);
		expect_text(person.out_fd, cases[i].said);
		person.in_fd = close_fd(person.in_fd);
		expect_exit(&person, 9);
		_cleanup_free_ char *rest = read_rest(person.out_fd);
		assert_string_equal(rest, "");
	}
}

static void errors_are_one_line(void **state)
{
	static const struct {
		const char *name, *sentence, *said;
		int code;
	} cases[] = {
		{ CS_ERROR_UNSAFE_WORKSPACE, "the workspace is /; change to a project",
		  "claude-sandbox: the workspace is /; change to a project\n", 125 },
		{ CS_ERROR_AGENT_MISSING, "no claude; run 'claude-sandbox install claude'",
		  "claude-sandbox: no claude; run 'claude-sandbox install claude'\n", 127 },
		{ CS_ERROR_BAD_REQUEST, "a\nb \x1b[31m", "claude-sandbox: a", 125 },
	};
	(void)state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(person_end) Person person;
		_cleanup_free_ char *err = NULL, *out = NULL;

		START(KEY_OUT_PIPE | KEY_ERR_PIPE, "!error", cases[i].name, cases[i].sentence);
		err = read_rest(person.err_fd);
		out = read_rest(person.out_fd);
		assert_int_equal(strncmp(err, cases[i].said, strlen(cases[i].said)), 0);
		assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
		assert_null(strchr(err, '\x1b'));
		assert_string_equal(out, "");
		expect_exit(&person, cases[i].code);
		expect_modes_restored(&person);
	}
}

static void typed_interrupt_cancels_the_call(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(0, "!hang");
	expect_told("held");
	assert_false(is_raw(&person));
	person_type(&person, "\x03");
	expect_death(&person, SIGINT);
	expect_told("gone");
}

static void warnings_come_first(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(0, "!warn", "something is odd", "echo agent");
	expect_text(person.terminal_fd, "claude-sandbox: something is odd\r\nagent\r\n");
	expect_exit(&person, 0);
}

static void a_lost_session_is_reported(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(0, "!vanish", "printf '\\033[?1049h'; kill -STOP $$");
	expect_text(person.terminal_fd, "\x1b[?1049h\x1b[?1049lclaude-sandbox: the session ended");
	expect_exit(&person, 125);
	expect_modes_restored(&person);
}

static void directories_are_refused(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(KEY_IN_DIRECTORY, "exit 0");
	expect_text(person.terminal_fd, "claude-sandbox: standard input is a directory");
	expect_exit(&person, 125);
}

/* The service gets the caller's whole environment, launch itself has none. */
static void the_environment_is_data(void **state)
{
	static const char *const cases[][2] = { { "A", "claude-sandbox: b\r\n" },
						{ "LD_PRELOAD", "claude-sandbox: /run/planted.so\r\n" },
						{ "B", "claude-sandbox: unset\r\n" } };
	char path[32];
	int fd;

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(person_end) Person person;

		START(0, "!variable", cases[i][0]);
		expect_text(person.terminal_fd, cases[i][1]);
		expect_exit(&person, 125);
	}
	{
		_cleanup_(person_end) Person person;

		START(0, "!hang");
		expect_told("held");
		snprintf(path, sizeof(path), "/proc/%d/environ", (int)person.pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(read(fd, path, 1), 0);
		close_fd(fd);
		person_type(&person, "\x03");
		expect_death(&person, SIGINT);
		expect_told("gone");
	}
}

static void marker_write(const char *text)
{
	int fd;

	(void)mkdir(CS_RUN_DIR, 0711);
	(void)unlink(CS_MARKER_PATH);
	fd = open(CS_MARKER_PATH, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close_fd(fd);
}

static int marker_remove(void **state)
{
	(void)state;
	(void)unlink(CS_MARKER_PATH);
	return 0;
}

/* In a jail: the agent itself, with the environment and arguments as they are, and no bus. */
static void nested_is_the_agent(void **state)
{
	static const struct {
		const char *marker, *said;
		int code;
	} cases[] = {
		{ "claude\n/bin/sh\n", "b -- tty\r\n", 6 },
		{ "codex\n/bin/sh\n", "claude-sandbox: this is a session of codex", 125 },
		{ "claude\n/nonexistent\n", "claude-sandbox: /nonexistent cannot be started", 125 },
		{ "claude\nbin/sh\n", "claude-sandbox: " CS_MARKER_PATH " is not a session's marker", 125 },
		{ "claude\n/bin/sh", "claude-sandbox: " CS_MARKER_PATH " is not a session's marker", 125 },
		{ "claude\n\n", "claude-sandbox: " CS_MARKER_PATH " is not a session's marker", 125 },
		{ "\n/bin/sh\n", "claude-sandbox: " CS_MARKER_PATH " is not a session's marker", 125 },
		{ "x", "claude-sandbox: " CS_MARKER_PATH " is not a session's marker", 125 },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(person_end) Person person;

		marker_write(cases[i].marker);
		START(0, "-c", "test -t 0 && echo \"$A $1 tty\"; exit 6", "name", "--");
		expect_text(person.terminal_fd, cases[i].said);
		expect_exit(&person, cases[i].code);
	}
}

static void closed_streams_stay_closed(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(KEY_IN_CLOSED, "test -e /proc/self/fd/0 && exit 1; test -t 1 || exit 2; exit 5");
	expect_exit(&person, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipes_and_statuses),
		cmocka_unit_test(dies_as_the_agent_did),
		cmocka_unit_test(signals_are_forwarded),
		cmocka_unit_test(errors_are_one_line),
		cmocka_unit_test(typed_interrupt_cancels_the_call),
		cmocka_unit_test(warnings_come_first),
		cmocka_unit_test(a_lost_session_is_reported),
		cmocka_unit_test(directories_are_refused),
		cmocka_unit_test(closed_streams_stay_closed),
		cmocka_unit_test(the_environment_is_data),
		cmocka_unit_test_teardown(nested_is_the_agent, marker_remove),
	};

	return cmocka_run_group_tests(tests, world_make, world_end);
}
