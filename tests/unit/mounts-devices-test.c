/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/sysmacros.h>

#include "service/plan/device-rules.h"
#include "tests/unit/plan-fixture.h"

/* makedev(3) as a constant, for minors below 256. */
#define DEVICE(major, minor) ((dev_t)(major) << 8 | (minor))

static const FakeNode devices[] = {
	{ "/dev/kvm", S_IFCHR | 0660, 0, NULL, DEVICE(10, 232) },
	{ "/dev/ttyUSB0", S_IFCHR | 0660, 0, NULL, DEVICE(188, 0) },
	{ "/dev/ttyS0", S_IFCHR | 0660, 0, NULL, DEVICE(4, 64) },
	{ "/dev/serial/by-id/board", S_IFLNK | 0777, 0, "../../ttyUSB0" },
	{ "/dev/harmless", S_IFCHR | 0666, 0, NULL, DEVICE(10, 200) },
	{ "/dev/memory", S_IFLNK | 0777, 0, "mem" },
	{ "/dev/mem", S_IFCHR | 0640, 0, NULL, DEVICE(1, 1) },
	{ "/dev/tty1", S_IFCHR | 0620, 0, NULL, DEVICE(4, 1) },
	{ "/dev/copy-of-pts", S_IFCHR | 0620, 0, NULL, DEVICE(136, 3) },
	{ "/dev/sda", S_IFBLK | 0660, 0, NULL, DEVICE(8, 0) },
	{ "/dev/file", S_IFREG | 0644 },
	{ "/dev/shm/planted", S_IFCHR | 0666, 1000, NULL, DEVICE(10, 232) },
	{ "/dev/out", S_IFLNK | 0777, 0, "/srv/node" },
	{ "/srv/node", S_IFCHR | 0666, 0, NULL, DEVICE(10, 232) },
	{ "/dev/null", S_IFCHR | 0666, 0, NULL, DEVICE(1, 3) },
	{ 0 },
};

static const FakeNode graphics[] = {
	{ "/dev/dri/card0", S_IFCHR | 0660, 0, NULL, DEVICE(226, 0) },
	{ "/dev/nvidia0", S_IFCHR | 0666, 0, NULL, DEVICE(195, 0) },
	{ "/dev/nvidiactl", S_IFCHR | 0666, 0, NULL, DEVICE(195, 255) },
	{ "/dev/nvidia-caps/nvidia-cap1", S_IFCHR | 0444, 0, NULL, DEVICE(236, 1) },
	{ "/dev/kfd", S_IFCHR | 0660, 0, NULL, DEVICE(242, 0) },
	{ "/dev/nvidia-link", S_IFLNK | 0777, 0, "sda" },
	{ "/dev/nvidia-disk", S_IFBLK | 0660, 0, NULL, DEVICE(8, 0) },
	{ "/dev/sda", S_IFBLK | 0660, 0, NULL, DEVICE(8, 0) },
	{ 0 },
};

static void start(PlanFixture *fixture, const FakeNode *more)
{
	plan_fixture_init(fixture, "user", "claude");
	if (more)
		plan_fixture_add(fixture, more);
}

static void make(PlanFixture *fixture)
{
	if (plan_fixture_make(fixture) < 0)
		fail_msg("%s", fixture->problem);
}

static size_t place(const PlanFixture *fixture, const char *destination)
{
	const Entry *entry = plan_fixture_entry(fixture, destination);

	assert_non_null(entry);
	return (size_t)(entry - fixture->plan.entries);
}

static void named_devices_are_given(void **state)
{
	static const char *const given[] = { "/dev/kvm", "/dev/ttyUSB0", "/dev/ttyS0" };
	PlanFixture fixture;

	start(&fixture, devices);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/kvm");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/serial/by-id/board");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/ttyUSB0");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/ttyS0");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/null");
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	for (size_t i = 0; i < ELEMENTSOF(given); i++) {
		const Entry *entry = plan_fixture_entry(&fixture, given[i]);

		assert_true(entry && entry->kind == ENTRY_BIND && entry->device && entry->mode == ENTRY_RW);
		assert_string_equal(entry->origin, CS_CONFIG_PATH ":7");
		assert_true(place(&fixture, "/dev") < place(&fixture, given[i]));
		assert_true(place(&fixture, given[i]) < place(&fixture, "/proc"));
	}
	/* The link is made again; the node once. */
	assert_int_equal(plan_fixture_entry(&fixture, "/dev/serial/by-id/board")->kind, ENTRY_LINK);
	assert_null(plan_fixture_entry(&fixture, "/dev/null"));
	plan_fixture_done(&fixture);
}

static void what_is_not_there_is_a_warning(void **state)
{
	PlanFixture fixture;

	start(&fixture, devices);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/ttyACM7");
	make(&fixture);
	assert_true(plan_fixture_warns(&fixture, CS_CONFIG_PATH
				       ":7: allow-device /dev/ttyACM7 is not given: No such file"));
	plan_fixture_done(&fixture);
}

static void others_refuse(void **state)
{
	static const struct {
		const char *path, *part;
	} bad[] = {
		{ "/dev/harmless", "/dev/harmless is refused: it leads into networks" },
		{ "/dev/memory", "/dev/mem is refused: it reaches the memory" },
		{ "/dev/tty1", "it is a terminal" },
		{ "/dev/copy-of-pts", "it is a terminal" },
		{ "/dev/sda", "it reaches disks" },
		{ "/dev/file", "it is no device" },
		{ "/dev/serial", "it is a directory" },
		{ "/dev/shm/planted", "files of other programs" },
		{ "/dev/out", "/srv/node is refused: it is not below /dev" },
	};
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		start(&fixture, devices);
		plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, bad[i].path);
		assert_true(plan_fixture_make(&fixture) < 0);
		assert_string_equal(fixture.error, CS_ERROR_PLAN_REFUSED);
		if (!strstr(fixture.problem, bad[i].part))
			fail_msg("'%s' does not say '%s'", fixture.problem, bad[i].part);
		assert_non_null(strstr(fixture.problem, CS_CONFIG_PATH ":7: allow-device"));
		plan_fixture_done(&fixture);
	}
}

static void graphics_are_those_that_exist(void **state)
{
	static const char *const given[] = { "/dev/dri", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps",
					     "/dev/kfd" };
	PlanFixture fixture;

	start(&fixture, graphics);
	plan_fixture_configure(&fixture, CONFIG_GPU, "1");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_DEVICE, "/dev/dri/card0");
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	for (size_t i = 0; i < ELEMENTSOF(given); i++)
		assert_true(plan_fixture_entry(&fixture, given[i])->device);
	assert_null(plan_fixture_entry(&fixture, "/dev/dri/card0"));
	assert_null(plan_fixture_entry(&fixture, "/dev/nvidia-link"));
	assert_null(plan_fixture_entry(&fixture, "/dev/nvidia-disk"));
	plan_fixture_done(&fixture);

	start(&fixture, NULL);
	plan_fixture_configure(&fixture, CONFIG_GPU, "1");
	make(&fixture);
	assert_true(plan_fixture_warns(&fixture, CS_CONFIG_PATH ":7: gpu gives nothing"));
	plan_fixture_done(&fixture);

	start(&fixture, graphics);
	make(&fixture);
	for (size_t i = 0; i < ELEMENTSOF(given); i++)
		assert_null(plan_fixture_entry(&fixture, given[i]));
	plan_fixture_done(&fixture);
}

static void numbers_are_judged(void **state)
{
	static const struct {
		mode_t type;
		unsigned major, minor;
		bool refused;
	} rows[] = {
		{ S_IFCHR, 1, 1, true },    { S_IFCHR, 1, 4, true },     { S_IFCHR, 1, 5, false },
		{ S_IFCHR, 1, 11, true },   { S_IFCHR, 4, 63, true },    { S_IFCHR, 4, 64, false },
		{ S_IFCHR, 5, 0, true },    { S_IFCHR, 7, 200, true },   { S_IFCHR, 10, 223, true },
		{ S_IFCHR, 10, 229, true }, { S_IFCHR, 10, 232, false }, { S_IFCHR, 13, 64, true },
		{ S_IFCHR, 21, 0, true },   { S_IFCHR, 128, 0, true },   { S_IFCHR, 143, 9, true },
		{ S_IFCHR, 144, 0, false }, { S_IFCHR, 202, 0, true },   { S_IFBLK, 7, 0, true },
		{ S_IFREG, 0, 0, true },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		PlanNode node = { .path = (char *)"/dev/x",
				  .mode = rows[i].type | 0666,
				  .device = makedev(rows[i].major, rows[i].minor) };

		if ((device_refusal(&node) != NULL) != rows[i].refused)
			fail_msg("%u:%u", rows[i].major, rows[i].minor);
	}
	assert_non_null(device_path_refusal("/dev/tap0"));
	assert_non_null(device_path_refusal("/dev/fuse"));
	assert_non_null(device_path_refusal("/dev"));
	assert_non_null(device_path_refusal("/dev/vcsa1"));
	assert_null(device_path_refusal("/dev/ttyACM0"));
	assert_null(device_path_refusal("/dev/network"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_devices_are_given), cmocka_unit_test(what_is_not_there_is_a_warning),
		cmocka_unit_test(others_refuse),           cmocka_unit_test(graphics_are_those_that_exist),
		cmocka_unit_test(numbers_are_judged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
