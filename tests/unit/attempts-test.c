/* SPDX-License-Identifier: MIT */
#include "service/session/attempts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "dbus/names.h"

enum { TIME, PROTOCOL, ADDRESS, PORT, PROGRAM, REASON, COUNT, COLUMNS };

typedef struct Table {
	LinkRow *rows;
	uint32_t n;
} Table;

static void table_done(Table *table)
{
	for (uint32_t i = 0; i < table->n; i++)
		for (size_t c = 0; c < LINK_COLUMNS_MAX; c++)
			free(table->rows[i].columns[c]);
	free(table->rows);
	*table = (Table){ 0 };
}

#define _cleanup_table_ _cleanup_(table_done)

static const char *reason(void *userdata, uint32_t address)
{
	return "because";
}

static Table all(const Attempts *attempts)
{
	Table table = { 0 };

	assert_int_equal(attempts_rows(attempts, reason, NULL, &table.rows, &table.n), 0);
	return table;
}

static Table news(Attempts *attempts, uint32_t max)
{
	Table table = { 0 };

	assert_int_equal(attempts_news(attempts, max, reason, NULL, &table.rows, &table.n), 0);
	assert_true(table.n <= max);
	return table;
}

static void add(Attempts *attempts, uint32_t address, uint16_t port, const char *program, int pid,
		uint64_t usec)
{
	Attempt attempt = { .protocol = 17, .address = address, .port = port, .pid = pid };

	snprintf(attempt.program, sizeof(attempt.program), "%s", program);
	attempts_add(attempts, &attempt, usec);
}

static uint64_t sum(const Table *table)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < table->n; i++)
		count += strtoull(table->rows[i].columns[COUNT], NULL, 10);
	return count;
}

static bool has(const Table *table, const char *address, const char *count)
{
	for (uint32_t i = 0; i < table->n; i++)
		if (streq(table->rows[i].columns[ADDRESS], address) &&
		    streq(table->rows[i].columns[COUNT], count))
			return true;
	return false;
}

/* While a check ran: a row of its own, with a name that no program has, whatever an agent calls itself. */
static void checked_ones_are_marked(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	Attempt attempt = { .protocol = 17, .address = 0x0a000001, .port = 1, .checked = true };
	_cleanup_table_ Table table = { 0 };

	STATIC_ASSERT(sizeof(CS_DENIED_CHECKED) > ATTEMPTS_PROGRAM_MAX);
	attempts_add(attempts, &attempt, 100);
	attempts_add(attempts, &attempt, 101);
	add(attempts, 0x0a000001, 1, "", 0, 102);
	add(attempts, 0x0a000001, 1, "? while verify ", 0, 103);
	table = news(attempts, 10);
	assert_int_equal(table.n, 3);
	assert_string_equal(table.rows[0].columns[PROGRAM], CS_DENIED_CHECKED);
	assert_string_equal(table.rows[0].columns[COUNT], "2");
	assert_string_equal(table.rows[1].columns[PROGRAM], "?");
	assert_string_equal(table.rows[2].columns[PROGRAM], "? while verify ");
	/* The two of the agent's. */
	assert_int_equal(attempts_total(attempts), 2);
	for (uint32_t i = 0; i < 2000; i++) {
		attempt.address = i << 8;
		attempts_add(attempts, &attempt, 104);
	}
	assert_int_equal(attempts_total(attempts), 2);
	/* They have taken no place of the agent's. */
	for (uint32_t i = 0; i < ATTEMPTS_FIRST_MAX - 2; i++)
		add(attempts, 0x0b000000 + (i << 8), 1, "p", 0, 105);
	table_done(&table);
	table = all(attempts);
	assert_true(has(&table, "11.1.253.0", "1"));
	assert_int_equal(sum(&table), 2002 + ATTEMPTS_FIRST_MAX);
}

static void rows_are_told_apart(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	_cleanup_table_ Table table = { 0 };
	char *const *row;

	assert_false(attempts_have_news(attempts));
	add(attempts, 0x0a000001, 1, "a", 3, 100);
	add(attempts, 0x0a000001, 2, "a", 3, 101);
	add(attempts, 0x0a000001, 1, "", 0, 102);
	add(attempts, 0x0a000001, 1, "a", 4, 103);
	table = all(attempts);
	assert_int_equal(table.n, 3);
	row = table.rows[0].columns;
	assert_string_equal(row[TIME], "103");
	assert_string_equal(row[PROTOCOL], "udp");
	assert_string_equal(row[ADDRESS], "10.0.0.1");
	assert_string_equal(row[PORT], "1");
	assert_string_equal(row[PROGRAM], "a (4)");
	assert_string_equal(row[REASON], "because");
	assert_string_equal(row[COUNT], "2");
	assert_string_equal(table.rows[1].columns[PROGRAM], "?");
	assert_string_equal(table.rows[2].columns[PORT], "2");
	assert_int_equal(attempts_total(attempts), 4);
}

/* However many destinations: the rows are bounded, and every attempt is in one. */
static void no_count_is_lost(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	_cleanup_table_ Table table = { 0 };

	for (uint32_t i = 0; i < 20000; i++)
		add(attempts, i % 5000 * 7919, (uint16_t)i, "p", 1, i);
	attempts_set_unseen(attempts, 70, 30000);
	attempts_set_unseen(attempts, 77, 30001);
	attempts_set_unseen(attempts, 5, 30002);
	table = all(attempts);
	assert_int_equal(table.n, ATTEMPTS_FIRST_MAX + ATTEMPTS_NETWORKS_MAX + 2);
	assert_int_equal(sum(&table), 20077);
	assert_int_equal(attempts_total(attempts), 20077);
	/* Neither has a destination. */
	assert_string_equal(table.rows[table.n - 2].columns[ADDRESS], "");
	assert_string_equal(table.rows[table.n - 1].columns[COUNT], "77");
	assert_string_equal(table.rows[table.n - 1].columns[TIME], "30001");
}

static void add_important(Attempts *attempts, uint32_t address, uint16_t port)
{
	Attempt attempt = {
		.protocol = 6, .address = address, .port = port, .program = "p", .important = true
	};

	attempts_add(attempts, &attempt, 1);
}

/* What came first stays, and what matters has a row however late it comes. */
static void evidence_stays(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	_cleanup_table_ Table table = { 0 };

	add_important(attempts, 0xa9fea9fe, 80);
	for (uint32_t i = 0; i < 50000; i++)
		add(attempts, 0x0a000000 + i, 1, "p", 1, 2);
	/* A port of this machine, each. */
	for (uint32_t port = 1; port < 60000; port++)
		add_important(attempts, 0xc0a80101, (uint16_t)port);
	add_important(attempts, 0xa83f8110, 80);
	table = all(attempts);
	assert_true(has(&table, "169.254.169.254", "1"));
	assert_true(has(&table, "10.0.1.254", "1"));
	assert_true(has(&table, "168.63.129.16", "1"));
	/* Of the 59,999 ports 192 have rows. */
	assert_true(has(&table, "192.168.1.1", "59807"));
	assert_int_equal(sum(&table), 50000 + 59999 + 2);
	/* The rest by /24, which no key turns into an address that could be allowed. */
	for (uint32_t i = 0; i < table.n; i++)
		if (strstr(table.rows[i].columns[REASON], "in 10.0.100.0/24: because")) {
			assert_string_equal(table.rows[i].columns[COUNT], "256");
			assert_string_equal(table.rows[i].columns[ADDRESS], "");
			return;
		}
	fail_msg("no row for 10.0.100.0/24");
}

/* A program that gives itself one name after the other uses up no places. */
static void names_use_up_nothing(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	_cleanup_table_ Table table = { 0 };
	char name[16];

	for (uint32_t i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		add(attempts, 0x0a000001, 1, name, 1, i);
	}
	add(attempts, 0x0a000002, 1, "p", 1, 6000);
	table = all(attempts);
	assert_int_equal(table.n, ATTEMPTS_PROGRAMS_MAX + 2);
	assert_int_equal(sum(&table), 5001);
	assert_true(has(&table, "10.0.0.2", "1"));
}

/* All that is new comes, in parts, once, with its last count. */
static void news_come_in_parts(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	uint64_t seen = 0;

	for (uint32_t i = 0; i < 100; i++)
		add(attempts, i, 1, "p", 1, i);
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_table_ Table table = news(attempts, 32);

		assert_int_equal(table.n, i < 3 ? 32 : 4);
		seen += sum(&table);
	}
	assert_int_equal(seen, 100);
	assert_false(attempts_have_news(attempts));
	add(attempts, 7, 1, "p", 1, 200);
	assert_true(attempts_have_news(attempts));
	{
		_cleanup_table_ Table table = news(attempts, 32);

		assert_int_equal(table.n, 1);
		assert_string_equal(table.rows[0].columns[COUNT], "2");
	}
	attempts_set_unseen(attempts, 1, 300);
	assert_true(attempts_have_news(attempts));
	{
		_cleanup_table_ Table table = news(attempts, 32);

		assert_int_equal(table.n, 1);
	}
	assert_false(attempts_have_news(attempts));
}

/* The latest comes first, whatever kind of row it is. */
static void order_holds(void **state)
{
	_cleanup_(attempts_freep) Attempts *attempts = attempts_new();
	_cleanup_table_ Table table = { 0 };

	for (uint32_t i = 0; i < 3000; i++) {
		add(attempts, i << 8, 0, "x", 1, i);
		add(attempts, 0, 0, "stays", 1, i);
	}
	table = all(attempts);
	assert_string_equal(table.rows[0].columns[PROGRAM], "stays (1)");
	assert_string_equal(table.rows[0].columns[COUNT], "3000");
	for (uint32_t i = 1; i < ATTEMPTS_FIRST_MAX + ATTEMPTS_NETWORKS_MAX; i++)
		assert_true(strtoull(table.rows[i - 1].columns[TIME], NULL, 10) >=
			    strtoull(table.rows[i].columns[TIME], NULL, 10));
	assert_int_equal(sum(&table), 6000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_told_apart),  cmocka_unit_test(checked_ones_are_marked),
		cmocka_unit_test(no_count_is_lost),     cmocka_unit_test(news_come_in_parts),
		cmocka_unit_test(order_holds),          cmocka_unit_test(evidence_stays),
		cmocka_unit_test(names_use_up_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
