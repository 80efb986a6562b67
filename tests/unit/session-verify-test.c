/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "service/session/jail-processes.h"
#include "service/session/terminal-keys.h"
#include "service/session/verify-rows.h"

/* ---- rows ---- */

typedef struct Fixture {
	sd_event *event;
	VerifyRows *rows;
	int far_fd;
	char ids[256];
	const char *why;
	bool stopped;
} Fixture;

static void on_row(void *userdata, const Row *row)
{
	Fixture *fixture = userdata;

	strcat(strcat(fixture->ids, row->id), " ");
}

static void on_spoilt(void *userdata, const char *why)
{
	Fixture *fixture = userdata;

	assert_null(fixture->why);
	fixture->why = why;
}

static bool is_stopped(void *userdata)
{
	const Fixture *fixture = userdata;

	return fixture->stopped;
}

static int setup(void **state)
{
	static const VerifyRowsCalls calls = { .row = on_row, .is_stopped = is_stopped, .spoilt = on_spoilt };
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_true(sd_event_new(&fixture->event) >= 0);
	assert_int_equal(verify_rows_new(fixture->event, &calls, fixture, &fixture->rows, &fixture->far_fd),
			 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	(void)verify_rows_free(fixture->rows);
	(void)sd_event_unref(fixture->event);
	(void)close_fd(fixture->far_fd);
	free(fixture);
	return 0;
}

static void say(const Fixture *fixture, const char *id)
{
	const Row row = { .id = (char *)id, .title = (char *)"title", .detail = (char *)"detail" };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	assert_int_equal(row_encode(&row, &data, &size), 0);
	assert_int_equal(send(fixture->far_fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void settle(const Fixture *fixture)
{
	while (sd_event_run(fixture->event, 0) > 0)
		continue;
}

static void rows_come_and_then_the_end(void **state)
{
	Fixture *fixture = *state;

	assert_int_equal(verify_rows_begin(fixture->rows), 0);
	say(fixture, "01");
	settle(fixture);
	assert_string_equal(fixture->ids, "01 ");
	say(fixture, "02");
	say(fixture, "p03");
	fixture->far_fd = close_fd(fixture->far_fd);
	assert_int_equal(verify_rows_drain(fixture->rows), 0);
	assert_string_equal(fixture->ids, "01 02 p03 ");
	assert_null(fixture->why);
	assert_int_equal(verify_rows_drain(fixture->rows), 0);
}

static void what_is_no_row_spoils_it(void **state)
{
	Fixture *fixture = *state;

	assert_int_equal(verify_rows_begin(fixture->rows), 0);
	assert_int_equal(send(fixture->far_fd, "nonsense", 8, MSG_NOSIGNAL), 8);
	say(fixture, "01");
	settle(fixture);
	assert_string_equal(fixture->why, VERIFY_ROWS_STRANGE);
	assert_string_equal(fixture->ids, "");
}

static void what_is_no_row_at_the_end(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *large = calloc(1, ROW_BYTES_MAX + 1);

	say(fixture, "01");
	assert_int_equal(send(fixture->far_fd, large, ROW_BYTES_MAX + 1, MSG_NOSIGNAL), ROW_BYTES_MAX + 1);
	say(fixture, "02");
	assert_int_equal(verify_rows_drain(fixture->rows), -EBADMSG);
	assert_string_equal(fixture->ids, "01 ");
	assert_null(fixture->why);
}

/* After each row there is the whole time again; and closing says nothing. Who is slow has more time than who
 * was stopped. */
static void silence_is_an_end(void **state)
{
	Fixture *fixture = *state;
	uint64_t begin = 0, now = 0;

	assert_int_equal(verify_rows_begin(fixture->rows), 0);
	say(fixture, "01");
	settle(fixture);
	assert_true(sd_event_now(fixture->event, CLOCK_MONOTONIC, &begin) >= 0);
	fixture->far_fd = close_fd(fixture->far_fd);
	/* The end of the other side is one event, the first look the next. */
	for (unsigned i = 0; i < 2; i++)
		assert_true(sd_event_run(fixture->event, 10 * USEC_PER_SEC) > 0);
	assert_null(fixture->why);
	fixture->stopped = true;
	while (!fixture->why)
		assert_true(sd_event_run(fixture->event, 10 * USEC_PER_SEC) > 0);
	assert_true(sd_event_now(fixture->event, CLOCK_MONOTONIC, &now) >= 0);
	assert_true(now - begin >= 2 * VERIFY_LOOK_USEC - 100 * USEC_PER_MSEC);
	assert_non_null(strstr(fixture->why, "silent"));
}

/* ---- processes ---- */

#define STATUS(state)                                                                                        \
	"Name:\tstrange \\n name\nUmask:\t0022\nState:\t" state " (x)\nTgid:\t9\nPPid:\t77\nNStgid:\t9\t2\n" \
	"NSpid:\t9\t2\nVmSize:\t10 "                                                                         \
	"kB\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000001\nCapEff:\t0000000000000002\n"              \
	"CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000003\nNoNewPrivs:\t1\nSeccomp:\t2\n"                \
	"Seccomp_filters:\t3\n"

static void status_is_taken_apart(void **state)
{
	char text[] = STATUS("S"), zombie[] = STATUS("Z"), ending[] = STATUS("R");
	ExpectedProcess process;
	bool ended;

	assert_int_equal(process_status_parse(text, &process, &ended), 0);
	assert_string_equal(process.name, "strange \\n name");
	assert_false(ended);
	assert_int_equal(process.pid_depth, 2);
	assert_true(process.no_new_privileges);
	assert_int_equal(process.seccomp, 2);
	assert_int_equal(process.seccomp_filters, 3);
	assert_int_equal(process.capabilities[CAPABILITY_INHERITABLE], 0);
	assert_int_equal(process.capabilities[CAPABILITY_PERMITTED], 1);
	assert_int_equal(process.capabilities[CAPABILITY_EFFECTIVE], 2);
	assert_true(process.capabilities[CAPABILITY_BOUNDING] == 0x1ffffffffff);
	assert_int_equal(process.capabilities[CAPABILITY_AMBIENT], 3);
	free(process.name);
	assert_int_equal(process_status_parse(zombie, &process, &ended), 0);
	assert_true(ended);
	free(process.name);
	/* Its memory goes before its namespaces, and these before its state says so. */
	*strstr(ending, "VmSize") = '?';
	assert_int_equal(process_status_parse(ending, &process, &ended), 0);
	assert_true(ended);
	free(process.name);
}

/* What lacks a line is not taken for a process without rights. */
static void status_needs_every_line(void **state)
{
	static const char *const names[] = { "Name",   "State",  "NSpid",  "CapInh",     "CapPrm",
					     "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp" };
	ExpectedProcess process;
	bool ended;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_free_ char *text = strdup(STATUS("S")), *wanted = NULL;

		assert_true(asprintf(&wanted, "%s:\t", names[i]) > 0);
		*strstr(text, wanted) = '?';
		assert_int_equal(process_status_parse(text, &process, &ended), -EBADMSG);
	}
}

/* A child that has a child, and waits for the pipe to close. */
static pid_t family(int read_fd, int write_fd, int ready_fd)
{
	pid_t pid = fork();
	char c;

	if (pid != 0)
		return pid;
	(void)close(write_fd);
	if (fork() == 0) {
		(void)!write(ready_fd, "x", 1);
		(void)!read(read_fd, &c, 1);
		_exit(0);
	}
	(void)!read(read_fd, &c, 1);
	(void)wait(NULL);
	_exit(0);
}

static void a_tree_of_processes(void **state)
{
	_cleanup_(jail_processes_done) JailProcesses processes = { 0 };
	uint64_t own[NAMESPACE_KIND_MAX];
	int hold[2], ready[2];
	pid_t child;
	char c;

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = family(hold[0], hold[1], ready[1]);
	assert_true(child > 0);
	assert_int_equal(read(ready[0], &c, 1), 1);

	assert_int_equal(jail_processes_read(child, &processes), 0);
	assert_int_equal(processes.n, 2);
	assert_int_equal(processes.items[0].pid, child);
	namespaces_read(0, own);
	for (size_t i = 0; i < processes.n; i++) {
		assert_int_equal(processes.items[i].pid_depth, 0); /* not below this test's namespace */
		assert_false(processes.items[i].below);
		assert_memory_equal(processes.items[i].namespaces, own, sizeof(own));
	}
	(void)close(hold[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(jail_processes_read(child, &processes), -ESRCH);
	(void)close(hold[0]);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static void a_terminal_is_made(void **state)
{
	_cleanup_(terminal_keys_done) TerminalKeys keys = TERMINAL_KEYS_INIT;
	_cleanup_free_ char *problem = NULL;
	_cleanup_close_ int master = FD_NONE;
	char seen[8];

	assert_int_equal(terminal_keys_make(&keys, &master, &problem), 0);
	assert_true(isatty(keys.terminal_fd));
	assert_non_null(starts_with(keys.terminal_path, "/dev/pts/"));
	assert_int_equal(write(keys.terminal_fd, "words", 5), 5);
	assert_int_equal(read(master, seen, sizeof(seen)), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_come_and_then_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_row_spoils_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_row_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(silence_is_an_end, setup, teardown),
		cmocka_unit_test(status_is_taken_apart),
		cmocka_unit_test(status_needs_every_line),
		cmocka_unit_test(a_tree_of_processes),
		cmocka_unit_test(a_terminal_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
