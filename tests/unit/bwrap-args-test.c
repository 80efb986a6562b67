/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/bwrap-args.h"
#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

static char *joined(const BwrapArguments *arguments)
{
	char *text = strndup("", 0), *longer;

	assert_true(arguments->size > 0 && arguments->text[arguments->size - 1] == '\0');
	for (size_t i = 0; i < arguments->size; i += strlen(arguments->text + i) + 1) {
		assert_true(asprintf(&longer, "%s%s ", text, arguments->text + i) > 0);
		free(text);
		text = longer;
	}
	return text;
}

static void test_every_kind(void **state)
{
	_cleanup_(plan_done) Plan plan = { 0 };
	_cleanup_(bwrap_arguments_done) BwrapArguments arguments = { 0 };
	_cleanup_free_ char *text = NULL;
	PlanNode first = { .path = strndup("/", 1), .fd = FD_NONE }, second = { .path = strndup("/w", 2) },
		 null = { .path = strndup("/dev/null", 9), .fd = FD_NONE },
		 pts = { .path = strndup("/dev/pts/3", 10) };
	int fd = dup(STDERR_FILENO);

	second.fd = fd;
	pts.fd = FD_NONE;
	assert_int_equal(plan_add_bind(&plan, &first, "/", ENTRY_RO, "o", "r"), 0);
	assert_int_equal(plan_add_special(&plan, ENTRY_DEV, "/dev", ENTRY_PRIVATE, "o", "r"), 0);
	assert_int_equal(plan_add_device(&plan, &pts, "/dev/console", "o", "r"), 0);
	assert_int_equal(plan_add_special(&plan, ENTRY_PROC, "/proc", ENTRY_PRIVATE, "o", "r"), 0);
	assert_int_equal(plan_add_tmpfs(&plan, "/tmp", 01777, ENTRY_PRIVATE, "o", "r"), 0);
	assert_int_equal(plan_add_special(&plan, ENTRY_DIRECTORY, "/home/u", ENTRY_PRIVATE, "o", "r"), 0);
	assert_int_equal(plan_add_special(&plan, ENTRY_DESCRIPTOR, "/home/u/notes", ENTRY_RW, "o", "r"), 0);
	assert_int_equal(plan_add_link(&plan, "/home/u/.l", ".claude/.l", "o", "r"), 0);
	assert_int_equal(plan_add_bind(&plan, &second, "/home/u/a b", ENTRY_RW, "o", "r"), 0);
	assert_int_equal(plan_add_mask(&plan, "/etc/shadow", "o", "r"), 0);
	assert_int_equal(plan_add_bind(&plan, &null, "/srv/s", ENTRY_MASKED, "o", "r"), 0);
	assert_int_equal(plan_add_file(&plan, "/etc/f", "x\0y", 3, "o", "r"), 0);
	assert_int_equal(second.fd, FD_NONE);

	assert_int_equal(bwrap_arguments_make(&plan, 20, &arguments), 0);
	text = joined(&arguments);
	assert_string_equal(text,
			    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try "
			    "--die-with-parent --as-pid-1 --cap-drop ALL "
			    "--ro-bind-fd 20 / --dev /dev --dev-bind /dev/pts/3 /dev/console --proc /proc "
			    "--perms 1777 --tmpfs /tmp --perms 0755 --dir /home/u "
			    "--symlink .claude/.l /home/u/.l --bind-fd 21 /home/u/a b "
			    "--perms 0444 --ro-bind-data 22 /etc/shadow --ro-bind-fd 23 /srv/s "
			    "--perms 0444 --ro-bind-data 24 /etc/f ");

	assert_int_equal(arguments.n_fds, 5);
	assert_int_equal(arguments.fds[0], FD_NONE);
	assert_int_equal(arguments.fds[1], fd);
	assert_int_equal(arguments.fds[2], FD_NONE);
	assert_int_equal(arguments.fds[4], FD_NONE);
	assert_string_equal(arguments.entries[1]->destination, "/home/u/a b");
	assert_int_equal(arguments.entries[2]->kind, ENTRY_FILE);
	assert_int_equal(arguments.entries[4]->data_size, 3);
	free(first.path);
	free(second.path);
	free(null.path);
	free(pts.path);
}

/* Never the network, never a session of bwrap's own, and nothing that bwrap might skip in silence but the
 * cgroup. */
static void test_whole_plan(void **state)
{
	_cleanup_(bwrap_arguments_done) BwrapArguments arguments = { 0 };
	PlanFixture fixture;
	size_t descriptors = 0;

	plan_fixture_init(&fixture, "root", "claude");
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(bwrap_arguments_make(&fixture.plan, 10, &arguments), 0);
	for (size_t i = 0; i < arguments.size; i += strlen(arguments.text + i) + 1) {
		const char *word = arguments.text + i;

		assert_string_not_equal(word, "--unshare-net");
		assert_string_not_equal(word, "--unshare-all");
		assert_string_not_equal(word, "--new-session");
		assert_string_not_equal(word, "--setenv");
		assert_string_not_equal(word, "--bind");
		assert_string_not_equal(word, "--ro-bind");
		if (strstr(word, "-try"))
			assert_string_equal(word, "--unshare-cgroup-try");
	}
	for (size_t i = 0; i < fixture.plan.n_entries; i++) {
		const Entry *entry = &fixture.plan.entries[i];

		descriptors += (entry->kind == ENTRY_BIND && !entry->device) || entry->kind == ENTRY_FILE;
	}
	assert_int_equal(arguments.n_fds, descriptors);
	plan_fixture_done(&fixture);
}

static void root_s_proc_is_read_only(void **state)
{
	_cleanup_(plan_done) Plan plan = { 0 };
	_cleanup_(bwrap_arguments_done) BwrapArguments arguments = { 0 };
	_cleanup_free_ char *text = NULL;

	assert_int_equal(plan_add_special(&plan, ENTRY_PROC, "/proc", ENTRY_RO, "o", "r"), 0);
	assert_int_equal(bwrap_arguments_make(&plan, 20, &arguments), 0);
	text = joined(&arguments);
	assert_non_null(strstr(text, " --proc /proc --remount-ro /proc "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_s_proc_is_read_only),
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_whole_plan),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
