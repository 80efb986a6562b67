/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dbus/names.h"
#include "tests/unit/sandbox-run.h"

#define ID "abcdefgh234567zz"

static unsigned n_rows;
static bool verdict_passed, agents_missing;
static const char *bad_row, *note_row;

static int append_row(sd_bus_message *reply, const char *number)
{
	bool bad = bad_row && streq(bad_row, number), note = note_row && streq(note_row, number);

	return sd_bus_message_append(reply, "(sssss)", number,
				     bad    ? "fail"
				     : note ? "note"
					    : "pass",
				     *number == 'p' ? "a way\033[1m" : "a check",
				     bad ? "it is \\x1b open" : "as it should be", bad ? "close it" : "");
}

static int append_verdict(sd_bus_message *reply)
{
	char number[8];
	int r;

	r = sd_bus_message_append(reply, "b", verdict_passed);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(sssss)");
	for (unsigned i = 1; r >= 0 && i <= n_rows; i++) {
		(void)snprintf(number, sizeof(number), i <= 22 ? "%02u" : "p%02u", i <= 22 ? i : i - 22);
		r = append_row(reply, number);
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* What was asked, held against what the interface says. */
static int read_question(sd_bus_message *call, const char **ret_agent)
{
	bool manager = sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_VERIFY);

	*ret_agent = NULL;
	if (!manager)
		return sd_bus_message_is_method_call(call, CS_SESSION_INTERFACE, CS_MEMBER_VERIFY) &&
				       streq(sd_bus_message_get_path(call), CS_SESSION_ROOT "/" ID) &&
				       sd_bus_message_has_signature(call, "a{sv}")
			       ? 0
			       : -EBADMSG;
	if (!sd_bus_message_has_signature(call, "saayaya{sv}") ||
	    sd_bus_message_read(call, "s", ret_agent) < 0)
		return -EBADMSG;
	return 0;
}

static int answer(sd_bus_message *call, sd_bus_message *reply)
{
	const char *agent;
	int r = read_question(call, &agent);

	if (r < 0)
		return r;
	return append_verdict(reply);
}

static void prepare(unsigned rows, bool passed, const char *bad, const char *note)
{
	n_rows = rows;
	verdict_passed = passed;
	bad_row = bad;
	note_row = note;
	run_directory = "/srv/project";
}

static const char checks[] =
	"01   pass  a check\n02   pass  a check\n03   pass  a check\n04   pass  a check\n"
	"05   pass  a check\n06   pass  a check\n07   pass  a check\n08   pass  a check\n"
	"09   pass  a check\n10   pass  a check\n11   pass  a check\n12   pass  a check\n"
	"13   pass  a check\n14   pass  a check\n15   pass  a check\n16   pass  a check\n"
	"17   pass  a check\n18   pass  a check\n19   pass  a check\n20   pass  a check\n"
	"21   pass  a check\n22   pass  a check\n";

static void lines_and_a_sum(void **state)
{
	_cleanup_free_ char *wanted = NULL;

	prepare(22, true, NULL, NULL);
	assert_true(asprintf(&wanted, "%s\n22 of 22 passed\n", checks) > 0);
	expect_answer(answer, "claude-sandbox verify", 0, wanted, "");
	expect_answer(answer, "claude-sandbox verify claude", 0, wanted, "");
	expect_answer(answer, "claude-sandbox verify " ID, 0, wanted, "");
}

static void what_failed_is_explained(void **state)
{
	prepare(2, false, "02", NULL);
	expect_answer(
		answer, "claude-sandbox verify shell", 1,
		"01   pass  a check\n02   fail  a check\n            it is \\x1b open\n            close it\n"
		"\nFailed:\n02   fail  a check\n            it is \\x1b open\n            close it\n"
		"\n1 of 22 passed\n",
		"");
	prepare(2, false, NULL, "02");
	expect_answer(answer, "claude-sandbox verify shell", 1,
		      "01   pass  a check\n02   note  a check\n            as it should be\n"
		      "\n2 of 22 passed\n",
		      "");
}

static void probes_have_a_sum_of_their_own(void **state)
{
	_cleanup_free_ char *wanted = NULL;

	prepare(25, false, "p02", "p03");
	assert_true(asprintf(&wanted,
			     "%sp01  pass  a way\\x1b[1m\np02  fail  a way\\x1b[1m\n"
			     "            it is \\x1b open\n            close it\np03  note  a way\\x1b[1m\n"
			     "            as it should be\n\nFailed:\np02  fail  a way\\x1b[1m\n"
			     "            it is \\x1b open\n            close it\n"
			     "\n22 of 22 passed, 1 of 3 probes blocked, 1 "
			     "inconclusive\n",
			     checks) > 0);
	expect_answer(answer, "claude-sandbox verify --probes shell", 1, wanted, "");
}

static void one_object_for_programs(void **state)
{
	prepare(1, true, NULL, NULL);
	expect_answer(
		answer, "claude-sandbox verify --json shell", 0,
		"{\n  \"passed\": true,\n  \"agent\": \"shell\",\n  \"session\": null,\n  \"rows\": [\n    "
		"{\n"
		"      \"number\": \"01\",\n      \"status\": \"pass\",\n      \"title\": \"a check\",\n"
		"      \"detail\": \"as it should be\",\n      \"fix\": \"\"\n    }\n  ]\n}\n",
		"");
	prepare(0, false, NULL, NULL);
	expect_answer(answer, "claude-sandbox verify --json " ID, 1,
		      "{\n  \"passed\": false,\n  \"agent\": null,\n  \"session\": \"" ID
		      "\",\n  \"rows\": [\n  ]\n}\n",
		      "");
}

/* Without a name, whatever is installed; the last of the four is always there. */
static int answer_shell(sd_bus_message *call, sd_bus_message *reply)
{
	const char *agent;

	if (read_question(call, &agent) < 0 || !agent)
		return -EBADMSG;
	if (agents_missing && !streq(agent, "shell"))
		return sd_bus_reply_method_errorf(call, CS_ERROR_AGENT_MISSING,
						  "%s is not installed; install it", agent);
	return append_verdict(reply);
}

static void the_first_that_is_installed(void **state)
{
	prepare(0, true, NULL, NULL);
	agents_missing = true;
	expect_answer(answer_shell, "claude-sandbox verify --json", 0,
		      "{\n  \"passed\": true,\n  \"agent\": \"shell\",\n  \"session\": null,\n  \"rows\": "
		      "[\n  ]\n}\n",
		      "");
	expect_answer(answer_shell, "claude-sandbox verify pi", 125, "",
		      "claude-sandbox: pi is not installed; install it\n");
	agents_missing = false;
}

static void refusals_are_complained_of(void **state)
{
	run_directory = "/srv/project";
	expect_refusal(CS_ERROR_UNSAFE_WORKSPACE, "no; yes", "claude-sandbox verify shell", 125,
		       "claude-sandbox: no; yes\n");
	expect_refusal(SD_BUS_ERROR_UNKNOWN_OBJECT, "Unknown object", "claude-sandbox verify " ID, 1,
		       "claude-sandbox: There is no session '" ID
		       "' that you may see; 'claude-sandbox sessions' lists them.\n");
	expect(NULL, "claude-sandbox verify No!", 2, "",
	       "claude-sandbox: 'No!' is no agent and no session's id; agents are claude, codex, pi and "
	       "shell, and "
	       "'claude-sandbox sessions' lists sessions\n");
	expect(NULL, "claude-sandbox verify -H elsewhere shell", 2, "",
	       "claude-sandbox: a new jail is made on the machine where it is asked for; name a session of "
	       "elsewhere by "
	       "its id, or log in there\n");
	run_directory = NULL;
	expect(NULL, "claude-sandbox verify shell", 125, "",
	       "claude-sandbox: the current directory cannot be told; change to one that exists\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_a_sum),
		cmocka_unit_test(what_failed_is_explained),
		cmocka_unit_test(probes_have_a_sum_of_their_own),
		cmocka_unit_test(one_object_for_programs),
		cmocka_unit_test(the_first_that_is_installed),
		cmocka_unit_test(refusals_are_complained_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
