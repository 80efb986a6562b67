/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/jail-fixture.h"

#define EXITED(code) ((code) << 8) /* as wait(2) encodes them */
#define KILLED(number) (number)

static void statuses_are_verbatim(void **state)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = { { "exit 0", EXITED(0) },
		      { "exit 7", EXITED(7) },
		      { "exit 255", EXITED(255) },
		      { "kill -TERM $$", KILLED(SIGTERM) },
		      { "kill -KILL $$", KILLED(SIGKILL) } };
	(void)state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(jail_end) Jail jail;

		jail_prepare(&jail, cases[i].script, 0, 0);
		jail_start(&jail);
		jail_expect(&jail, REPORT_EXECUTED, 0);
		jail_expect_exit(&jail, cases[i].status);
	}
}

/* Everything that comes before REPORT_GO is no permission: another word, or the end of the session. */
static void nothing_runs_before_go(void **state)
{
	struct pollfd silence;
	char path[] = "/tmp/init-test.XXXXXX";
	_cleanup_free_ char *script = NULL;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	assert_true(asprintf(&script, "touch %s", path) > 0);
	for (int way = 0; way < 3; way++) {
		_cleanup_(jail_end) Jail jail;
		struct pollfd ended = { .events = POLLIN };
		Report report;

		jail_prepare(&jail, script, 0, 0);
		jail.held = true;
		jail_start(&jail);
		ended.fd = (int)syscall(SYS_pidfd_open, jail.pid, 0);
		assert_true(ended.fd >= 0);
		silence = (struct pollfd){ .fd = jail.report_fd, .events = POLLIN };
		switch (way) {
		case 0:
			jail.report_fd = close_fd(jail.report_fd);
			break;
		case 1:
			jail_send(&jail, REPORT_SIGNAL, SIGTERM);
			report = jail_report(&jail);
			assert_int_equal(report.kind, REPORT_FAILED);
			assert_int_equal(report.number, EBADMSG);
			break;
		default:
			jail_expect_ready(&jail);
			/* A time that says nothing when it passes and everything when it does not. */
			assert_int_equal(poll(&silence, 1, 100), 0);
			jail_send(&jail, REPORT_GO, 0);
			jail_expect(&jail, REPORT_EXECUTED, 0);
			jail_expect_exit(&jail, EXITED(0));
		}
		assert_int_equal(poll(&ended, 1, DEADLINE_MSEC), 1);
		(void)close(ended.fd);
		assert_int_equal(access(path, F_OK) == 0, way == 2);
	}
	(void)unlink(path);
}

static void expect_failure(Jail *jail, InitStage stage, int error)
{
	Report report;

	jail_start(jail);
	report = jail_report(jail);
	assert_int_equal(report.kind, REPORT_FAILED);
	assert_int_equal(report.stage, stage);
	assert_int_equal(report.number, error);
}

static void failures_name_their_stage(void **state)
{
	(void)state;
	{
		_cleanup_(jail_end) Jail jail;
		jail_prepare(&jail, "", 0, 0);
		free(jail.orders.program);
		jail.orders.program = strdup("/nonexistent/agent");
		expect_failure(&jail, INIT_STAGE_EXECUTE, ENOENT);
	}
	{
		_cleanup_(jail_end) Jail jail;
		jail_prepare(&jail, "", 0, 0);
		free(jail.orders.cwd);
		jail.orders.cwd = strdup("/nonexistent");
		expect_failure(&jail, INIT_STAGE_DIRECTORY, ENOENT);
	}
	{
		_cleanup_(jail_end) Jail jail;
		jail_prepare(&jail, "", 0, 0);
		jail.raw_orders = "not orders at all";
		expect_failure(&jail, INIT_STAGE_ORDERS, EBADMSG);
	}
}

static void another_sessions_terminal_is_refused(void **state)
{
	_cleanup_(jail_end) Jail jail;
	int ready[2], status;
	pid_t owner;
	char byte;

	(void)state;
	jail_prepare(&jail, "", 7, 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	owner = fork();
	assert_true(owner >= 0);
	if (owner == 0) {
		(void)!(setsid() < 0 || ioctl(jail.slave_fd, TIOCSCTTY, 0) < 0 ||
			write(ready[1], "x", 1) != 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	expect_failure(&jail, INIT_STAGE_TERMINAL, EPERM);
	(void)kill(owner, SIGKILL);
	assert_int_equal(waitpid(owner, &status, 0), owner);
	close_fd(ready[0]);
	close_fd(ready[1]);
}

static void agent_gets_what_was_ordered(void **state)
{
	_cleanup_(jail_end) Jail jail;
	_cleanup_free_ char *output = NULL;

	(void)state;
	jail_prepare(&jail,
		     "umask; pwd; echo \"$A\"; read line; echo \"$line\"; echo err >&2; "
		     "for fd in /proc/self/fd/*; do test -e $fd && echo ${fd##*/}; done; "
		     "grep -E '^(NoNewPrivs|Seccomp|SigBlk|SigIgn):' /proc/self/status; "
		     "(exec 3</dev/tty) 2>/dev/null || echo no-tty",
		     0, 7);
	jail.orders.file_mode_mask = 027;
	free(jail.orders.cwd);
	jail.orders.cwd = strdup("/usr");
	assert_int_equal(strings_append(&jail.orders.environment, "A=\xff two\nlines"), 0);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	assert_int_equal(write(jail.in_fd, "typed\n", 6), 6);
	output = read_rest(jail.out_fd);
	/* 3 is the shell's own hold on the directory that it lists, if anything. */
	if (!strstr(output, "0027\n/usr\n\xff two\nlines\ntyped\nerr\n0\n1\n2\n"))
		fail_msg("output: %s", output);
	assert_null(strstr(output, "\n4\n"));
	assert_non_null(strstr(output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));
	assert_non_null(strstr(output, "NoNewPrivs:\t1\nSeccomp:\t2\n"));
	assert_non_null(strstr(output, "no-tty\n"));
	jail_expect_exit(&jail, EXITED(0));
}

static void absent_keys_are_closed(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	jail_prepare(&jail, "test -e /proc/self/fd/0 && exit 1; test -e /proc/self/fd/2 && exit 2; echo fine",
		     0, 2);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.out_fd, "fine\n");
	jail_expect_exit(&jail, EXITED(0));
}

/* A pipe's reader sees its end when the agent lets go of it, whatever init does. */
static void init_holds_no_stream(void **state)
{
	_cleanup_(jail_end) Jail jail;
	_cleanup_free_ char *output = NULL;

	(void)state;
	jail_prepare(&jail, "exec >&- 2>&-; read l; exit 5", 0, 7);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	output = read_rest(jail.out_fd);
	assert_string_equal(output, "");
	assert_int_equal(write(jail.in_fd, "x\n", 2), 2);
	jail_expect_exit(&jail, EXITED(5));
}

static void set_id_is_refused(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	jail_prepare(&jail, "f=$(mktemp) || exit 3; chmod u+s $f 2>/dev/null; r=$?; rm -f $f; test $r -ne 0",
		     0, 0);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	jail_expect_exit(&jail, EXITED(0));
}

static void terminal_is_the_agents(void **state)
{
	_cleanup_(jail_end) Jail jail;
	_cleanup_free_ char *output = NULL;

	(void)state;
	jail_prepare(
		&jail,
		"test -t 0 && test -t 1 && test -t 2 && echo \"pid $$\" >/dev/tty; read l; echo \"got $l\"",
		7, 0);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.master_fd, "pid 2\r\n");
	assert_int_equal(write(jail.master_fd, "word\n", 5), 5);
	output = read_rest(jail.master_fd);
	assert_non_null(strstr(output, "got word\r\n"));
	jail_expect_exit(&jail, EXITED(0));
}

static void keys_make_signals(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	jail_prepare(&jail, "cat; echo never", 7, 0);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	assert_int_equal(write(jail.master_fd, "ready\n", 6), 6);
	expect_text(jail.master_fd, "ready\r\nready\r\n");
	assert_int_equal(write(jail.master_fd, "\x1a", 1), 1);
	jail_expect(&jail, REPORT_STOPPED, SIGTSTP);
	jail_send(&jail, REPORT_RESUME, 0);
	jail_expect(&jail, REPORT_CONTINUED, 0);
	assert_int_equal(write(jail.master_fd, "\x03", 1), 1);
	jail_expect_exit(&jail, KILLED(SIGINT));
}

/*
 * A child of the agent has the terminal when the agent stops: after the resume that child reads what is
 * typed. A child whose group had lost the terminal would stop with SIGTTIN instead.
 */
static void resume_gives_the_terminal_back(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	jail_prepare(&jail, "set -m; sh -c 'kill -STOP 2; read line; echo \"child read $line\"'; echo after",
		     7, 0);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	jail_expect(&jail, REPORT_STOPPED, SIGSTOP);
	jail_send(&jail, REPORT_RESUME, 0);
	jail_expect(&jail, REPORT_CONTINUED, 0);
	assert_int_equal(write(jail.master_fd, "x\n", 2), 2);
	expect_text(jail.master_fd, "child read x\r\n");
	expect_text(jail.master_fd, "after\r\n");
	jail_expect_exit(&jail, EXITED(0));
}

static void signals_arrive_once(void **state)
{
	_cleanup_(jail_end) Jail jail;
	_cleanup_free_ char *output = NULL;

	(void)state;
	jail_prepare(&jail,
		     "trap 'echo usr1' USR1; trap 'echo term; exit 4' TERM; echo ready; "
		     "while :; do read line; done",
		     0, 3);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.out_fd, "ready\n");
	jail_send(&jail, REPORT_SIGNAL, SIGUSR1);
	expect_text(jail.out_fd, "usr1\n");
	jail_send(&jail, REPORT_SIGNAL, SIGTERM);
	output = read_rest(jail.out_fd);
	assert_string_equal(output, "term\n");
	jail_expect_exit(&jail, EXITED(4));
}

/* Typed Ctrl-C without a PTY: the shell waits for its child, so the child must get it as well. */
static void interrupt_reaches_the_group(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	jail_prepare(&jail, "cat; exit 5", 0, 3);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	/* It answers: now it is cat that runs, no longer the shell on its way to become it. */
	assert_int_equal(write(jail.in_fd, "ready\n", 6), 6);
	expect_text(jail.out_fd, "ready\n");
	jail_send(&jail, REPORT_KEY, SIGINT);
	jail_expect_exit(&jail, KILLED(SIGINT));
}

static void hang_up_reaches_the_agent(void **state)
{
	(void)state;
	{
		_cleanup_(jail_end) Jail jail;
		_cleanup_free_ char *rest = NULL;
		jail_prepare(&jail,
			     "trap 'echo hup' HUP; trap 'echo usr1; exit 9' USR1; echo ready; "
			     "while :; do read l; done",
			     0, 3);
		jail_start(&jail);
		jail_expect(&jail, REPORT_EXECUTED, 0);
		expect_text(jail.out_fd, "ready\n");
		jail_send(&jail, REPORT_HANGUP, 0);
		expect_text(jail.out_fd, "hup\n");
		/* Once, whoever else notices that the terminal is gone. */
		jail_send(&jail, REPORT_HANGUP, 0);
		jail_send(&jail, REPORT_SIGNAL, SIGUSR1);
		rest = read_rest(jail.out_fd);
		assert_string_equal(rest, "usr1\n");
		jail_expect_exit(&jail, EXITED(9));
	}
	{
		/* A stopped agent is continued, or it would never notice. */
		_cleanup_(jail_end) Jail jail;
		jail_prepare(&jail, "kill -STOP $$; exit 1", 0, 0);
		jail_start(&jail);
		jail_expect(&jail, REPORT_EXECUTED, 0);
		jail_expect(&jail, REPORT_STOPPED, SIGSTOP);
		jail_send(&jail, REPORT_HANGUP, 0);
		/* The continuation is reported when it is seen before the end. */
		Report report = jail_report(&jail);
		if (report.kind == REPORT_CONTINUED)
			report = jail_report(&jail);
		assert_int_equal(report.kind, REPORT_EXITED);
		assert_int_equal(report.number, KILLED(SIGHUP));
	}
	{
		/* The terminal's own hang-up, when its master is closed. */
		_cleanup_(jail_end) Jail jail;
		jail_prepare(&jail, "trap 'exit 9' HUP; echo ready; tail -f /dev/null & wait", 7, 0);
		jail_start(&jail);
		jail_expect(&jail, REPORT_EXECUTED, 0);
		expect_text(jail.master_fd, "ready\r\n");
		jail.master_fd = close_fd(jail.master_fd);
		jail_expect_exit(&jail, EXITED(9));
	}
}

static void orphans_end_with_the_agent(void **state)
{
	_cleanup_(jail_end) Jail jail;
	_cleanup_free_ char *output = NULL;

	(void)state;
	jail_prepare(&jail, "(trap '' HUP TERM; setsid tail -f /dev/null &); echo started; exit 3", 0, 2);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	jail_expect_exit(&jail, EXITED(3));
	/* Nobody is left who could write. */
	output = read_rest(jail.out_fd);
	assert_string_equal(output, "started\n");
}

static void zombies_are_reaped(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	/* kill -0 finds a zombie as well: only reaping ends the loop. */
	jail_prepare(&jail,
		     "pid=$( (sh -c 'echo $$' &) ); while kill -0 $pid 2>/dev/null; do :; done; echo reaped",
		     0, 2);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.out_fd, "reaped\n");
	jail_expect_exit(&jail, EXITED(0));
}

static void agent_cannot_touch_init(void **state)
{
	_cleanup_(jail_end) Jail jail;

	(void)state;
	jail_prepare(&jail,
		     "for s in HUP INT TERM USR1 STOP KILL SEGV CHLD TSTP; do kill -$s 1; done; echo alive; "
		     "read l; exit 6",
		     0, 3);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.out_fd, "alive\n");
	assert_int_equal(write(jail.in_fd, "x\n", 2), 2);
	jail_expect_exit(&jail, EXITED(6));
}

static void init_is_not_dumpable(void **state)
{
	_cleanup_(jail_end) Jail jail;
	struct stat status;
	char path[32];

	(void)state;
	jail_prepare(&jail, "echo ready; read l", 0, 3);
	jail.nobody = geteuid() == 0;
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.out_fd, "ready\n");
	/* proc(5): the files of a process that is not dumpable are root's. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)jail.pid);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_uid, 0);
}

static void nothing_outlives_the_session(void **state)
{
	_cleanup_(jail_end) Jail jail;
	_cleanup_free_ char *output = NULL;
	int status;

	(void)state;
	jail_prepare(&jail, "trap '' HUP TERM INT; echo ready; while :; do tail -f /dev/null; done", 0, 2);
	jail_start(&jail);
	jail_expect(&jail, REPORT_EXECUTED, 0);
	expect_text(jail.out_fd, "ready\n");
	jail.report_fd = close_fd(jail.report_fd);
	output = read_rest(jail.out_fd);
	assert_int_equal(waitpid(jail.pid, &status, 0), jail.pid);
	jail.pid = 0;
	assert_true(WIFEXITED(status));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_runs_before_go),
		cmocka_unit_test(statuses_are_verbatim),
		cmocka_unit_test(failures_name_their_stage),
		cmocka_unit_test(another_sessions_terminal_is_refused),
		cmocka_unit_test(agent_gets_what_was_ordered),
		cmocka_unit_test(absent_keys_are_closed),
		cmocka_unit_test(init_holds_no_stream),
		cmocka_unit_test(set_id_is_refused),
		cmocka_unit_test(terminal_is_the_agents),
		cmocka_unit_test(keys_make_signals),
		cmocka_unit_test(resume_gives_the_terminal_back),
		cmocka_unit_test(signals_arrive_once),
		cmocka_unit_test(interrupt_reaches_the_group),
		cmocka_unit_test(hang_up_reaches_the_agent),
		cmocka_unit_test(orphans_end_with_the_agent),
		cmocka_unit_test(zombies_are_reaped),
		cmocka_unit_test(agent_cannot_touch_init),
		cmocka_unit_test(init_is_not_dumpable),
		cmocka_unit_test(nothing_outlives_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
