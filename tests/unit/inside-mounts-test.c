/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mount.h>

#include "service/inside/mounts.h"
#include "tests/unit/plan-fixture.h"

static const char table[] =
	"131 56 254:0 / / ro,nosuid,nodev,relatime - ext4 /dev/vda rw,discard\n"
	"139 131 0:6 / /dev ro,nosuid,nodev shared:5 master:2 - devtmpfs devtmpfs rw,mode=755\n"
	"155 139 0:81 / /dev rw,nosuid,relatime - tmpfs tmpfs rw\n"
	"160 131 8:1 /a\\040b /mnt/x\\134y\\012z rw,nodev,nosuidx - ext4 /dev/sda - - rw\n";

static void a_table_is_taken_apart(void **state)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };

	assert_int_equal(mounts_parse(table, &mounts), 0);
	assert_int_equal(mounts.n, 4);
	assert_int_equal(mounts.rows[0].major, 254);
	assert_true((mounts.rows[0].flags & MS_RDONLY) && (mounts.rows[0].flags & MS_NOSUID) &&
		    (mounts.rows[0].flags & MS_NODEV));
	assert_string_equal(mounts.rows[1].type, "devtmpfs");
	assert_string_equal(mounts.rows[3].place, "/mnt/x\\y\nz");
	assert_string_equal(mounts.rows[3].root, "/a b");
	assert_string_equal(mounts.rows[3].type, "ext4");
	assert_false((mounts.rows[3].flags & MS_NOSUID));
	assert_true((mounts.rows[3].flags & MS_NODEV));
	assert_false((mounts.rows[3].flags & MS_RDONLY));
	/* The last one at a place is the one in sight. */
	assert_int_equal(mounts_at(&mounts, "/dev")->id, 155);
	assert_int_equal(mounts_count(&mounts, "/dev"), 2);
	assert_null(mounts_at(&mounts, "/dev/"));
	assert_int_equal(mounts_by_id(&mounts, 139)->parent, 131);
	assert_null(mounts_by_id(&mounts, 1));
}

static void what_is_no_table_is_refused(void **state)
{
	static const char *const bad[] = {
		"1\n",
		"1 2 3:4\n",
		"1 2 3:4 / / rw\n",
		"1 2 x / / rw - ext4 s rw\n",
		"1 2 3:4 / relative rw - ext4 s rw\n",
		"\n",
		"",
		"1 2 3:4 / / rw - ext4 s rw\n1 2 3:4 / /cut rw - ext4 s rw",
	};
	Mounts mounts = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(mounts_parse(bad[i], &mounts), -EBADMSG);
}

static bool is_row(const char *row)
{
	for (size_t i = 0; i < checks_count; i++)
		if (streq(checks_table[i].id, row))
			return true;
	return false;
}

/* An entry that nobody knows has one too: so a new kind of entry cannot go unmeasured. */
static void every_entry_has_a_row(void **state)
{
	static const char *const people[] = { "root", "user" };
	static const char *const agents[] = { "claude", "codex", "pi", "shell" };
	static const struct {
		const char *path, *row;
	} known[] = { { "/", "17" },
		      { "/dev", "10" },
		      { "/dev/console", "10" },
		      { "/proc", "07" },
		      { "/tmp", "11" },
		      { "/run", "12" },
		      { "/run/claude-sandbox/inside", "01" },
		      { "/srv/database/socket", "12" },
		      { "/home", "03" },
		      { "/etc/shadow", "13" },
		      { "/etc/claude-gitconfig", "16" },
		      { "/run/systemd/resolve/stub-resolv.conf", "20" },
		      { "~/.local/share/keyrings", "21" },
		      { "~/.cache", "17" } };

	for (size_t p = 0; p < ELEMENTSOF(people); p++)
		for (size_t a = 0; a < ELEMENTSOF(agents); a++) {
			_cleanup_(expectations_done) Expectations e = { 0 };
			const ExpectationFacts facts = { .hostname = "" };
			PlanFixture fixture;

			plan_fixture_init(&fixture, people[p], agents[a]);
			plan_fixture_install(&fixture, agents[a]);
			plan_fixture_set_path(&fixture, "~/src/project/src:/usr/local/bin");
			if (plan_fixture_make(&fixture) < 0) {
				print_error("%s %s: %s\n", people[p], agents[a], fixture.problem);
				fail();
			}
			assert_int_equal(expectations_make(&fixture.plan, &fixture.request, &facts, &e), 0);
			for (size_t i = 0; i < e.n_entries; i++) {
				const char *row = mounts_row(&e, &e.entries[i]);

				if (e.entries[i].kind == ENTRY_DESCRIPTOR) {
					assert_null(row);
					continue;
				}
				assert_non_null(row);
				assert_true(is_row(row));
				if (e.entries[i].placeholder)
					assert_string_equal(row, "22");
				for (size_t k = 0; k < ELEMENTSOF(known); k++)
					if (streq(plan_fixture_path(&fixture, known[k].path),
						  e.entries[i].path))
						assert_string_equal(row, known[k].row);
			}
			plan_fixture_done(&fixture);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_taken_apart),
		cmocka_unit_test(what_is_no_table_is_refused),
		cmocka_unit_test(every_entry_has_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
