/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "service/link/pack.h"
#include "service/session/pasta.h"

static const PastaOptions usual = {
	.path = "/usr/bin/pasta", .uid = 1000, .gid = 100, .holder = 4242, .forwarder = 0xc0000235u
};

/* The arguments, each between spaces. */
static char *line_of(const PastaOptions *options)
{
	char **arguments = pasta_arguments(options);
	char *line = strdup(" ");

	assert_non_null(arguments);
	for (size_t i = 0; arguments[i]; i++) {
		char *longer;

		assert_true(asprintf(&longer, "%s%s ", line, arguments[i]) > 0);
		free(line);
		line = longer;
	}
	strings_free(arguments);
	return line;
}

static void has(const PastaOptions *options, const char *words, bool wanted)
{
	_cleanup_free_ char *line = line_of(options);

	if (!strstr(line, words) == wanted)
		fail_msg("%s%s in:%s", words, wanted ? "is missing" : "stands", line);
}

static void namespaces_are_told_in_one_way(void **state)
{
	PastaOptions options = usual;

	has(&options, " --userns /proc/self/fd/0 --netns /proc/self/fd/1 --no-netns-quit ", true);
	has(&options, " 4242 ", false);
	options.way = PASTA_BY_PROCESS;
	has(&options, " 4242 ", true);
	has(&options, "netns", false);
	has(&options, "/proc", false);
}

static void the_hosts_loopback_stays_out_of_reach(void **state)
{
	PastaOptions options = usual;

	for (int way = PASTA_BY_DESCRIPTORS; way <= PASTA_BY_PROCESS; way++) {
		options.way = (PastaWay)way;
		has(&options, " -t none -u none -T none -U none --no-map-gw ", true);
		has(&options, " --config-net ", false);
	}
}

/* --dns means another thing in newer versions, and nothing here in older ones. */
static void the_server_is_told_where_that_is_possible(void **state)
{
	PastaOptions options = usual;

	options.server = 0x7f000035u;
	has(&options, " --dns-forward 192.0.2.53 ", true);
	has(&options, "127.0.0.53", false);
	options.knows_dns_host = true;
	has(&options, " --dns-forward 192.0.2.53 --dns-host 127.0.0.53 ", true);
	has(&options, " --dns ", false);
	options.server = 0;
	has(&options, "--dns-host", false);
	options.server = 0x7f000035u;
	options.forwarder = 0;
	has(&options, "--dns-", false);
}

static void root_stays_root(void **state)
{
	PastaOptions options = usual;

	has(&options, "--runas", false);
	options.uid = options.gid = 0;
	has(&options, " --runas 0:0 ", true);
}

static bool knows(const char *content, size_t size)
{
	char path[] = "/tmp/pasta-test.XXXXXX";
	int fd = mkstemp(path);
	bool found;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, size), (ssize_t)size);
	found = pasta_knows_dns_host(path);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	return found;
}

/* A name in the table of options ends with a NUL; a text about it does not. */
static void the_table_of_options_tells_what_it_knows(void **state)
{
	static const char options[] = "\177ELF dns-forward\0dns-host\0dhcp-dns";
	static const char words[] = "\177ELF dns-forward\0--dns-host ADDR\n";

	assert_true(knows(options, sizeof(options)));
	assert_false(knows(words, sizeof(words)));
	assert_false(knows("", 0));
	assert_false(pasta_knows_dns_host("/nonexistent"));
	assert_false(pasta_knows_dns_host("/tmp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(namespaces_are_told_in_one_way),
		cmocka_unit_test(the_hosts_loopback_stays_out_of_reach),
		cmocka_unit_test(the_server_is_told_where_that_is_possible),
		cmocka_unit_test(root_stays_root),
		cmocka_unit_test(the_table_of_options_tells_what_it_knows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
