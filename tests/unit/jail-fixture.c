/* SPDX-License-Identifier: MIT */
#include "tests/unit/jail-fixture.h"

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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/link/link.h"

void jail_prepare(Jail *jail, const char *script, uint32_t terminals, uint32_t pipes)
{
	*jail = (Jail){ .report_fd = FD_NONE,
			.master_fd = FD_NONE,
			.slave_fd = FD_NONE,
			.in_fd = FD_NONE,
			.out_fd = FD_NONE,
			.given = { FD_NONE, FD_NONE, FD_NONE } };
	jail->orders = (InitOrders){ .program = strdup("/bin/sh"),
				     .cwd = strdup("/"),
				     .terminals = terminals,
				     .descriptors = pipes,
				     .file_mode_mask = 022 };
	assert_int_equal(strings_append(&jail->orders.argv, "sh"), 0);
	assert_int_equal(strings_append(&jail->orders.argv, "-c"), 0);
	assert_int_equal(strings_append(&jail->orders.argv, script), 0);
	assert_int_equal(strings_append(&jail->orders.environment, "PATH=/usr/bin:/bin"), 0);

	if (terminals) {
		jail->master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		assert_true(jail->master_fd >= 0);
		assert_int_equal(unlockpt(jail->master_fd), 0);
		jail->slave_fd = ioctl(jail->master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		assert_true(jail->slave_fd >= 0);
	}
}

static int orders_fd(const Jail *jail)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;
	int fd = memfd_create("orders", MFD_CLOEXEC);

	assert_true(fd >= 0);
	if (jail->raw_orders) {
		size = strlen(jail->raw_orders);
		assert_int_equal(write(fd, jail->raw_orders, size), size);
		return fd;
	}
	assert_int_equal(init_orders_encode(&jail->orders, &data, &size), 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

/* In the child. All sources are moved away first, so that placing one never overwrites another. */
static void descriptors_place(int *sources, int program_fd)
{
	int null_fd = open("/dev/null", O_RDWR);

	for (int i = INIT_FD_REPORT; i < INIT_FD_MAX; i++)
		if (sources[i] >= 0)
			sources[i] = fcntl(sources[i], F_DUPFD, 100);
	null_fd = fcntl(null_fd, F_DUPFD, 100);
	(void)dup2(program_fd, 200);
	for (int i = 0; i < INIT_FD_REPORT; i++)
		(void)dup2(null_fd, i);
	for (int i = INIT_FD_REPORT; i < INIT_FD_MAX; i++) {
		(void)close(i);
		if (sources[i] >= 0)
			(void)dup2(sources[i], i);
	}
	(void)close_range(INIT_FD_MAX, 199, 0);
	(void)fcntl(200, F_SETFD, FD_CLOEXEC);
}

void jail_start(Jail *jail)
{
	_cleanup_close_ int program_fd = open(INIT_PROGRAM, O_RDONLY | O_CLOEXEC);
	unsigned long flags = CLONE_NEWPID | SIGCHLD | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
	int sources[INIT_FD_MAX], sockets[2], in[2] = { FD_NONE, FD_NONE }, out[2] = { FD_NONE, FD_NONE };

	assert_true(program_fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	if ((jail->orders.descriptors & 1) && jail->given[0] < 0)
		assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	if ((jail->orders.descriptors & 6) && jail->given[1] < 0 && jail->given[2] < 0)
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	for (int i = 0; i < INIT_FD_MAX; i++)
		sources[i] = FD_NONE;
	sources[INIT_FD_REPORT] = sockets[1];
	sources[INIT_FD_ORDERS] = orders_fd(jail);
	sources[INIT_FD_TERMINAL] = jail->slave_fd;
	sources[INIT_FD_STDIN] = in[0];
	sources[INIT_FD_STDOUT] = jail->orders.descriptors & 2 ? out[1] : FD_NONE;
	sources[INIT_FD_STDERR] = jail->orders.descriptors & 4 ? out[1] : FD_NONE;
	for (int i = 0; i < 3; i++)
		if (jail->given[i] >= 0)
			sources[INIT_FD_STDIN + i] = jail->given[i];

	jail->pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, 0);
	assert_true(jail->pid >= 0);
	if (jail->pid == 0) {
		char *const argv[] = { (char *)"init", NULL };
		char *const environment[] = { NULL };

		descriptors_place(sources, program_fd);
		/* What a careless parent leaves behind must not reach the agent. */
		(void)signal(SIGUSR1, SIG_IGN);
		(void)signal(SIGCHLD, SIG_IGN);
		if (jail->nobody && setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		(void)syscall(SYS_execveat, 200, "", argv, environment, AT_EMPTY_PATH);
		_exit(98);
	}

	close_fd(sockets[1]);
	close_fd(sources[INIT_FD_ORDERS]);
	jail->slave_fd = close_fd(jail->slave_fd);
	close_fd(in[0]);
	close_fd(out[1]);
	jail->report_fd = sockets[0];
	jail->in_fd = in[1];
	jail->out_fd = out[0];
	if (!jail->held) {
		const Report report = { .kind = REPORT_GO };
		uint8_t data[REPORT_SIZE];

		report_encode(&report, data);
		/* One that fails before it listens may be gone already. */
		(void)packet_send(jail->report_fd, data, sizeof(data));
	}
}

void jail_end(Jail *jail)
{
	int status;

	jail->report_fd = close_fd(jail->report_fd);
	if (jail->pid > 0) {
		(void)kill(jail->pid, SIGKILL);
		assert_int_equal(waitpid(jail->pid, &status, 0), jail->pid);
	}
	close_fd(jail->master_fd);
	close_fd(jail->in_fd);
	close_fd(jail->out_fd);
	init_orders_done(&jail->orders);
}

static bool wait_readable(int fd)
{
	struct pollfd event = { .fd = fd, .events = POLLIN };

	return poll(&event, 1, DEADLINE_MSEC) > 0;
}

void jail_send(Jail *jail, ReportKind kind, int number)
{
	const Report report = { .kind = kind, .number = number };
	uint8_t data[REPORT_SIZE];

	report_encode(&report, data);
	assert_int_equal(packet_send(jail->report_fd, data, sizeof(data)), 0);
}

static Report jail_next(Jail *jail)
{
	uint8_t data[REPORT_SIZE];
	Report report;
	ssize_t n;

	if (!wait_readable(jail->report_fd))
		fail_msg("no report came");
	n = packet_receive(jail->report_fd, data, sizeof(data));
	if (n == -ECONNRESET) /* it ended without reading REPORT_GO; what it said comes next */
		n = packet_receive(jail->report_fd, data, sizeof(data));
	if (n <= 0)
		fail_msg("init closed its reports: %zd", n);
	assert_int_equal(report_decode(data, (size_t)n, &report), 0);
	return report;
}

Report jail_report(Jail *jail)
{
	Report report = jail_next(jail);

	return report.kind == REPORT_READY ? jail_next(jail) : report;
}

void jail_expect_ready(Jail *jail)
{
	assert_int_equal(jail_next(jail).kind, REPORT_READY);
}

void jail_expect(Jail *jail, ReportKind kind, int number)
{
	Report report = jail_report(jail);

	if (report.kind != kind || report.number != number)
		fail_msg("report %d, stage %d, number %d instead of %d, number %d", (int)report.kind,
			 (int)report.stage, report.number, (int)kind, number);
}

void jail_expect_exit(Jail *jail, int expected)
{
	int status;

	jail_expect(jail, REPORT_EXITED, expected);
	assert_int_equal(waitpid(jail->pid, &status, 0), jail->pid);
	jail->pid = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void expect_text(int fd, const char *text)
{
	char seen[8192];
	size_t n = 0;

	for (;;) {
		ssize_t got;

		seen[n] = '\0';
		if (strstr(seen, text))
			return;
		if (n + 1 >= sizeof(seen) || !wait_readable(fd))
			fail_msg("'%s' did not come; seen: '%s'", text, seen);
		/* One at a time: what follows belongs to the next question. */
		got = read(fd, seen + n, 1);
		if (got <= 0)
			fail_msg("the stream ended before '%s'; seen: '%s'", text, seen);
		n++;
	}
}

void expect_next(int fd, const char *text)
{
	for (const char *p = text; *p; p++) {
		char seen;

		if (!wait_readable(fd))
			fail_msg("'%s' did not come", p);
		if (read(fd, &seen, 1) != 1 || seen != *p)
			fail_msg("%#x came instead of '%s'", (unsigned char)seen, p);
	}
}

char *read_rest(int fd)
{
	char *all = NULL;
	size_t n = 0;

	for (;;) {
		ssize_t got;

		all = realloc(all, n + 4096 + 1);
		assert_non_null(all);
		if (!wait_readable(fd))
			fail_msg("the stream did not end");
		got = read(fd, all + n, 4096);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	all[n] = '\0';
	return all;
}
