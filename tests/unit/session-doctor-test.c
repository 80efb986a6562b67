/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/session/doctor.h"

#define ROWS_MAX 64

typedef struct Told {
	Row rows[ROWS_MAX];
	size_t n;
} Told;

static void on_row(void *userdata, const Row *row)
{
	Told *said = userdata;

	assert_true(said->n < ROWS_MAX);
	assert_int_equal(
		row_make(row->id, row->status, row->title, row->detail, row->fix, &said->rows[said->n++]), 0);
}

static void said_done(Told *said)
{
	for (size_t i = 0; i < said->n; i++)
		row_done(&said->rows[i]);
}

static const Row *find(const Told *said, const char *id)
{
	const Row *found = NULL;

	for (size_t i = 0; i < said->n; i++)
		if (streq(said->rows[i].id, id)) {
			assert_null(found);
			found = &said->rows[i];
		}
	return found;
}

/* The row of a step that failed and the refusal of the launch are one sentence. */
static void refused_in_the_words_of(const char *sentence)
{
	_cleanup_(said_done) Told said = { .n = 0 };
	_cleanup_(doctor_freep) Doctor *doctor = doctor_new(on_row, &said);
	_cleanup_free_ char *whole = NULL;
	const Row *row;

	doctor_passed(doctor, DOCTOR_CHAIN_PROGRAMS, "there");
	doctor_reach(doctor, DOCTOR_CHAIN_TAP);
	doctor_failed(doctor, sentence);
	row = find(&said, DOCTOR_CHAIN_TAP);
	assert_non_null(row);
	assert_int_equal(row->status, ROW_FAIL);
	assert_true(asprintf(&whole, "%s; %s", row->detail, row->fix) > 0);
	assert_string_equal(whole, sentence);
}

static void rows_are_the_refusals(void **state)
{
	static const char *const sentences[] = {
		BECAUSE(TUN_ABSENT),      BECAUSE(TUN_DRIVER),
		BECAUSE(TUN_CGROUP),      BECAUSE(TUN_DIRECTORY),
		BECAUSE(TUN_NODEV),       BECAUSE(TUN_MODULE),
		BECAUSE(TUN_OTHER),       BECAUSE(USERNS_NONE),
		BECAUSE(NETNS_NONE),      BECAUSE(USERNS_LIMIT),
		BECAUSE(USERNS_KERNEL),   BECAUSE(USERNS_ROOT_ONLY),
		BECAUSE(USERNS_APPARMOR), BECAUSE(USERNS_SECCOMP),
		BECAUSE(USERNS_OTHER),    BECAUSE(BWRAP_OLD),
		BECAUSE(BWRAP_ENDED),     BECAUSE(PASTA_ENDED),
		BECAUSE(PASTA_SILENT),    BECAUSE(PROC_MASKED),
		BECAUSE(ENTRY_PLANTED),   BECAUSE(AGENT_MISSING),
		BECAUSE(FORWARDER_NONE),  BECAUSE(RESOLVER_NONE),
		BECAUSE(PROGRAM_SET_ID),  CAUSE_PROGRAM_MISSING "; " FIX_PROGRAM_PACKAGE,
	};

	for (size_t i = 0; i < ELEMENTSOF(sentences); i++)
		refused_in_the_words_of(sentences[i]);
}

static void what_lies_behind_was_not_tried(void **state)
{
	static const char *const behind[] = { DOCTOR_CHAIN_ROUTES, DOCTOR_CHAIN_PROC, DOCTOR_CHAIN_PLAN,
					      DOCTOR_CHAIN_MOUNTS, DOCTOR_CHAIN_WIRE, DOCTOR_CHAIN_AGENT,
					      DOCTOR_ANSWERS };
	_cleanup_(said_done) Told said = { .n = 0 };
	_cleanup_(doctor_freep) Doctor *doctor = doctor_new(on_row, &said);

	doctor_passed(doctor, DOCTOR_CHAIN_PROGRAMS, "there");
	doctor_passed(doctor, DOCTOR_CHAIN_NAMESPACES, "there");
	doctor_reach(doctor, DOCTOR_CHAIN_TAP);
	doctor_failed(doctor, BECAUSE(TUN_ABSENT));
	/* The first cause stands, and nothing is said twice. */
	doctor_reach(doctor, DOCTOR_CHAIN_PLAN);
	doctor_failed(doctor, "something else");
	doctor_passed(doctor, DOCTOR_CHAIN_WIRE, "too late");
	assert_int_equal(find(&said, DOCTOR_CHAIN_NAMESPACES)->status, ROW_PASS);
	for (size_t i = 0; i < ELEMENTSOF(behind); i++) {
		const Row *row = find(&said, behind[i]);

		assert_non_null(row);
		assert_int_equal(row->status, ROW_NOTE);
		assert_string_equal(row->detail, DOCTOR_NOT_TRIED);
	}
}

static void sessions_of_agents_have_none(void **state)
{
	doctor_reach(NULL, DOCTOR_CHAIN_TAP);
	doctor_passed(NULL, DOCTOR_CHAIN_TAP, "%s", "there");
	doctor_failed(NULL, BECAUSE(TUN_ABSENT));
	doctor_say(NULL, DOCTOR_TUN, ROW_FAIL, NULL, "there");
	doctor_say_sentence(NULL, DOCTOR_TUN, ROW_FAIL, "there");
	doctor_finish(NULL);
	assert_false(doctor_has_said(NULL, DOCTOR_TUN));
	assert_null(doctor_free(NULL));
}

static void every_row_has_a_title(void **state)
{
	for (size_t i = 0; doctor_id_at(i); i++) {
		assert_true(row_id_is_valid(doctor_id_at(i)));
		assert_non_null(doctor_title(doctor_id_at(i)));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(doctor_id_at(i), doctor_id_at(j));
	}
	assert_null(doctor_title("no.row"));
}

/* A directory of the doctor's own is gone with it. */
static void its_directory_goes(void **state)
{
	_cleanup_(said_done) Told said = { .n = 0 };
	Doctor *doctor = doctor_new(on_row, &said);
	_cleanup_free_ char *path = strdup(doctor_make_directory(doctor));

	assert_non_null(path);
	assert_string_equal(doctor_make_directory(doctor), path);
	assert_int_equal(access(path, F_OK), 0);
	assert_null(doctor_free(doctor));
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_the_refusals),
		cmocka_unit_test(what_lies_behind_was_not_tried),
		cmocka_unit_test(sessions_of_agents_have_none),
		cmocka_unit_test(every_row_has_a_title),
		cmocka_unit_test(its_directory_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
