/* SPDX-License-Identifier: MIT */
#include "tests/unit/person.h"

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
#include "dbus/names.h"

static pid_t bus_pid, service_pid;
static int told_fd = FD_NONE;

static void give(int from, int to)
{
	if (dup2(from, to) < 0)
		_exit(97);
}

/* As a person's shell does: entry by the name of the agent. */
_noreturn_ static void entry_execute(char *const *argv)
{
	char *const environment[] = { (char *)"A=b", (char *)"LD_PRELOAD=/run/planted.so",
				      (char *)"DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/planted",
				      (char *)"EMPTY=", NULL };

	execve(ENTRY_PROGRAM, argv, environment);
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

void person_start(Person *person, unsigned keys, const char *const *arguments)
{
	char *argv[16] = { (char *)"/somewhere/claude" };
	int in[2] = { FD_NONE, FD_NONE }, out[2] = { FD_NONE, FD_NONE }, err[2] = { FD_NONE, FD_NONE };
	int control[2], command[2];
	struct winsize size = { .ws_row = 33, .ws_col = 77 };

	for (size_t i = 0; arguments[i]; i++)
		argv[1 + i] = (char *)arguments[i];
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
			if (keys & KEY_IN_DIRECTORY)
				give(open("/", O_RDONLY | O_DIRECTORY), 0);
			if (keys & KEY_IN_CLOSED)
				(void)close(0);
			entry_execute(argv);
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
	person->in_fd = in[1];
	person->out_fd = out[0];
	person->err_fd = err[0];
	person->control_fd = control[0];
	person->command_fd = command[1];
	assert_int_equal(read(person->control_fd, &person->pid, sizeof(person->pid)), sizeof(person->pid));
}

void person_end(Person *person)
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
int person_status(Person *person)
{
	struct pollfd event = { .fd = person->control_fd, .events = POLLIN };
	int status;

	if (poll(&event, 1, DEADLINE_MSEC) <= 0)
		fail_msg("launch neither ended nor stopped");
	assert_int_equal(read(person->control_fd, &status, sizeof(status)), sizeof(status));
	return status;
}

void person_type(Person *person, const char *text)
{
	assert_int_equal(write(person->terminal_fd, text, strlen(text)), strlen(text));
}

void expect_exit(Person *person, int code)
{
	int status = person_status(person);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail_msg("status %#x instead of exit %d", (unsigned)status, code);
}

void expect_death(Person *person, int number)
{
	int status = person_status(person);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != number)
		fail_msg("status %#x instead of death by %d", (unsigned)status, number);
}

void expect_stop(Person *person, int number)
{
	int status = person_status(person);

	if (!WIFSTOPPED(status) || WSTOPSIG(status) != number)
		fail_msg("status %#x instead of a stop by %d", (unsigned)status, number);
}

void expect_modes_restored(const Person *person)
{
	struct termios now;

	assert_int_equal(tcgetattr(person->slave_fd, &now), 0);
	assert_int_equal(now.c_iflag, person->modes.c_iflag);
	assert_int_equal(now.c_oflag, person->modes.c_oflag);
	assert_int_equal(now.c_lflag, person->modes.c_lflag);
	assert_memory_equal(now.c_cc, person->modes.c_cc, VEOL2 + 1);
}

bool is_raw(const Person *person)
{
	struct termios now;

	assert_int_equal(tcgetattr(person->slave_fd, &now), 0);
	return !(now.c_lflag & ICANON);
}

/* All that is waiting on fd now, without blocking. */
char *read_waiting(int fd)
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

void expect_told(const char *what)
{
	expect_text(told_fd, what);
}

/* user_namespaces(7): one id is all that an ordinary user may map; groups only after setgroups(2) is off. */
static void identity_map(const char *file, unsigned id)
{
	char path[32], text[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/%s", file);
	if (streq(file, "setgroups"))
		strcpy(text, "deny");
	else
		snprintf(text, sizeof(text), "%u %u 1", id, id);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	(void)!write(fd, text, strlen(text));
	close_fd(fd);
}

/* Only this test sees it: a bus at the real path. */
int world_make(void **state)
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
	gid_t gid = getegid();
	char byte;

	(void)state;
	if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) < 0)
		return -1;
	if (uid != 0) {
		identity_map("uid_map", uid);
		identity_map("setgroups", 0);
		identity_map("gid_map", gid);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("run", "/run", "tmpfs", 0, NULL) < 0 || mkdir("/run/dbus", 0755) < 0)
		return -1;
	/* And launch where entry looks for it. */
	if (mount("libexec", "/usr/libexec", "tmpfs", 0, NULL) < 0 || mkdir(CS_LIBEXEC_DIR, 0755) < 0 ||
	    symlink(LAUNCH_PROGRAM, CS_LAUNCH_PATH) < 0)
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

int world_end(void **state)
{
	int status;

	(void)state;
	if (service_pid > 0 && kill(service_pid, SIGKILL) == 0)
		(void)waitpid(service_pid, &status, 0);
	if (bus_pid > 0 && kill(bus_pid, SIGKILL) == 0)
		(void)waitpid(bus_pid, &status, 0);
	close_fd(told_fd);
	return 0;
}
