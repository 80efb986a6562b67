/* SPDX-License-Identifier: MIT */

/*
 * The process that keeps a state file is killed at each of its system calls that change something, once
 * before and once after it; the next one must come to what was meant, whatever both sides did meanwhile, and
 * leave nothing behind.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/link/pack.h"
#include "service/session/state-json.h"
#include "service/session/state-sync.h"
#include "service/session/state-take.h"
#include "tests/unit/state-fixture.h"

#define STOPS_MAX 1000u

typedef struct Scenario {
	const char *name;
	const char *base, *agent, *host, *inside; /* NULL: nothing is put there */
	void (*meanwhile)(StateFixture *f);       /* after the kill */
	const char *wanted; /* NULL: the person deleted it; it is nowhere, or where it was */
} Scenario;

static int jail_open(const StateFixture *f)
{
	_cleanup_free_ char *path = state_path(f, "jail");

	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int run(StateFixture *f)
{
	_cleanup_close_ int jail_fd = jail_open(f);

	if (jail_fd >= 0 && state_take(&f->files, jail_fd, &f->warnings) < 0)
		return -EIO;
	return state_sync(&f->files, &(StateSyncOptions){ .launch = true, .deletions = true }, &f->warnings);
}

/* ptrace(2): at its entry and its exit the call stops alike. */
static bool changes_something(const struct __ptrace_syscall_info *info, bool *entered)
{
	static const long long calls[] = { SYS_write,  SYS_renameat, SYS_renameat2, SYS_unlinkat,
					   SYS_linkat, SYS_mkdirat,  SYS_symlinkat, SYS_fchmod,
					   SYS_fsync,  SYS_flock,    SYS_ftruncate };

	if (info->op == PTRACE_SYSCALL_INFO_EXIT) {
		bool was = *entered;

		*entered = false;
		return was;
	}
	*entered = info->entry.nr == SYS_openat && info->entry.args[2] & O_CREAT;
	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		*entered = *entered || (long long)info->entry.nr == calls[i];
	return *entered;
}

/* Return: false when the run ended before its stop came. */
static bool run_and_kill(StateFixture *f, unsigned stop)
{
	pid_t pid = fork();
	bool entered = false;
	int status;

	assert_return_code(pid, errno);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
			_exit(2);
		_exit(run(f) == 0 && !f->warnings ? 0 : 1);
	}
	assert_return_code(waitpid(pid, &status, 0), errno);
	assert_true(WIFSTOPPED(status));
	assert_return_code(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD),
			   errno);
	for (unsigned n = 0; n < stop;) {
		struct __ptrace_syscall_info info = { 0 };

		assert_return_code(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), errno);
		assert_return_code(waitpid(pid, &status, 0), errno);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		assert_true(WIFSTOPPED(status));
		assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0);
		n += changes_something(&info, &entered);
	}
	assert_return_code(kill(pid, SIGKILL), errno);
	assert_return_code(waitpid(pid, &status, 0), errno);
	/* As a session does for its child: the open file is shared. */
	assert_return_code(flock(f->files.lock_fd, LOCK_UN), errno);
	return true;
}

static void whole(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *text = state_get(f, name);

	if (text && state_json_check(text, strlen(text)) < 0)
		fail_msg("%s is half written: %s", name, text);
}

/* The same members, in any order. */
static bool same(const char *a, const char *b)
{
	_cleanup_(state_object_done) StateObject x = { 0 }, y = { 0 };

	assert_return_code(state_object_read(a, strlen(a), &x), 0);
	assert_return_code(state_object_read(b, strlen(b), &y), 0);
	for (size_t i = 0; i < x.n_members; i++) {
		const StateMember *m = &x.members[i], *n = state_object_find(&y, m->key);

		if (!n || !state_json_same(m->value, m->value_size, n->value, n->value_size))
			return false;
	}
	return x.n_members == y.n_members;
}

static bool check_at(const Scenario *scenario, unsigned stop)
{
	void *state = NULL;
	bool more;

	assert_int_equal(state_fixture_make(&state), 0);
	StateFixture *f = state;
	if (scenario->base) {
		state_put(f, HOST_FILE, scenario->base);
		assert_int_equal(run(f), 0);
	}
	if (scenario->inside) {
		_cleanup_free_ char *jail = state_path(f, "jail");

		assert_return_code(mkdir(jail, 0700), errno);
		state_put(f, "jail/" HOST_FILE, scenario->inside);
	}
	if (scenario->agent)
		state_put(f, AGENT_FILE, scenario->agent);
	if (scenario->host)
		state_put(f, HOST_FILE, scenario->host);
	if (!scenario->wanted) {
		_cleanup_free_ char *path = state_path(f, HOST_FILE);

		assert_return_code(unlink(path), errno);
	}

	more = run_and_kill(f, stop);
	whole(f, HOST_FILE);
	whole(f, AGENT_FILE);
	if (more && scenario->meanwhile)
		scenario->meanwhile(f);
	if (run(f) != 0 || f->warnings)
		fail_msg("%s, stop %u: %s", scenario->name, stop, f->warnings ? f->warnings[0] : "busy");
	_cleanup_free_ char *host = state_get(f, HOST_FILE), *agent = state_get(f, AGENT_FILE);
	if (!scenario->wanted && !host && !agent) {
		state_lists(f, ".", ".claude .local");
		state_lists(f, ".claude", "");
		state_lists(f, RECORD, "");
		state_fixture_remove(&state);
		return more;
	}
	if (!host || !agent || !streq(host, agent) ||
	    ((more || !scenario->meanwhile) && !same(host, scenario->wanted ?: scenario->base)))
		fail_msg("%s, stop %u: outside %s, agent's %s, wanted %s", scenario->name, stop,
			 host ?: "nothing", agent ?: "nothing", scenario->wanted ?: "nothing");
	state_lists(f, ".",
		    scenario->inside ? ".claude .claude.json .local jail" : ".claude .claude.json .local");
	state_lists(f, ".claude", ".claude.json");
	state_lists(f, RECORD, ".claude.json .claude.json.seen");
	/* The jail's home ends with the jail: what is beside the link there does not matter. */
	state_fixture_remove(&state);
	return more;
}

static void check(const Scenario *scenario)
{
	unsigned stop = 1;

	while (check_at(scenario, stop) && stop < STOPS_MAX)
		stop++;
	/* A step has more calls than this: the loop was not cut short. */
	assert_in_range(stop, scenario->wanted ? 30 : 15, STOPS_MAX - 1);
}

static void agent_goes_back(StateFixture *f)
{
	state_put(f, AGENT_FILE, "{\"a\":1,\"n\":1}");
}

static void person_goes_back(StateFixture *f)
{
	state_put(f, HOST_FILE, "{\"a\":1,\"n\":1}");
}

static void agent_adds(StateFixture *f)
{
	_cleanup_free_ char *text = state_get(f, AGENT_FILE), *longer = NULL;

	assert_non_null(text);
	assert_true(asprintf(&longer, "{\"c\":1,%s", text + 1) > 0);
	state_put(f, AGENT_FILE, longer);
}

static void first_import(void **state)
{
	check(&(Scenario){ .name = "first import", .host = "{\"a\":1}", .wanted = "{\"a\":1}" });
}

static void import(void **state)
{
	check(&(Scenario){
		.name = "import", .base = "{\"a\":1}", .host = "{\"a\":2}", .wanted = "{\"a\":2}" });
}

static void import_and_the_person_goes_back(void **state)
{
	check(&(Scenario){ .name = "import, person",
			   .base = "{\"a\":1}",
			   .host = "{\"a\":2}",
			   .meanwhile = person_goes_back,
			   .wanted = "{\"a\":1,\"n\":1}" });
}

static void publish(void **state)
{
	check(&(Scenario){
		.name = "publish", .base = "{\"a\":1}", .agent = "{\"a\":2}", .wanted = "{\"a\":2}" });
}

static void publish_and_the_agent_goes_back(void **state)
{
	check(&(Scenario){ .name = "publish, agent",
			   .base = "{\"a\":1}",
			   .agent = "{\"a\":2}",
			   .meanwhile = agent_goes_back,
			   .wanted = "{\"a\":1,\"n\":1}" });
}

static void merge(void **state)
{
	check(&(Scenario){ .name = "merge",
			   .base = "{\"a\":1,\"b\":1}",
			   .agent = "{\"a\":1,\"b\":2}",
			   .host = "{\"a\":2,\"b\":1}",
			   .wanted = "{\"a\":2,\"b\":2}" });
}

static void merge_and_the_agent_saves(void **state)
{
	check(&(Scenario){ .name = "merge, agent",
			   .base = "{\"a\":1,\"b\":1}",
			   .agent = "{\"a\":1,\"b\":2}",
			   .host = "{\"a\":2,\"b\":1}",
			   .meanwhile = agent_adds,
			   .wanted = "{\"a\":2,\"b\":2,\"c\":1}" });
}

static void deletion(void **state)
{
	check(&(Scenario){ .name = "deletion", .base = "{\"a\":1}" });
}

static void take(void **state)
{
	check(&(Scenario){
		.name = "take", .base = "{\"a\":1}", .inside = "{\"a\":2}", .wanted = "{\"a\":2}" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_import),
		cmocka_unit_test(import),
		cmocka_unit_test(import_and_the_person_goes_back),
		cmocka_unit_test(publish),
		cmocka_unit_test(publish_and_the_agent_goes_back),
		cmocka_unit_test(merge),
		cmocka_unit_test(merge_and_the_agent_saves),
		cmocka_unit_test(deletion),
		cmocka_unit_test(take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
