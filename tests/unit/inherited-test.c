/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/mempolicy.h>

#include "service/link/inherited.h"

static void test_policies(void **state)
{
	static const struct {
		const char *line;
		uint32_t mode;
		unsigned long first;
	} lines[] = {
		{ "55ce96c8f000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4\n", MPOL_DEFAULT,
		  0 },
		{ "55ce96c8f000 bind:0 file=/bin/x\n", MPOL_BIND, 1 },
		{ "00400000 bind:0-1,3 heap\n", MPOL_BIND, 11 },
		{ "00400000 bind=static:1\n", MPOL_BIND | MPOL_F_STATIC_NODES, 2 },
		{ "00400000 interleave=relative:0-2", MPOL_INTERLEAVE | MPOL_F_RELATIVE_NODES, 7 },
		{ "00400000 bind=static|balancing:2 x", MPOL_BIND | MPOL_F_STATIC_NODES | 1 << 13, 4 },
		{ "00400000 prefer:1 file=/a:7", MPOL_PREFERRED, 2 },
		{ "00400000 prefer (many):0,2\n", 5, 5 },
		{ "00400000 weighted interleave:0-1\n", 6, 3 },
		{ "00400000 local\n", MPOL_LOCAL, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		MemoryPolicy policy;

		assert_int_equal(memory_policy_parse(lines[i].line, &policy), 0);
		assert_int_equal(policy.mode, lines[i].mode);
		assert_int_equal(policy.nodes[0], lines[i].first);
		for (size_t n = 1; n < ELEMENTSOF(policy.nodes); n++)
			assert_int_equal(policy.nodes[n], 0);
	}
}

static void test_no_policies(void **state)
{
	static const char *const lines[] = {
		"",
		"00400000",
		"00400000 ",
		"00400000 defaults",
		"00400000 unheard:0",
		"00400000 bind:",
		"00400000 bind:a",
		"00400000 bind:0-",
		"00400000 bind:3-1",
		"00400000 bind:0,",
		"00400000 bind:1024",
		"00400000 bind:0-99999999999999999999999",
		"00400000 bind:0x",
		"00400000 bind=steady:0",
		"00400000 bind=:0",
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		MemoryPolicy policy;

		assert_int_equal(memory_policy_parse(lines[i], &policy), -EBADMSG);
	}
}

/* Nothing is set, and nothing said, where the heir has it already. */
static void test_own(void **state)
{
	char **warnings = NULL;
	Inherited own;

	inherited_read(getpid(), &own);
	assert_true(own.values[INHERITED_PROCESSORS].n > 0);
	assert_true(own.values[INHERITED_SCHEDULING].n > 0);
	assert_int_equal(inherited_apply(&own, &warnings), 0);
	assert_int_equal(strings_count(warnings), 0);
}

/* Values of a size that no reader makes: each is one sentence, and the process stays what it is. */
static void test_senseless(void **state)
{
	static Inherited senseless;
	_cleanup_(strings_freep) char **warnings = NULL;
	Inherited before, after;

	inherited_read(getpid(), &before);
	for (size_t kind = 0; kind < INHERITED_MAX; kind++)
		if (kind != INHERITED_PROCESSORS)
			senseless.values[kind] = (InheritedValue){ .n = 3, .bytes = { 255, 255, 255 } };
	assert_int_equal(inherited_apply(&senseless, &warnings), 0);
	assert_int_equal(strings_count(warnings), INHERITED_MAX - 1);
	inherited_read(getpid(), &after);
	for (size_t kind = 0; kind < INHERITED_MAX; kind++) {
		assert_int_equal(before.values[kind].n, after.values[kind].n);
		assert_memory_equal(before.values[kind].bytes, after.values[kind].bytes,
				    before.values[kind].n);
	}
}

static void test_packed(void **state)
{
	Inherited own, again;
	PackWriter w = { 0 };
	PackReader r;

	inherited_read(getpid(), &own);
	pack_init(&w, INHERITED_MAX * (INHERITED_BYTES_MAX + 8));
	inherited_pack(&own, &w);
	assert_int_equal(w.error, 0);
	unpack_init(&r, w.data, w.size);
	inherited_unpack(&r, &again);
	assert_int_equal(unpack_finish(&r), 0);
	for (size_t kind = 0; kind < INHERITED_MAX; kind++) {
		assert_int_equal(own.values[kind].n, again.values[kind].n);
		assert_memory_equal(own.values[kind].bytes, again.values[kind].bytes, own.values[kind].n);
	}

	/* Longer than a value may be. */
	w.size = 0;
	pack_bytes(&w, &own, INHERITED_BYTES_MAX + 1);
	unpack_init(&r, w.data, w.size);
	inherited_unpack(&r, &again);
	assert_int_equal(unpack_finish(&r), -EBADMSG);
	pack_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies), cmocka_unit_test(test_no_policies),
		cmocka_unit_test(test_own),      cmocka_unit_test(test_senseless),
		cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
