/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "service/session/socket-fold.h"
#include "service/plan/name-services.h"
#include "service/session/sockets.h"

#define HEAD "Num       RefCount Protocol Flags    Type St Inode Path\n"
#define LISTENING(path) "0000000000000000: 00000002 00000000 00010000 0001 01 12345 " path "\n"
#define CONNECTED(path) "0000000000000000: 00000003 00000000 00000000 0001 03 12346 " path "\n"
#define DATAGRAM(path) "0000000000000000: 00000003 00000000 00000000 0002 01 12347 " path "\n"

static const SocketPlaces places = {
	.private_directories = (const char *const[]){ "/run", "/tmp", "/home/someone", NULL },
	.shown_directories = (const char *const[]){ "/home/someone/.cache", "/tmp/project", "/srv", NULL },
};

static char **parse(const char *text, int expected)
{
	_cleanup_fclose_ FILE *f = fmemopen((void *)text, strlen(text), "r");
	char **paths = NULL;

	assert_non_null(f);
	assert_int_equal(sockets_parse(f, &places, &paths), expected);
	return paths;
}

static void check(const char *text, const char *const *expected)
{
	_cleanup_(strings_freep) char **paths = parse(text, 0);

	for (size_t i = 0; expected[i]; i++) {
		assert_true(i < strings_count(paths));
		assert_string_equal(paths[i], expected[i]);
	}
	assert_int_equal(strings_count(paths), strings_count((char *const *)expected));
}

static void listening_and_datagram_sockets_are_found(void **state)
{
	check(HEAD LISTENING("/var/lib/b/socket") CONNECTED("/var/lib/c/socket") DATAGRAM("/var/lib/a/log"),
	      (const char *const[]){ "/var/lib/a/log", "/var/lib/b/socket", NULL });
}

static void each_is_named_once(void **state)
{
	check(HEAD LISTENING("/srv/s") LISTENING("/srv/s") DATAGRAM("/srv/s"),
	      (const char *const[]){ "/srv/s", NULL });
}

static void spaces_belong_to_the_path(void **state)
{
	check(HEAD LISTENING("/srv/with a space "), (const char *const[]){ "/srv/with a space ", NULL });
}

static void private_places_are_left_out_by_whole_names(void **state)
{
	check(HEAD LISTENING("/run/dbus/system_bus_socket") LISTENING("/running/s") LISTENING("/tmp/x")
		      LISTENING("/home/someone/s") LISTENING("/home/someone-else/s"),
	      (const char *const[]){ "/home/someone-else/s", "/running/s", NULL });
}

static void what_is_shown_of_a_private_place_is_found(void **state)
{
	check(HEAD LISTENING("/home/someone/.cache/tool/s") LISTENING("/home/someone/.cached/s")
		      LISTENING("/home/someone/.ssh/agent") LISTENING("/tmp/project/s") LISTENING("/tmp/s"),
	      (const char *const[]){ "/home/someone/.cache/tool/s", "/tmp/project/s", NULL });
}

static void name_services_are_left_alone(void **state)
{
	check(HEAD LISTENING("/var/lib/sss/pipes/nss") LISTENING("/var/lib/sss/pipes2/nss")
		      LISTENING("/var/lib/sss/pipes/pam") LISTENING("/var/lib/sss/pipes/nss/x"),
	      (const char *const[]){ "/var/lib/sss/pipes/nss/x", "/var/lib/sss/pipes/pam",
				     "/var/lib/sss/pipes2/nss", NULL });
	/* Of nscd's root's agents have none: root stops it there. */
	assert_true(name_service_is("/run/nscd/socket", 1000) &&
		    name_service_is("/var/run/nscd/socket", 1000));
	assert_false(name_service_is("/run/nscd/socket", 0));
	assert_true(name_service_is("/var/lib/sss/pipes/nss", 0));
}

static void what_is_no_path_is_passed_over(void **state)
{
	check(HEAD LISTENING("@abstract") LISTENING("relative/s") LISTENING("/srv/../etc/s")
		      LISTENING("") "garbage\n\n" LISTENING("/srv/s"),
	      (const char *const[]){ "/srv/s", NULL });
}

static void too_many_are_refused(void **state)
{
	_cleanup_fclose_ FILE *out = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	out = open_memstream(&text, &size);
	assert_non_null(out);
	for (unsigned i = 0; i <= SOCKETS_LISTED_MAX; i++)
		(void)fprintf(out, LISTENING("/srv/%u"), i);
	fclosep(&out);
	assert_null(parse(text, -E2BIG));
}

static void directories_stand_for_crowds(void **state)
{
	_cleanup_(strings_freep) char **paths = NULL, **warnings = NULL;
	_cleanup_free_ char *deep = NULL;
	char directory[] = "/tmp/sockets-XXXXXX";
	const char *shown[] = { directory, NULL }, *none[] = { NULL };
	const SocketPlaces here = { .private_directories = none, .shown_directories = shown };

	assert_non_null(mkdtemp(directory));
	assert_true(asprintf(&deep, "%s/deep", directory) > 0);
	assert_int_equal(mkdir(deep, 0700), 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(strings_appendf(&paths, "%s/%u", deep, i), 0);
		assert_int_equal(strings_appendf(&paths, "%s/%u", directory, i), 0);
	}
	assert_int_equal(socket_fold(paths, 6, &here, &warnings), 0);
	assert_int_equal(strings_count(paths), 6);
	assert_string_equal(paths[0], deep);
	assert_int_equal(strings_count(warnings), 1);
	/* The shown directory itself never. */
	assert_int_equal(socket_fold(paths, 5, &here, &warnings), -E2BIG);
	assert_memory_equal(paths[0], directory, strlen(directory));
	assert_int_equal(strings_count(paths), 6);
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listening_and_datagram_sockets_are_found),
		cmocka_unit_test(each_is_named_once),
		cmocka_unit_test(spaces_belong_to_the_path),
		cmocka_unit_test(private_places_are_left_out_by_whole_names),
		cmocka_unit_test(what_is_shown_of_a_private_place_is_found),
		cmocka_unit_test(name_services_are_left_alone),
		cmocka_unit_test(what_is_no_path_is_passed_over),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(directories_stand_for_crowds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
