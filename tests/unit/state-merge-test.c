/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/session/state-json.h"
#include "service/session/state-merge.h"

static int check(const char *text)
{
	return state_json_check(text, strlen(text));
}

static void objects_pass(void **state)
{
	static const char *const good[] = {
		"{}",
		" \r\n\t{ }\n",
		"{\"a\":1}",
		"{\"a\":-0.5e+7,\"b\":[true,false,null,[],{}],\"\":\"\"}",
		"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud800\"}",
		"{\"\xc3\xa9\":\"\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"}",
		"{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1},\"c\":[{\"a\":1},{\"a\":1}]}",
		"{\"a\":123456789012345678901234567890.123456789}",
	};

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		if (check(good[i]) < 0)
			fail_msg("%s is refused", good[i]);
}

static void other_texts_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"[]",
		"1",
		"null",
		"\"a\"",
		"{",
		"}",
		"{}}",
		"{}{}",
		"{} x",
		"{a:1}",
		"{'a':1}",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{,}",
		"{\"a\":1 \"b\":2}",
		"{\"a\":[1,]}",
		"{\"a\":[1}",
		"{\"a\":01}",
		"{\"a\":.5}",
		"{\"a\":1.}",
		"{\"a\":1e}",
		"{\"a\":-}",
		"{\"a\":+1}",
		"{\"a\":NaN}",
		"{\"a\":tru}",
		"{\"a\":truee}",
		"{\"a\":\"\n\"}",
		"{\"a\":\"\\x\"}",
		"{\"a\":\"\\u12g4\"}",
		"{\"a\":\"\\u123",
		"{\"a\":\"\\",
		"{\"a\":\"",
		"{\"a\":\"\xc3\"}",
		"{\"a\":\"\x80\"}",
		"{\"a\":\"\xc0\x80\"}",
		"{\"a\":\"\xe0\x80\x80\"}",
		"{\"a\":\"\xed\xa0\x80\"}",
		"{\"a\":\"\xf4\x90\x80\x80\"}",
		"{\"a\":\"\xff\"}",
		"\xef\xbb\xbf{}",
		"{/**/}",
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		if (check(bad[i]) != -EBADMSG)
			fail_msg("%s passes", bad[i]);
	assert_int_equal(state_json_check("{}\0", 3), -EBADMSG);
	assert_int_equal(state_json_check("{\"a\":\"\0\"}", 9), -EBADMSG);
}

/* A reader that takes the first of two and one that takes the last see different files. */
static void a_key_twice_is_refused(void **state)
{
	static const char *const bad[] = {
		"{\"a\":1,\"a\":2}",
		"{\"a\":1,\"b\":2,\"a\":1}",
		"{\"mcpServers\":{},\"mcpS\\u0065rvers\":{}}",
		"{\"\\u006D\":1,\"\\u006d\":1}",
		"{\"\":1,\"\":1}",
		"{\"\xc3\xa9\":1,\"\\u00e9\":1}",
		"{\"\xe2\x82\xac\":1,\"\\u20AC\":1}",
		"{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":1}",
		"{\"\\ud800\":1,\"\\uD800\":1}",
		"{\"\\/\":1,\"/\":1}",
		"{\"\\n\":1,\"\\u000a\":1}",
		"{\"\\\"\":1,\"\\u0022\":1}",
		"{\"\\\\\":1,\"\\u005c\":1}",
		"{\"x\":[1,{\"y\":{\"a\":1,\"\\u0061\":2}}]}",
		"{\"x\":{\"a\":1},\"y\":{},\"z\":1,\"x\":1}",
	};
	static const char *const good[] = {
		"{\"a\":1,\"A\":1,\"ab\":1,\"\":1,\"\\u0000\":1,\"\\u0000\\u0000\":1}",
		"{\"\\ud83d\":1,\"\\ude00\":1,\"\\ud83d\\ude00\":1,\"\\ude00\\ud83d\":1}",
		"{\"\\ud83d\\ud83d\\ude00\":1,\"\\ud83d\\ude00\":1,\"\\ud83dx\":1,\"\\ud83d\\n\":1}",
		"{\"\\u0061\":1,\"\\\\u0061\":1}",
		"{\"\\ud7ff\":1,\"\\ue000\":1,\"\\uffff\":1,\"\\udbff\\udfff\":1}",
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		if (check(bad[i]) != -EBADMSG)
			fail_msg("%s passes", bad[i]);
	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		if (check(good[i]) < 0)
			fail_msg("%s is refused", good[i]);
}

static void depth_is_bounded(void **state)
{
	for (unsigned depth = STATE_JSON_DEPTH_MAX - 1; depth <= STATE_JSON_DEPTH_MAX; depth++) {
		char text[8 + 2 * STATE_JSON_DEPTH_MAX] = "{\"a\":";

		memset(text + 5, '[', depth);
		memset(text + 5 + depth, ']', depth);
		text[5 + 2 * depth] = '}';
		/* The object is a level too. */
		assert_int_equal(check(text), depth < STATE_JSON_DEPTH_MAX ? 0 : -EBADMSG);
	}
}

static void deep_nesting_ends_at_once(void **state)
{
	const size_t size = 16u * 1024 * 1024;
	char *text = malloc(size);

	assert_non_null(text);
	memset(text, '[', size);
	memcpy(text, "{\"a\":", 5);
	assert_int_equal(state_json_check(text, size), -EBADMSG);
	free(text);
}

static void white_space_does_not_count(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "{\"a\":1}", "{ \"a\" :\n1 }", true },
		{ "{\"a\":\" \"}", "{\"a\":\"\"}", false },
		{ "{\"a\":\"\\\" \"}", "{\"a\":\"\\\"\"}", false },
		{ "{\"a\":\"\\\\\" }", "{\"a\":\"\\\\\"}", true },
		{ "[1,2]", "[12]", false },
		{ "{}", "{}", true },
		{ "{\"a\":1}", "{\"a\":1,\"b\":2}", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		assert_int_equal(
			state_json_same(cases[i].a, strlen(cases[i].a), cases[i].b, strlen(cases[i].b)),
			cases[i].same);
		assert_int_equal(
			state_json_same(cases[i].b, strlen(cases[i].b), cases[i].a, strlen(cases[i].a)),
			cases[i].same);
	}
}

static StateVersion version(const char *text)
{
	return (StateVersion){ .text = text, .size = text ? strlen(text) : 0 };
}

static void merged(const char *base, const char *agent, const char *host, const char *wanted,
		   bool wanted_conflict)
{
	const StateVersion b = version(base), a = version(agent), h = version(host);
	_cleanup_free_ char *text = NULL;
	bool conflict = !wanted_conflict;
	size_t size = 0;

	assert_return_code(state_merge(&b, &a, &h, &text, &size, &conflict), 0);
	if (!state_json_same(text, size, wanted, strlen(wanted)))
		fail_msg("%s, %s, %s: %s, not %s", base ?: "-", agent ?: "-", host ?: "-", text, wanted);
	assert_int_equal(conflict, wanted_conflict);
	assert_int_equal(state_json_check(text, size), 0);
}

static void one_side_is_followed(void **state)
{
	merged("{\"a\":1}", "{\"a\":2}", "{\"a\":1}", "{\"a\":2}", false);
	merged("{\"a\":1}", "{\"a\":1}", "{\"a\":2}", "{\"a\":2}", false);
	merged(NULL, NULL, "{\"a\":2}", "{\"a\":2}", false);
	merged(NULL, "{\"a\":2}", NULL, "{\"a\":2}", false);
	merged("{\"a\":1}", "{\"a\":2}", NULL, "{\"a\":2}", false);
	merged("{\"a\":1}", NULL, "{\"a\":1}", "{\"a\":1}", false);
}

static void keys_of_both_sides_are_kept(void **state)
{
	merged("{\"a\":1,\"b\":1}", "{\"a\":2,\"b\":1}", "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":2}", false);
	merged("{}", "{\"a\":1}", "{\"b\":1}", "{\"b\":1,\"a\":1}", false);
	/* A key that one side removed goes, and one that the other did stays gone. */
	merged("{\"a\":1,\"b\":1,\"c\":1}", "{\"b\":1,\"c\":1}", "{\"a\":1,\"c\":1}", "{\"c\":1}", false);
	merged("{\"a\":1,\"b\":1}", "{\"b\":1,\"x\":{}}", "{\"a\":1}", "{\"x\":{}}", false);
	/* Both did the same. */
	merged("{\"a\":1}", "{\"a\":2,\"b\":1}", "{\"a\":2}", "{\"a\":2,\"b\":1}", false);
}

static void objects_are_merged_inside(void **state)
{
	merged("{\"projects\":{\"/a\":{\"n\":1},\"/b\":{\"n\":1}}}",
	       "{\"projects\":{\"/a\":{\"n\":2},\"/b\":{\"n\":1},\"/c\":{}}}",
	       "{\"projects\":{\"/a\":{\"n\":1},\"/b\":{\"n\":3}}}",
	       "{\"projects\":{\"/a\":{\"n\":2},\"/b\":{\"n\":3},\"/c\":{}}}", false);
	merged(NULL, "{\"p\":{\"a\":1}}", "{\"p\":{\"b\":1}}", "{\"p\":{\"b\":1,\"a\":1}}", false);
	merged("{\"p\":1}", "{\"p\":{\"a\":1}}", "{\"p\":{\"b\":1}}", "{\"p\":{\"b\":1,\"a\":1}}", false);
}

static void person_wins(void **state)
{
	merged("{\"a\":1}", "{\"a\":2}", "{\"a\":3}", "{\"a\":3}", true);
	merged(NULL, "{\"a\":2}", "{\"a\":3}", "{\"a\":3}", true);
	merged("{\"a\":1,\"c\":1}", "{\"a\":2,\"c\":1}", "{\"c\":1,\"d\":1}", "{\"c\":1,\"d\":1}", true);
	merged("{\"a\":1,\"c\":1}", "{\"c\":1,\"d\":1}", "{\"a\":2,\"c\":1}", "{\"a\":2,\"c\":1,\"d\":1}",
	       true);
	merged("{\"a\":[1]}", "{\"a\":[1,2]}", "{\"a\":[1,3]}", "{\"a\":[1,3]}", true);
	merged("{\"a\":{}}", "{\"a\":{\"x\":1}}", "{\"a\":2}", "{\"a\":2}", true);
}

/* However a side spells it, it is that key. */
static void keys_are_what_they_mean(void **state)
{
	merged("{\"mcpServers\":1}", "{\"mcpS\\u0065rvers\":2}", "{\"mcpServers\":3}", "{\"mcpServers\":3}",
	       true);
	merged("{\"mcpServers\":1}", "{\"mcpS\\u0065rvers\":2}", "{\"mcpServers\":1,\"x\":1}",
	       "{\"mcpServers\":2,\"x\":1}", false);
	merged("{\"a\":1,\"b\":1}", "{\"\\u0061\":1,\"b\":2}", "{\"b\":1}", "{\"b\":2}", false);
	merged("{\"p\":{\"\xf0\x9f\x98\x80\":1}}", "{\"p\":{\"\\ud83d\\ude00\":2}}",
	       "{\"p\":{\"\xf0\x9f\x98\x80\":3}}", "{\"p\":{\"\xf0\x9f\x98\x80\":3}}", true);
	merged("{\"p\":{}}", "{\"p\":{\"\\u0061\":1,\"c\":1}}", "{\"p\":{\"a\":1,\"b\":1}}",
	       "{\"p\":{\"a\":1,\"b\":1,\"c\":1}}", false);
}

static void strings_are_read(void **state)
{
	static const struct {
		const char *text, *string; /* NULL: it has none */
	} table[] = {
		{ "{\"a\":\"\"}", "" },
		{ "{\"a\" : \"/home/\\u0064emo\" }", "/home/demo" },
		{ "{\"\\u0061\":\"\\/x\\\"\\\\\\n\"}", "/x\"\\\n" },
		{ "{\"a\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80" },
		{ "{\"a\":\"/x\\u0000y\"}", NULL },
		{ "{\"a\":1}", NULL },
		{ "{\"a\":[\"x\"]}", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(table); i++) {
		_cleanup_(state_object_done) StateObject object = { 0 };
		_cleanup_free_ char *string = NULL;
		const StateMember *member;

		assert_int_equal(state_json_check(table[i].text, strlen(table[i].text)), 0);
		assert_int_equal(state_object_read(table[i].text, strlen(table[i].text), &object), 0);
		member = state_object_find(&object, "\"a\"");
		assert_non_null(member);
		assert_int_equal(state_json_string(member, &string), table[i].string ? 0 : -EBADMSG);
		if (table[i].string)
			assert_string_equal(string, table[i].string);
	}
}

static void values_keep_their_bytes(void **state)
{
	const char *value = "12345678901234567890.10";
	_cleanup_free_ char *agent = NULL, *text = NULL;
	const StateVersion b = version("{\"z\":1}"), h = version("{\"z\":2}");
	bool conflict;
	size_t size;

	assert_true(asprintf(&agent, "{\"n\":%s,\"s\":\"\\ud800\",\"z\":1}", value) > 0);
	const StateVersion a = version(agent);
	assert_return_code(state_merge(&b, &a, &h, &text, &size, &conflict), 0);
	assert_non_null(strstr(text, value));
	assert_non_null(strstr(text, "\"\\ud800\""));
	assert_string_equal(text,
			    "{\n  \"z\": 2,\n  \"n\": 12345678901234567890.10,\n  \"s\": \"\\ud800\"\n}");
}

/* Work is by size, whatever the shape: the deadline of the test is the bound. */
static void many_members_are_bounded(void **state)
{
	const size_t n = STATE_JSON_MEMBERS_MAX + 1;
	_cleanup_free_ char *agent = NULL, *text = NULL;
	const StateVersion b = version("{\"z\":1}"), h = version("{\"z\":2}");
	bool conflict;
	size_t size = 0;
	FILE *f = open_memstream(&agent, &size);

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(f, "%s\"%zu\":0", i ? "," : "{", n - i);
	(void)fputc('}', f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(state_json_check(agent, size), 0);
	const StateVersion a = { .text = agent, .size = size };
	assert_int_equal(state_merge(&b, &a, &h, &text, &size, &conflict), -E2BIG);
}

static void depth_of_merging_is_bounded(void **state)
{
	char base[512] = "", agent[512] = "", host[512] = "";

	for (unsigned i = 0; i < 12; i++) {
		strcat(base, "{\"k\":");
		strcat(agent, "{\"k\":");
		strcat(host, "{\"k\":");
	}
	strcat(base, "{}");
	strcat(agent, "{\"a\":1}");
	strcat(host, "{\"b\":1}");
	for (unsigned i = 0; i < 12; i++) {
		strcat(base, "}");
		strcat(agent, "}");
		strcat(host, "}");
	}
	merged(base, agent, host, host, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_pass),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(a_key_twice_is_refused),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(deep_nesting_ends_at_once),
		cmocka_unit_test(white_space_does_not_count),
		cmocka_unit_test(one_side_is_followed),
		cmocka_unit_test(keys_of_both_sides_are_kept),
		cmocka_unit_test(objects_are_merged_inside),
		cmocka_unit_test(person_wins),
		cmocka_unit_test(keys_are_what_they_mean),
		cmocka_unit_test(strings_are_read),
		cmocka_unit_test(values_keep_their_bytes),
		cmocka_unit_test(many_members_are_bounded),
		cmocka_unit_test(depth_of_merging_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
