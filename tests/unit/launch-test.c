/* SPDX-License-Identifier: MIT */

/*
 * launch on a terminal of ours, with a bus of ours at the real path (a mount namespace), and launch-stand-in
 * in the place of service and session. The agent is a shell under the real init.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "dbus/client.h"
#include "jail-fixture.h"

static pid_t bus_pid, service_pid;
static int told_fd = FD_NONE;

/* A person at a terminal, or a script with pipes. */
typedef struct Person {
	int terminal_fd; /* master of the outer terminal */
	int slave_fd;    /* kept, to see its modes */
	int in_fd, out_fd, err_fd;
	pid_t pid;      /* launch; leader of a group in the foreground */
	pid_t shell;    /* session leader, its parent, as a shell would be */
	int control_fd; /* what launch's end and stops are told on: int status */
	int command_fd; /* to the shell: 'f' foreground, 'b' background */
	struct termios modes;
} Person;

typedef enum Keys {
	KEY_IN_PIPE = 1,
	KEY_OUT_PIPE = 2,
	KEY_ERR_PIPE = 4,
	KEY_PIPES = 7,
	KEY_BACKGROUND = 8,
	KEY_NO_TERMINAL = 16,
} Keys;

static void give(int from, int to)
{
	if (dup2(from, to) < 0)
		_exit(97);
}

_noreturn_ static void launch_execute(char *const *argv, int environment_fd)
{
	char *const nothing[] = { NULL };
	(void)environment_fd;
	execve(LAUNCH_PROGRAM, argv, nothing);
	_exit(96);
}

/* A shell with one job: reports what wait(2) says, and moves the job between foreground and background. */
_noreturn_ static void shell_run(pid_t job, int control_fd, int command_fd, int tty_fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		int status;
		char command;

		if (waitpid(job, &status, WUNTRACED) < 0)
			_exit(95);
		/* As shells do: the terminal back to ourselves. */
		if (tty_fd >= 0)
			(void)tcsetpgrp(tty_fd, getpid());
		if (write(control_fd, &status, sizeof(status)) != sizeof(status) || !WIFSTOPPED(status))
			_exit(0);
		if (read(command_fd, &command, 1) != 1)
			_exit(0);
		if (command == 'f')
			(void)tcsetpgrp(tty_fd, job);
		(void)kill(-job, SIGCONT);
	}
}

static int environment_make(void)
{
	int fd = memfd_create("environment", MFD_CLOEXEC);

	assert_int_equal(write(fd, "A=b\0C=d", 8), 8);
	return fd;
}

static void person_start(Person *person, unsigned keys, const char *const *arguments)
{
	char *argv[16] = { (char *)"launch", (char *)"claude", (char *)"50" };
	int in[2] = { FD_NONE, FD_NONE }, out[2] = { FD_NONE, FD_NONE }, err[2] = { FD_NONE, FD_NONE };
	int control[2], command[2], environment_fd = environment_make();
	struct winsize size = { .ws_row = 33, .ws_col = 77 };

	for (size_t i = 0; arguments[i]; i++)
		argv[3 + i] = (char *)arguments[i];
	*person = (Person){ .terminal_fd = FD_NONE,
			    .slave_fd = FD_NONE,
			    .in_fd = FD_NONE,
			    .out_fd = FD_NONE,
			    .err_fd = FD_NONE };
	assert_int_equal(pipe2(control, O_CLOEXEC), 0);
	assert_int_equal(pipe2(command, O_CLOEXEC), 0);
	if (keys & KEY_IN_PIPE)
		assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	if (keys & KEY_OUT_PIPE)
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	if (keys & KEY_ERR_PIPE)
		assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	if (!(keys & KEY_NO_TERMINAL)) {
		person->terminal_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		assert_int_equal(unlockpt(person->terminal_fd), 0);
		person->slave_fd = ioctl(person->terminal_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		assert_true(person->slave_fd >= 0);
		assert_int_equal(ioctl(person->terminal_fd, TIOCSWINSZ, &size), 0);
		assert_int_equal(tcgetattr(person->slave_fd, &person->modes), 0);
	}

	person->shell = fork();
	assert_true(person->shell >= 0);
	if (person->shell == 0) {
		pid_t job;

		(void)setsid();
		if (person->slave_fd >= 0)
			(void)ioctl(person->slave_fd, TIOCSCTTY, 0);
		job = fork();
		if (job == 0) {
			sigset_t none;

			(void)setpgid(0, 0);
			(void)signal(SIGTTOU, SIG_IGN);
			if (person->slave_fd >= 0 && !(keys & KEY_BACKGROUND))
				(void)tcsetpgrp(person->slave_fd, getpid());
			(void)signal(SIGTTOU, SIG_DFL);
			sigemptyset(&none);
			(void)sigprocmask(SIG_SETMASK, &none, NULL);
			give(keys & KEY_IN_PIPE ? in[0] : person->slave_fd, 0);
			give(keys & KEY_OUT_PIPE ? out[1] : person->slave_fd, 1);
			give(keys & KEY_ERR_PIPE ? err[1] : person->slave_fd, 2);
			give(environment_fd, 50);
			launch_execute(argv, 50);
		}
		(void)setpgid(job, job);
		close_fd(in[0]), close_fd(in[1]), close_fd(out[0]), close_fd(out[1]), close_fd(err[0]),
			close_fd(err[1]);
		close_fd(command[1]);
		close_fd(person->terminal_fd);
		(void)!write(control[1], &job, sizeof(job));
		shell_run(job, control[1], command[0], person->slave_fd);
	}
	close_fd(in[0]);
	close_fd(out[1]);
	close_fd(err[1]);
	close_fd(control[1]);
	close_fd(command[0]);
	close_fd(environment_fd);
	person->in_fd = in[1];
	person->out_fd = out[0];
	person->err_fd = err[0];
	person->control_fd = control[0];
	person->command_fd = command[1];
	assert_int_equal(read(person->control_fd, &person->pid, sizeof(person->pid)), sizeof(person->pid));
}

static void person_end(Person *person)
{
	int status;

	close_fd(person->terminal_fd);
	close_fd(person->slave_fd);
	close_fd(person->in_fd);
	close_fd(person->out_fd);
	close_fd(person->err_fd);
	close_fd(person->control_fd);
	close_fd(person->command_fd);
	(void)kill(-person->pid, SIGKILL);
	(void)kill(person->shell, SIGKILL);
	assert_int_equal(waitpid(person->shell, &status, 0), person->shell);
}

/* What the shell's wait(2) says next, with a deadline. */
static int person_status(Person *person)
{
	struct pollfd event = { .fd = person->control_fd, .events = POLLIN };
	int status;

	if (poll(&event, 1, DEADLINE_MSEC) <= 0)
		fail_msg("launch neither ended nor stopped");
	assert_int_equal(read(person->control_fd, &status, sizeof(status)), sizeof(status));
	return status;
}

static void person_type(Person *person, const char *text)
{
	assert_int_equal(write(person->terminal_fd, text, strlen(text)), strlen(text));
}

static void expect_exit(Person *person, int code)
{
	int status = person_status(person);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail_msg("status %#x instead of exit %d", (unsigned)status, code);
}

static void expect_death(Person *person, int number)
{
	int status = person_status(person);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != number)
		fail_msg("status %#x instead of death by %d", (unsigned)status, number);
}

static void expect_stop(Person *person, int number)
{
	int status = person_status(person);

	if (!WIFSTOPPED(status) || WSTOPSIG(status) != number)
		fail_msg("status %#x instead of a stop by %d", (unsigned)status, number);
}

static void expect_modes_restored(const Person *person)
{
	struct termios now;

	assert_int_equal(tcgetattr(person->slave_fd, &now), 0);
	assert_int_equal(now.c_iflag, person->modes.c_iflag);
	assert_int_equal(now.c_oflag, person->modes.c_oflag);
	assert_int_equal(now.c_lflag, person->modes.c_lflag);
	assert_memory_equal(now.c_cc, person->modes.c_cc, VEOL2 + 1);
}

static bool is_raw(const Person *person)
{
	struct termios now;

	assert_int_equal(tcgetattr(person->slave_fd, &now), 0);
	return !(now.c_lflag & ICANON);
}

/* All that is waiting on fd now, without blocking. */
static char *read_waiting(int fd)
{
	char *all = calloc(1, 65536);
	struct pollfd event = { .fd = fd, .events = POLLIN };
	size_t n = 0;

	while (poll(&event, 1, 0) > 0 && n < 65535) {
		ssize_t got = read(fd, all + n, 65535 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return all;
}

static void expect_told(const char *what)
{
	expect_text(told_fd, what);
}

#define START(keys, ...) person_start(&person, keys, (const char *const[]){ __VA_ARGS__, NULL })

static void pipes_and_statuses(void **state)
{
	static const struct {
		const char *script, *out, *err;
		int code;
	} cases[] = {
		{ "echo out; echo err >&2; exit 0", "out\n", "err\n", 0 },
		{ "cat; exit 7", "typed\n", "", 7 },
		{ "exit 255", "", "", 255 },
	};
	(void)state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		for (unsigned keys = KEY_PIPES; keys <= (KEY_PIPES | KEY_NO_TERMINAL);
		     keys += KEY_NO_TERMINAL) {
			_cleanup_(person_end) Person person;
			_cleanup_free_ char *out = NULL, *err = NULL;

			START(keys, cases[i].script);
			assert_int_equal(write(person.in_fd, "typed\n", 6), 6);
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

static void terminal_is_proxied(void **state)
{
	_cleanup_(person_end) Person person;
	_cleanup_free_ char *rest = NULL;

	(void)state;
	START(0, "stty size; stty -a | grep -c icanon; read line; echo \"got $line\"; exit 3");
	expect_text(person.terminal_fd, "33 77\r\n1\r\n");
	assert_true(is_raw(&person));
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
	START(0, "printf '\\033[?1049h\\033[?25lui'; kill -TSTP 0; printf 'back'; read l; printf "
		 "'\\033[?25h\\033[?1049l'");
	expect_text(person.terminal_fd, "\x1b[?1049h\x1b[?25lui");
	expect_stop(&person, SIGTSTP);
	expect_modes_restored(&person);
	expect_text(person.terminal_fd, "\x1b[?25h\x1b[?1049l");

	assert_int_equal(ioctl(person.terminal_fd, TIOCSWINSZ, &(struct winsize){ .ws_row = 5, .ws_col = 6 }),
			 0);
	assert_int_equal(write(person.command_fd, "f", 1), 1);
	expect_text(person.terminal_fd, "\x1b[?1049h\x1b[?25l");
	expect_text(person.terminal_fd, "back");
	assert_true(is_raw(&person));
	person_type(&person, "\r");
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

static void hang_up_reaches_the_agent(void **state)
{
	_cleanup_(person_end) Person person;
	char path[] = "/tmp/launch-test-XXXXXX", script[256];
	int fd = mkstemp(path), status;
	char seen[16] = "";

	(void)state;
	assert_true(fd >= 0);
	snprintf(script, sizeof(script),
		 "trap 'echo hup >>%s; exit 0' HUP; echo ready; while :; do read l; done", path);
	START(0, script);
	expect_text(person.terminal_fd, "ready\r\n");
	person.slave_fd = close_fd(person.slave_fd);
	person.terminal_fd = close_fd(person.terminal_fd);
	status = 0;
	/* The shell dies of it as well, so its report may be missing. */
	(void)!read(person.control_fd, &status, sizeof(status));
	for (int i = 0; i < 1000 && pread(fd, seen, sizeof(seen) - 1, 0) <= 0; i++)
		(void)poll(NULL, 0, 10);
	assert_string_equal(seen, "hup\n");
	(void)unlink(path);
	close_fd(fd);
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

/* `claude -p | less`: less owns the terminal. */
static void others_terminal_is_left_alone(void **state)
{
	_cleanup_(person_end) Person person;

	(void)state;
	START(KEY_OUT_PIPE, "echo to-pipe; echo to-terminal >&2; stty raw -echo; echo now >&2; head -c 1; "
			    "stty sane; echo sane");
	expect_text(person.out_fd, "to-pipe\n");
	expect_text(person.terminal_fd, "to-terminal\r\n");
	expect_text(person.terminal_fd, "now");
	expect_modes_restored(&person);
	person_type(&person, "k\n");
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

/* Only this test sees it: a bus at the real path. */
static int world_make(void **state)
{
	static const char config[] =
		"<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
		"\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\"><busconfig><type>system</"
		"type>"
		"<listen>unix:path=" CLIENT_BUS_PATH
		"</listen><policy context=\"default\"><allow user=\"*\"/>"
		"<allow own=\"*\"/><allow send_type=\"method_call\"/><allow send_destination=\"*\"/>"
		"<allow receive_sender=\"*\"/></policy></busconfig>";
	int ready[2], told[2], fd;
	uid_t uid = geteuid();
	char byte, map[32];

	(void)state;
	if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) < 0)
		return -1;
	if (uid != 0) {
		snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		fd = open("/proc/self/uid_map", O_WRONLY);
		(void)!write(fd, map, strlen(map));
		close_fd(fd);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("run", "/run", "tmpfs", 0, NULL) < 0 || mkdir("/run/dbus", 0755) < 0)
		return -1;
	fd = open("/run/bus.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (write(fd, config, sizeof(config) - 1) < 0 || pipe2(ready, O_CLOEXEC) < 0 ||
	    pipe2(told, O_CLOEXEC) < 0)
		return -1;
	close_fd(fd);

	bus_pid = fork();
	if (bus_pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		give(ready[1], 9);
		execl("/usr/bin/dbus-daemon", "dbus-daemon", "--nofork", "--nopidfile", "--nosyslog",
		      "--config-file=/run/bus.conf", "--print-address=9", NULL);
		_exit(1);
	}
	close_fd(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return -1;

	service_pid = fork();
	if (service_pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		give(told[1], 9);
		execl(STAND_IN_PROGRAM, "stand-in", NULL);
		_exit(1);
	}
	close_fd(told[1]);
	told_fd = told[0];
	expect_told("up");
	return 0;
}

static int world_end(void **state)
{
	int status;

	(void)state;
	(void)kill(service_pid, SIGKILL);
	(void)kill(bus_pid, SIGKILL);
	(void)waitpid(service_pid, &status, 0);
	(void)waitpid(bus_pid, &status, 0);
	close_fd(told_fd);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipes_and_statuses),
		cmocka_unit_test(dies_as_the_agent_did),
		cmocka_unit_test(terminal_is_proxied),
		cmocka_unit_test(size_follows),
		cmocka_unit_test(keys_are_the_agents),
		cmocka_unit_test(stops_and_comes_back),
		cmocka_unit_test(typed_stop),
		cmocka_unit_test(modes_are_undone_after_a_kill),
		cmocka_unit_test(the_last_byte_is_written),
		cmocka_unit_test(signals_are_forwarded),
		cmocka_unit_test(hang_up_reaches_the_agent),
		cmocka_unit_test(errors_are_one_line),
		cmocka_unit_test(typed_interrupt_cancels_the_call),
		cmocka_unit_test(warnings_come_first),
		cmocka_unit_test(a_lost_session_is_reported),
		cmocka_unit_test(background_keeps_off_the_terminal),
		cmocka_unit_test(background_output_is_written),
		cmocka_unit_test(others_terminal_is_left_alone),
		cmocka_unit_test(others_keys_are_not_taken),
		cmocka_unit_test(piped_input_mirrors_the_modes),
	};

	return cmocka_run_group_tests(tests, world_make, world_end);
}
