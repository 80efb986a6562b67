/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "service/daemon/cgroup.h"
#include "service/daemon/cgroup-file.h"

#define ID "abcdefghijklmnop"

static void limits_are_told_from_none(void **state)
{
	static const struct {
		const char *name, *text;
		bool limits;
	} rows[] = {
		{ "memory.max", "max\n", false },
		{ "memory.max", "1073741824\n", true },
		{ "memory.high", "0\n", true },
		{ "memory.swap.max", "max\n", false },
		{ "memory.current", "1073741824\n", false },
		{ "pids.max", "max\n", false },
		{ "pids.max", "4096\n", true },
		{ "cpu.max", "max 100000\n", false },
		{ "cpu.max", "50000 100000\n", true },
		{ "cpu.max.burst", "0\n", false },
		{ "cpu.weight", "1\n", false },
		{ "io.max", "", false },
		{ "io.max", "8:16 rbps=max wbps=max riops=max wiops=max\n", false },
		{ "io.max", "8:16 rbps=max wbps=1048576 riops=max wiops=max\n", true },
		{ "io.max", "8:0 rbps=max wbps=max\n8:16 rbps=2097152 wbps=max\n", true },
		{ "misc.max", "res_a max\nres_b max\n", false },
		{ "misc.max", "res_a max\nres_b 3\n", true },
		{ "hugetlb.2MB.max", "max\n", false },
		{ "rdma.max", "mlx4_0 hca_handle=2 hca_object=max\n", true },
		{ "cgroup.max.depth", "max\n", false },
		{ "cgroup.max.descendants", "5\n", true },
		{ "cpuset.cpus", "\n", false },
		{ "cpuset.cpus", "0-3\n", true },
		{ "cpuset.cpus.effective", "0-3\n", false },
		{ "cpuset.mems", "", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (cgroup_text_limits(rows[i].name, rows[i].text) != rows[i].limits)
			fail_msg("%s: %s", rows[i].name, rows[i].text);
}

static void words_and_numbers(void **state)
{
	assert_true(cgroup_text_has("cpuset cpu io memory pids\n", "memory"));
	assert_true(cgroup_text_has("cpuset cpu io memory pids\n", "pids"));
	assert_false(cgroup_text_has("cpuset cpu io memory pids\n", "mem"));
	assert_false(cgroup_text_has("\n", "memory"));
	assert_false(cgroup_text_has("", "memory"));
}

static void paths_are_judged(void **state)
{
	static const char *const good[] = {
		"/" CGROUP_PREFIX ID,
		"/claude-sandbox/1000/" CGROUP_PREFIX ID,
		"/user.slice/user-1000.slice/" CGROUP_PREFIX ID ".scope",
		"/..a/" CGROUP_PREFIX ID,
	};
	static const char *const bad[] = {
		"",
		"/",
		CGROUP_PREFIX ID,
		"/" CGROUP_PREFIX "abcdefghijklmno",
		"/" CGROUP_PREFIX ID "x",
		"/" CGROUP_PREFIX ID ".service",
		"/../" CGROUP_PREFIX ID,
		"/a/../" CGROUP_PREFIX ID,
		"/a/./" CGROUP_PREFIX ID,
		"//" CGROUP_PREFIX ID,
		"/" CGROUP_PREFIX ID "/",
		"/" CGROUP_PREFIX ID "/..",
		"/user.slice",
	};

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		if (!cgroup_path_is_sessions(good[i]))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		if (cgroup_path_is_sessions(bad[i]))
			fail_msg("%s", bad[i]);
	assert_true(cgroup_is_above("/", "/a"));
	assert_true(cgroup_is_above("/a", "/a"));
	assert_true(cgroup_is_above("/a", "/a/b"));
	assert_false(cgroup_is_above("/a", "/ab"));
	assert_false(cgroup_is_above("/a/b", "/a"));
}

static void slices_of_users(void **state)
{
	static const struct {
		const char *path, *slice;
	} rows[] = {
		{ "/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-1000.slice" },
		{ "/user.slice/user-0.slice", "/user.slice/user-0.slice" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope",
		  "/user.slice/user-1000.slice" },
		{ "/user.slice", NULL },
		{ "/user.slice/user-.slice/a", NULL },
		{ "/user.slice/user-1000.slices/a", NULL },
		{ "/user.slice/user-1000.slice.d/a", NULL },
		{ "/user.slice/user-1x.slice/a", NULL },
		{ "/a/user.slice/user-1000.slice/a", NULL },
		{ "/system.slice/user-1000.slice/a", NULL },
		{ "/system.slice/slurmstepd.scope/job_7", NULL },
		{ "/", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *found = cgroup_find_slice(rows[i].path);

		assert_int_equal(!found, !rows[i].slice);
		if (found)
			assert_string_equal(found, rows[i].slice);
	}
}

static void hierarchies_of_version_1(void **state)
{
	static const char text[] = "9:name=systemd:/user.slice\n5:cpu,cpuacct:/job 1:a\n4:memory:/mem\n"
				   "x:odd:/a\n3:cpu:/\n2:empty\n0::/two\n";
	static const char mounts[] =
		"30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
		"31 30 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		"32 30 0:28 / /sys/fs/cgroup/cpu\\040too rw,relatime shared:3 - cgroup cgroup rw,cpuacct,cpu\n"
		"33 30 0:29 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		"34 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
	static const struct {
		const char *controllers, *path, *directory;
	} rows[] = {
		{ "cpu,cpuacct", "/job 1:a", "/sys/fs/cgroup/cpu too/job 1:a" },
		{ "name=systemd", "/user.slice", "/sys/fs/cgroup/systemd/user.slice" },
		{ "memory", "/box/a", "/sys/fs/cgroup/memory/a" },
		{ "memory", "/boxes/a", NULL },
		{ "memory", "/", NULL },
		{ "pids", "/a", NULL },
		{ "cpu,pids", "/a", NULL },
	};
	static const char *const names[] = { "name=systemd", "cpu,cpuacct", "memory", "odd", "cpu" };
	static const char *const paths[] = { "/user.slice", "/job 1:a", "/mem", NULL, "/" };
	const char *next = text;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_free_ char *path = cgroup_find_v1(text, names[i]), *name = NULL;

		assert_int_equal(!path, !paths[i]);
		if (!path)
			continue;
		assert_string_equal(path, paths[i]);
		name = cgroup_next_v1(&next);
		assert_string_equal(name, names[i]);
	}
	assert_null(cgroup_next_v1(&next));
	assert_null(cgroup_find_v1(text, ""));
	assert_null(cgroup_find_v1(text, "cpuacct"));
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *found =
			cgroup_find_v1_directory(mounts, rows[i].controllers, rows[i].path);

		assert_int_equal(!found, !rows[i].directory);
		if (found)
			assert_string_equal(found, rows[i].directory);
	}
}

static void put(const char *top, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fclose_ FILE *f = NULL;

	assert_true(asprintf(&path, "%s/%s", top, name) > 0);
	if (!text) {
		assert_int_equal(mkdir(path, 0755), 0);
		return;
	}
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

/* Whoever is limited by what does not hold for the service's own groups must stay below it. */
static void limits_of_groups_above_count(void **state)
{
	char top[] = "/tmp/cgroup-test-XXXXXX";
	_cleanup_free_ char *command = NULL;

	assert_non_null(mkdtemp(top));
	put(top, "memory.max", "5\n"); /* of the root, which holds for everybody */
	put(top, "users", NULL);
	put(top, "users/memory.max", "max\n");
	put(top, "users/alice", NULL);
	put(top, "users/alice/cgroup.procs", "1\n");
	put(top, "users/alice/shell", NULL);
	put(top, "users/alice/shell/cpu.max", "max 100000\n");
	assert_false(cgroup_carries_limits(top, "/users/alice/shell", "/claude-sandbox"));
	put(top, "users/alice/pids.max", "100\n");
	assert_true(cgroup_carries_limits(top, "/users/alice/shell", "/claude-sandbox"));
	assert_true(cgroup_carries_limits(top, "/users/alice", "/claude-sandbox"));
	assert_false(cgroup_carries_limits(top, "/users", "/claude-sandbox"));
	assert_false(cgroup_carries_limits(top, "/", "/claude-sandbox"));
	/* The same limit holds for our own groups. */
	assert_false(cgroup_carries_limits(top, "/users/alice/shell", "/users/alice/claude-sandbox"));

	assert_true(asprintf(&command, "rm -rf %s", top) > 0);
	assert_int_equal(system(command), 0);
}

/* In a container the root of the cgroup namespace has processes: +pids would leave all of its groups invalid. */
static void a_group_of_others_stays_usable(void **state)
{
	static const struct {
		const char *type, *processes, *offered, *given; /* type: NULL for the machine's root */
		const char *after, *undo;
	} rows[] = {
		{ "domain\n", "1\n7\n", "cpu memory pids\n", "", "", NULL },
		{ "domain\n", "0\n", "memory pids\n", "", "", NULL },
		{ "domain\n", "", "cpu pids\n", "", "", NULL },
		{ "domain threaded\n", "", "memory pids\n", "", "", NULL },
		{ "threaded\n", "", "memory pids\n", "", "", NULL },
		{ "domain invalid\n", "", "memory pids\n", "", "", NULL },
		{ "domain\n", "", "memory pids\n", "memory pids\n", "memory pids\n", NULL },
		{ "domain\n", "", "cpu memory pids\n", "", "+memory +pids", "-memory -pids" },
		{ "domain\n", "", "memory\n", "", "+memory", "-memory" },
		{ "domain\n", "", "memory pids\n", "memory", "+pidsy", "-pids" },
		{ NULL, "1\n", "memory pids\n", "", "+pidsry", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *command = NULL, *undo = NULL, *after = NULL;
		char top[] = "/tmp/cgroup-test-XXXXXX";

		assert_non_null(mkdtemp(top));
		if (rows[i].type)
			put(top, "cgroup.type", rows[i].type);
		put(top, "cgroup.procs", rows[i].processes);
		put(top, "cgroup.controllers", rows[i].offered);
		put(top, "cgroup.subtree_control", rows[i].given);
		undo = cgroup_file_borrow(top);
		after = cgroup_file_read(top, "cgroup.subtree_control");
		assert_non_null(after);
		if (strcmp(after, rows[i].after) != 0 || !undo != !rows[i].undo ||
		    (undo && strcmp(undo, rows[i].undo) != 0))
			fail_msg("row %zu: %s, undo %s", i, after, undo ?: "nothing");
		assert_true(asprintf(&command, "rm -rf %s", top) > 0);
		assert_int_equal(system(command), 0);
	}
}

/* As the kernel would: what is written changes the type. */
static void what_changed_the_type_is_undone(void **state)
{
	_cleanup_free_ char *command = NULL, *path = NULL, *type = NULL;
	char top[] = "/tmp/cgroup-test-XXXXXX";

	assert_non_null(mkdtemp(top));
	put(top, "cgroup.type", "domain\n");
	put(top, "cgroup.procs", "");
	put(top, "cgroup.controllers", "memory pids\n");
	assert_true(asprintf(&path, "%s/cgroup.subtree_control", top) > 0);
	assert_int_equal(symlink("cgroup.type", path), 0);
	assert_null(cgroup_file_borrow(top));
	type = cgroup_file_read(top, "cgroup.type");
	assert_string_equal(type, "-memory -pids");
	assert_true(asprintf(&command, "rm -rf %s", top) > 0);
	assert_int_equal(system(command), 0);
}

static void groups_that_take_processes(void **state)
{
	static const struct {
		const char *type;
		bool takes;
	} rows[] = {
		{ "domain\n", true },
		{ "domain threaded\n", true },
		{ "threaded\n", false },
		{ "domain invalid\n", false },
	};
	char top[] = "/tmp/cgroup-test-XXXXXX";
	_cleanup_free_ char *command = NULL;

	assert_non_null(mkdtemp(top));
	assert_true(cgroup_file_takes_processes(top));
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		put(top, "cgroup.type", rows[i].type);
		assert_true(cgroup_file_takes_processes(top) == rows[i].takes);
	}
	assert_true(asprintf(&command, "rm -rf %s", top) > 0);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_told_from_none),
		cmocka_unit_test(words_and_numbers),
		cmocka_unit_test(paths_are_judged),
		cmocka_unit_test(slices_of_users),
		cmocka_unit_test(hierarchies_of_version_1),
		cmocka_unit_test(limits_of_groups_above_count),
		cmocka_unit_test(a_group_of_others_stays_usable),
		cmocka_unit_test(what_changed_the_type_is_undone),
		cmocka_unit_test(groups_that_take_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
