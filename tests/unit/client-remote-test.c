/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dbus/client-remote.h"

static void machines_become_addresses(void **state)
{
	static const struct {
		const char *host, *address;
	} cases[] = {
		{ "far",
		  "unixexec:path=/usr/bin/ssh,argv1=-xT,argv2=--,argv3=far,argv4=systemd-stdio-bridge" },
		{ "me@far.example.org:2222",
		  "unixexec:path=/usr/bin/ssh,argv1=-xT,argv2=-p,argv3=2222,argv4=--,"
		  "argv5=me%40far.example.org,argv6=systemd-stdio-bridge" },
		{ "u@[fe80::1]", "unixexec:path=/usr/bin/"
				 "ssh,argv1=-xT,argv2=--,argv3=u%40fe80%3a%3a1,argv4=systemd-stdio-bridge" },
		{ "[::1]:22", "unixexec:path=/usr/bin/ssh,argv1=-xT,argv2=-p,argv3=22,argv4=--,argv5=%3a%3a1,"
			      "argv6=systemd-stdio-bridge" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *address = client_remote_address(cases[i].host);

		assert_true(client_remote_is_valid(cases[i].host));
		assert_non_null(address);
		assert_string_equal(address, cases[i].address);
	}
}

static void nothing_else_is_a_machine(void **state)
{
	static const char *const wrong[] = {
		"",          "-oProxyCommand=x",
		"-x@far",    "u@-far",
		"@far",      "u@",
		"far:",      "far:0",
		"far:65536", "far:99999999999",
		"far:22x",   "far:-1",
		"a b",       "a,b",
		"a;b",       "a%20b",
		"a\nb",      "[::1",
		"[]",        "[::1]x",
		"a@b@c",     "far/machine",
		"\xc3\xa9",  "u:p@far",
	};
	char *longest = malloc(300);

	for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
		if (client_remote_is_valid(wrong[i]))
			fail_msg("%s", wrong[i]);
		assert_null(client_remote_address(wrong[i]));
	}
	assert_non_null(longest);
	memset(longest, 'a', 299);
	longest[256] = '\0';
	assert_false(client_remote_is_valid(longest));
	longest[255] = '\0';
	assert_true(client_remote_is_valid(longest));
	free(longest);
}

static void sentences_name_the_machine(void **state)
{
	static const struct {
		const char *name, *message, *expected;
		int error;
	} cases[] = {
		{ NULL, NULL, "no system bus answers over ssh at far; look whether ssh logs in",
		  -ECONNRESET },
		{ NULL, NULL, "no system bus answers over ssh at far", -ENOTCONN },
		{ NULL, NULL, "no system bus answers over ssh at far", -ETIMEDOUT },
		{ SD_BUS_ERROR_NO_REPLY, "gone", "far: the service went away", -ETIMEDOUT },
		{ CS_ERROR_NOT_AUTHORIZED, "ask an administrator", "far: ask an administrator", -EACCES },
		{ SD_BUS_ERROR_FILE_NOT_FOUND, "/usr/bin/ssh: install it", "/usr/bin/ssh: install it",
		  -ENOENT },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		sd_bus_error error = SD_BUS_ERROR_MAKE_CONST(cases[i].name, cases[i].message);
		_cleanup_free_ char *sentence = client_remote_sentence("far", cases[i].error, &error);

		assert_non_null(sentence);
		if (!starts_with(sentence, cases[i].expected))
			fail_msg("%zu: %s", i, sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines_become_addresses),
		cmocka_unit_test(nothing_else_is_a_machine),
		cmocka_unit_test(sentences_name_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
