/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/bwrap-args.h"
#include "service/plan/exposure.h"
#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

/* Every entry is a row, in the plan's order, with nothing left out and nothing made up. */
static void test_rows(void **state)
{
	PlanFixture fixture;
	ExposureRow *rows;
	size_t n = 0, masked = 0;

	plan_fixture_init(&fixture, "root", "claude");
	assert_int_equal(plan_fixture_make(&fixture), 0);
	rows = exposure_make(&fixture.plan, &n);
	assert_non_null(rows);
	assert_int_equal(n, fixture.plan.n_entries);
	for (size_t i = 0; i < n; i++) {
		const Entry *entry = &fixture.plan.entries[i];

		assert_ptr_equal(rows[i].path, entry->destination);
		assert_string_equal(rows[i].kind,
				    entry->device ? "device" : entry_kind_to_string(entry->kind));
		assert_string_equal(rows[i].mode, entry_mode_to_string(entry->mode));
		assert_true(rows[i].origin && rows[i].origin[0] && rows[i].reason && rows[i].reason[0]);
		masked += streq(rows[i].mode, "masked");
		if (streq(rows[i].path, "/root/.claude/local")) {
			assert_string_equal(rows[i].mode, "private");
			assert_string_equal(rows[i].origin, "profile claude");
			assert_non_null(starts_with(rows[i].reason, "session: "));
		}
		if (streq(rows[i].path, "/root/src/project"))
			assert_string_equal(rows[i].origin, "/etc/claude-sandbox.conf:7");
	}
	assert_true(masked > 20);
	free(rows);
	plan_fixture_done(&fixture);
}

/* Files that the caller handed in are rows, behind the mounts, and nothing that bwrap hears of. */
static void test_descriptors(void **state)
{
	static const PlanDescriptor descriptors[] = {
		{ 0, "/home/user/notes \xff.txt", true },
		{ 1, NULL, true },
		{ 2, "/var/log/read-only", false },
		{ 63, "/tmp/further", true },
		{ 200, NULL, false },
	};
	static const char *const paths[] = { "/home/user/notes \xff.txt", "/proc/self/fd/1",
					     "/var/log/read-only", "/tmp/further", "/proc/self/fd/200" };
	static const bool writable[] = { true, true, false, true, false };
	BwrapArguments with = { 0 }, without = { 0 };
	PlanFixture fixture;
	ExposureRow *rows;
	size_t n = 0;

	plan_fixture_init(&fixture, "user", "claude");
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(bwrap_arguments_make(&fixture.plan, 20, &without), 0);
	fixture.facts.descriptors = descriptors;
	fixture.facts.n_descriptors = ELEMENTSOF(descriptors);
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(bwrap_arguments_make(&fixture.plan, 20, &with), 0);
	assert_int_equal(with.size, without.size);
	assert_memory_equal(with.text, without.text, with.size);
	rows = exposure_make(&fixture.plan, &n);
	assert_non_null(rows);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
		const ExposureRow *row = &rows[n - ELEMENTSOF(paths) + i];

		assert_string_equal(row->path, paths[i]);
		assert_string_equal(row->kind, "descriptor");
		assert_string_equal(row->mode, writable[i] ? "rw" : "ro");
		assert_string_equal(row->origin, "caller");
		assert_non_null(strstr(row->reason, writable[i] ? "changed" : "read"));
	}
	assert_string_not_equal(rows[n - ELEMENTSOF(paths) - 1].kind, "descriptor");
	/* They decide nothing about what is seen at their path. */
	assert_string_not_equal(
		entry_kind_to_string(plan_covering(&fixture.plan, "/var/log/read-only")->kind), "descriptor");
	free(rows);
	bwrap_arguments_done(&with);
	bwrap_arguments_done(&without);
	plan_fixture_done(&fixture);
}

static void test_empty(void **state)
{
	const Plan plan = { 0 };
	size_t n = 1;
	ExposureRow *rows = exposure_make(&plan, &n);

	assert_non_null(rows);
	assert_int_equal(n, 0);
	free(rows);
}

static void test_names(void **state)
{
	static const char *const kinds[] = { "bind", "tmpfs", "dev",       "proc",
					     "link", "file",  "directory", "descriptor" };
	static const char *const modes[] = { "ro", "rw", "masked", "private" };

	assert_int_equal(ELEMENTSOF(kinds), ENTRY_KIND_MAX);
	for (EntryKind i = 0; i < ENTRY_KIND_MAX; i++)
		assert_string_equal(entry_kind_to_string(i), kinds[i]);
	assert_int_equal(ELEMENTSOF(modes), ENTRY_MODE_MAX);
	for (EntryMode i = 0; i < ENTRY_MODE_MAX; i++)
		assert_string_equal(entry_mode_to_string(i), modes[i]);
	assert_null(entry_kind_to_string(ENTRY_KIND_MAX));
	assert_null(entry_mode_to_string(ENTRY_MODE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
