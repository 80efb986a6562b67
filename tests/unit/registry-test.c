/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/daemon/record.h"
#include "service/daemon/registry.h"

static void ids_are_random_and_valid(void **state)
{
	char id[CS_ID_LENGTH + 1], other[CS_ID_LENGTH + 1];

	assert_int_equal(session_id_make(id), 0);
	assert_int_equal(session_id_make(other), 0);
	assert_true(session_id_valid(id));
	assert_string_not_equal(id, other);
	assert_false(session_id_valid(""));
	assert_false(session_id_valid("aaaaaaaaaaaaaaa"));
	assert_false(session_id_valid("aaaaaaaaaaaaaaaaa"));
	assert_false(session_id_valid("aaaaaaaaaaaaaaa1"));
	assert_false(session_id_valid("aaaaaaaaaaaaaaaA"));
	assert_false(session_id_valid("../aaaaaaaaaaaaa"));
}

static void sessions_are_found_counted_and_seen(void **state)
{
	Session *a = NULL, *b = NULL;
	Registry *registry = NULL;

	assert_int_equal(registry_new(&registry), 0);
	assert_int_equal(registry_add(registry, "aaaaaaaaaaaaaaaa", "shell", "u", 1000, "/w", 5, &a), 0);
	assert_int_equal(registry_add(registry, "aaaaaaaaaaaaaaaa", "shell", "u", 1000, "/w", 5, &b),
			 -EEXIST);
	assert_null(b);
	assert_int_equal(registry_add(registry, "bbbbbbbbbbbbbbbb", "claude", "v", 1001, "/v", 6, &b), 0);
	assert_string_equal(a->path, CS_SESSION_ROOT "/aaaaaaaaaaaaaaaa");
	assert_int_equal(a->state, SESSION_STARTING);
	assert_int_equal(a->exit_status, EXIT_STATUS_UNKNOWN);
	assert_ptr_equal(registry_find(registry, "bbbbbbbbbbbbbbbb"), b);
	assert_null(registry_find(registry, "cccccccccccccccc"));
	assert_int_equal(registry_count(registry), 2);
	assert_int_equal(registry_count_of(registry, 1000), 1);
	assert_int_equal(registry_count_of(registry, 0), 0);

	assert_true(session_visible(a, 1000));
	assert_true(session_visible(a, 0));
	assert_false(session_visible(a, 1001));
	assert_false(session_visible(a, (uid_t)-1));

	registry_unlink(a);
	assert_null(registry_find(registry, "aaaaaaaaaaaaaaaa"));
	session_free(a);
	registry_free(registry);
}

static void records_round_trip(void **state)
{
	const Record record = {
		.id = (char *)"aaaaaaaaaaaaaaaa",
		.agent = (char *)"shell",
		.user = (char *)"u",
		.workspace = (char *)"/tmp/\xff\n",
		.uid = 1000,
		.started_usec = 1234567890123456,
		.pid = 4321,
		.start_ticks = 99999999999,
	};
	_cleanup_(record_done) Record read = { 0 };
	_cleanup_free_ uint8_t *data = NULL, *longer = NULL;
	size_t size = 0;

	assert_int_equal(record_encode(&record, &data, &size), 0);
	assert_int_equal(record_decode(data, size, &read), 0);
	assert_string_equal(read.id, record.id);
	assert_string_equal(read.agent, record.agent);
	assert_string_equal(read.user, record.user);
	assert_string_equal(read.workspace, record.workspace);
	assert_int_equal(read.uid, record.uid);
	assert_int_equal(read.started_usec, record.started_usec);
	assert_int_equal(read.pid, record.pid);
	assert_int_equal(read.start_ticks, record.start_ticks);

	for (size_t n = 0; n < size; n++) {
		Record none = { 0 };

		assert_int_equal(record_decode(data, n, &none), -EBADMSG);
		assert_null(none.id);
	}
	longer = calloc(1, size + 1);
	assert_non_null(longer);
	memcpy(longer, data, size);
	record_done(&read);
	assert_int_equal(record_decode(longer, size + 1, &read), -EBADMSG);
	/* A later version says more at its end; there is none before the first. */
	longer[0]++;
	assert_int_equal(record_decode(longer, size + 1, &read), 0);
	assert_int_equal(read.start_ticks, record.start_ticks);
	longer[0] = 0;
	record_done(&read);
	assert_int_equal(record_decode(longer, size, &read), -EBADMSG);
}

static void records_without_a_process_are_refused(void **state)
{
	const Record record = {
		.id = (char *)"aaaaaaaaaaaaaaaa",
		.agent = (char *)"shell",
		.user = (char *)"u",
		.workspace = (char *)"/",
	};
	_cleanup_free_ uint8_t *data = NULL;
	Record read = { 0 };
	size_t size = 0;

	assert_int_equal(record_encode(&record, &data, &size), 0);
	assert_int_equal(record_decode(data, size, &read), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_random_and_valid),
		cmocka_unit_test(sessions_are_found_counted_and_seen),
		cmocka_unit_test(records_round_trip),
		cmocka_unit_test(records_without_a_process_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
