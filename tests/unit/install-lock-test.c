/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/install-lock.h"

#define DIGEST \
	"sha512-EqrwbRcI7M5y8jQlayIfTMmbZJ2OQaLOc7KwIWKdryQCdKWUEFr+C9rMovZUuj2Asndi7aqLujEzRtr471gncg=="

#define LOCK(packages) "{\"lockfileVersion\":3,\"packages\":{\"\":{}," packages "}}"
#define PACKAGE(place, more) "\"" place "\":{\"version\":\"1.0.0\"" more "}"
#define FULL "\"integrity\":\"" DIGEST "\""

static void good_ones_are_read(void **state)
{
	static const char text[] = LOCK(PACKAGE(
		"node_modules/@a/b",
		"," FULL ",\"resolved\":\"https://r.example/b.tgz\","
		"\"optionalDependencies\":{\"@a/c\":\"1.0.0\",\"n\":1}") "," PACKAGE("node_modules/@a/b/"
										     "node_modules/x",
										     "," FULL));
	_cleanup_(install_lock_freep) InstallLock *lock = NULL;

	assert_int_equal(install_lock_parse(text, strlen(text), &lock, NULL), 0);
	assert_string_equal(install_lock_version(lock, "@a/b"), "1.0.0");
	assert_null(install_lock_version(lock, "x"));
	assert_string_equal(install_lock_optional(lock, "@a/b", "@a/c"), "1.0.0");
	assert_null(install_lock_optional(lock, "@a/b", "n"));
	assert_null(install_lock_optional(lock, "x", "@a/c"));
}

static void bad_ones_are_refused(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "", "JSON" },
		{ "{", "JSON" },
		{ "[]", "form" },
		{ "{\"lockfileVersion\":3}", "form" },
		{ "{\"lockfileVersion\":1,\"packages\":{}}", "form" },
		{ "{\"lockfileVersion\":3,\"packages\":[]}", "form" },
		{ LOCK(PACKAGE("node_modules/a", "")), "SHA-512" },
		{ LOCK(PACKAGE("node_modules/a", ",\"integrity\":\"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\"")),
		  "SHA-512" },
		{ LOCK(PACKAGE("node_modules/a", ",\"integrity\":\"sha512-abc==\"")), "SHA-512" },
		{ LOCK(PACKAGE("node_modules/a", ",\"integrity\":\"sha1-x " DIGEST "\"")), "SHA-512" },
		{ LOCK(PACKAGE("node_modules/a", ",\"integrity\":\"" DIGEST " sha1-x\"")), "SHA-512" },
		{ LOCK(PACKAGE("node_modules/a", ",\"integrity\":7")), "SHA-512" },
		{ LOCK(PACKAGE("node_modules/a", "," FULL ",\"resolved\":\"git+ssh://h/a.git#1\"")), "git" },
		{ LOCK(PACKAGE("node_modules/a", "," FULL ",\"resolved\":\"file:../a.tgz\"")), "file" },
		{ LOCK(PACKAGE("node_modules/a", "," FULL ",\"resolved\":true")), "no text" },
		{ LOCK(PACKAGE("node_modules/a", "," FULL ",\"link\":true")), "another place" },
		{ LOCK(PACKAGE("node_modules/a", "," FULL ",\"inBundle\":true")), "another place" },
		{ LOCK(PACKAGE("../a", "," FULL)), "outside" },
		{ LOCK(PACKAGE("a", "," FULL)), "outside" },
		{ LOCK(PACKAGE("node_modules/../../a", "," FULL)), "outside" },
		{ LOCK(PACKAGE("node_modules/./a", "," FULL)), "outside" },
		{ LOCK(PACKAGE("node_modules//a", "," FULL)), "outside" },
		{ LOCK(PACKAGE("node_modules/", "," FULL)), "outside" },
		{ LOCK("\"node_modules/a\":{" FULL "}"), "version" },
		{ LOCK("\"node_modules/a\":null"), "version" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *problem = NULL;
		InstallLock *lock = NULL;

		assert_int_equal(install_lock_parse(cases[i].text, strlen(cases[i].text), &lock, &problem),
				 -EBADMSG);
		assert_null(lock);
		if (!strstr(problem, cases[i].word))
			fail_msg("%s: %s", cases[i].text, problem);
	}
}

static void sizes_are_bounded(void **state)
{
	_cleanup_free_ char *problem = NULL, *text = NULL;
	InstallLock *lock = NULL;
	size_t size = 0;
	FILE *stream;

	assert_int_equal(install_lock_parse("{}", INSTALL_LOCK_BYTES_MAX + 1u, &lock, &problem), -EBADMSG);
	stream = open_memstream(&text, &size);
	assert_non_null(stream);
	fputs("{\"lockfileVersion\":3,\"packages\":{", stream);
	for (unsigned i = 0; i <= INSTALL_LOCK_PACKAGES_MAX; i++)
		fprintf(stream, "%s\"node_modules/%u\":{\"version\":\"1\"," FULL "}", i ? "," : "", i);
	fputs("}}", stream);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(install_lock_parse(text, size, &lock, &problem), -EBADMSG);
	assert_non_null(strstr(problem, "more than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_ones_are_read),
		cmocka_unit_test(bad_ones_are_refused),
		cmocka_unit_test(sizes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
