/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "dbus/client.h"
#include "shim/sandbox.h"
#include "tests/unit/sandbox-run.h"

static SandboxCall parse(const char *line)
{
	/* The call borrows from the words: kept until the next. */
	static char words[256];
	static char *argv[STRINGS_MAX];
	SandboxCall call = { 0 };
	char *problem = NULL;

	snprintf(words, sizeof(words), "%s", line);
	if (sandbox_parse((int)split(words, argv), argv, &call, &problem) < 0)
		fail_msg("%s: %s", line, problem);
	return call;
}

static void options_stand_anywhere(void **state)
{
	SandboxCall call;

	call = parse("claude-sandbox --json sessions");
	assert_true(call.json);
	assert_string_equal(call.verb->name, "sessions");
	call = parse("claude-sandbox stop --json abc");
	assert_true(call.json);
	assert_string_equal(call.argument, "abc");
	call = parse("claude-sandbox stop abc --json");
	assert_true(call.json);
	call = parse("claude-sandbox stop -- --json");
	assert_false(call.json);
	assert_string_equal(call.argument, "--json");
	call = parse("claude-sandbox stop --help");
	assert_true(call.help);
	assert_string_equal(call.verb->name, "stop");
	call = parse("claude-sandbox -h");
	assert_true(call.help);
	assert_null(call.verb);
}

#define VERBS(sentence)                                                                                    \
	sentence "the verbs are: shell, doctor, verify, sessions, show, exposure, routes, ports, denied, " \
		 "why, stop, "                                                                             \
		 "allow-ip, "                                                                              \
		 "policy, install, gh-auth, glab-auth, log, version, help"

static void mistakes_are_usage(void **state)
{
	static const struct {
		const char *line, *err;
	} cases[] = {
		{ "claude-sandbox", VERBS("a verb is missing; ") },
		{ "claude-sandbox quux", VERBS("there is no verb 'quux'; ") },
		{ "claude-sandbox sesions", "there is no verb 'sesions'; did you mean 'sessions'?" },
		{ "claude-sandbox help sto", "there is no verb 'sto'; did you mean 'stop'?" },
		{ "claude-sandbox --jsn sessions", "there is no option '--jsn'; did you mean '--json'?" },
		{ "claude-sandbox why --sesion a /",
		  "there is no option '--sesion'; did you mean '--session'?" },
		{ "claude-sandbox sessions --session a",
		  "there is no option '--session'; see 'claude-sandbox --help'" },
		{ "claude-sandbox -H", "'-H' needs a machine; write [USER@]HOST[:PORT] behind it" },
		{ "claude-sandbox sessions --host=",
		  "'--host' needs a machine; write [USER@]HOST[:PORT] behind it" },
		{ "claude-sandbox -H -oProxyCommand=x sessions",
		  "'-oProxyCommand=x' is not [USER@]HOST[:PORT]; write it as for ssh, without options" },
		{ "claude-sandbox -H far shell", "'shell' takes no -H: a jail is made on the machine where "
						 "it is asked for; log in there and "
						 "run it" },
		{ "claude-sandbox install --list -Hfar", "'install' takes no -H: agents are installed on the "
							 "machine where it runs; log in there and "
							 "run it" },
		{ "claude-sandbox -H far why /etc",
		  "the links of a path on far cannot be followed from here; run 'claude-sandbox why' there" },
		{ "claude-sandbox sessions --version",
		  "there is no option '--version'; see 'claude-sandbox --help'" },
		{ "claude-sandbox stop", "the verb 'stop' needs ID; usage: claude-sandbox stop [--json] ID" },
		{ "claude-sandbox stop a b",
		  "'b' is one argument too many; usage: claude-sandbox stop [--json] ID" },
		{ "claude-sandbox sessions x",
		  "'x' is one argument too many; usage: claude-sandbox sessions [--json] [--all]" },
		{ "claude-sandbox --json shell", "'shell' has no --json; leave it out" },
		{ "claude-sandbox stop ../x",
		  "'../x' is no session's id; 'claude-sandbox sessions' lists them" },
		{ "claude-sandbox stop \033[2J",
		  "'\\x1b[2J' is no session's id; 'claude-sandbox sessions' lists them" },
		{ "claude-sandbox allow-ip open",
		  "'allow-ip' has no 'open'; it has: list, add, remove, edit" },
		{ "claude-sandbox allow-ip add",
		  "'allow-ip add' needs ADDRESS; usage: claude-sandbox allow-ip [--json] [list] | add "
		  "[--session ID [--for TIME]] ADDRESS [COMMENT...] | remove [--session ID] ADDRESS | edit" },
		{ "claude-sandbox allow-ip remove 10.1.2.3 x y", "'allow-ip remove' takes no 'x y'" },
		{ "claude-sandbox allow-ip list 10.1.2.3", "'allow-ip list' takes no '10.1.2.3'" },
		{ "claude-sandbox allow-ip remove 10.1.2.3 x", "'allow-ip remove' takes no 'x'" },
		{ "claude-sandbox allow-ip remove 10.1.2.3 --for 1h", "'allow-ip remove' takes no '1h'" },
		{ "claude-sandbox allow-ip add 10.1.2.3 --for 1h",
		  "--for is about one session; name it with --session, or leave --for out" },
		{ "claude-sandbox allow-ip add 10.1.2.3 x --session a",
		  "an address of one session has no comment; leave 'x' out" },
		{ "claude-sandbox allow-ip add 10.1.2.3 --session a --for 1w",
		  "'1w' is no time; write a number with s, m, h or d behind it, such as 1h" },
		{ "claude-sandbox allow-ip add 10.1.2.3 --session a --for 0",
		  "'0' is no time; write a number with s, m, h or d behind it, such as 1h" },
		{ "claude-sandbox --list install",
		  "there is no option '--list'; see 'claude-sandbox --help'" },
		{ "claude-sandbox stop --list x",
		  "there is no option '--list'; see 'claude-sandbox --help'" },
		{ "claude-sandbox install --list --remove", "--list and --remove exclude each other" },
		{ "claude-sandbox install --list claude", "'install --list' takes no 'claude'" },
		{ "claude-sandbox install vim",
		  "'vim' cannot be installed; the agents are: claude, codex, pi" },
		{ "claude-sandbox install claude ../x",
		  "'../x' is no version: digits, letters, dots and hyphens, as 1.2.3 or latest" },
		{ "claude-sandbox install --remove claude 1", "'install --remove' takes no version" },
		{ "claude-sandbox install claude 1 2",
		  "'2' is one argument too many; usage: claude-sandbox install [--json] AGENT [VERSION] | "
		  "--list | --remove AGENT" },
		{ "claude-sandbox help x", VERBS("there is no verb 'x'; ") },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *err = NULL;

		assert_true(asprintf(&err, "claude-sandbox: %s\n", cases[i].err) > 0);
		expect(NULL, cases[i].line, CS_EXIT_USAGE, "", err);
	}
}

static void help_is_output(void **state)
{
	expect(NULL, "claude-sandbox help policy", 0,
	       "Usage: claude-sandbox policy [--json]\n\n"
	       "To show every setting, its value and where it comes from.\n"
	       "Exits with 1 when the configuration has an error: no session starts until it is mended.\n",
	       "");
	expect(NULL, "claude-sandbox --version", 0, "claude-sandbox " CS_VERSION "\n", "");
	for (size_t i = 0; sandbox_verb_at(i); i++) {
		_cleanup_free_ char *line = NULL;
		Run result, whole = run("claude-sandbox --help");

		assert_true(asprintf(&line, "claude-sandbox %s --help", sandbox_verb_at(i)->name) > 0);
		result = run(line);
		assert_int_equal(result.status, 0);
		assert_non_null(strstr(result.out, sandbox_verb_at(i)->summary));
		assert_non_null(strstr(whole.out, sandbox_verb_at(i)->summary));
		assert_string_equal(result.err, "");
		free(result.out);
		free(result.err);
		free(whole.out);
		free(whole.err);
	}
}

static void shell_hands_everything_on(void **state)
{
	static const struct {
		const char *line, *expected;
	} cases[] = {
		{ "claude-sandbox shell", "shell" },
		{ "claude-sandbox shell -c true --json -h", "shell|-c|true|--json|-h" },
		{ "claude-sandbox shell -- --help", "shell|--help" },
		{ "claude-sandbox -- shell -x -- y", "shell|-x|--|y" },
	};
	Run help;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		handed_over[0] = '\0';
		/* handoff_complain() writes to the descriptor, not to the context. */
		expect(NULL, cases[i].line, CS_EXIT_REFUSED, "", "");
		assert_string_equal(handed_over, cases[i].expected);
	}
	handed_over[0] = '\0';
	help = run("claude-sandbox shell --help");
	free(help.out);
	free(help.err);
	assert_string_equal(handed_over, "");
}

static void without_a_bus_nothing_can_run(void **state)
{
	static const char *const lines[] = {
		"sessions", "policy",         "allow-ip", "allow-ip list", "stop aaaaaaaaaaaaaaaa",
		"stop a",   "--json sessions"
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		_cleanup_free_ char *line = NULL;

		assert_true(asprintf(&line, "claude-sandbox %s", lines[i]) > 0);
		expect(NULL, line, CS_EXIT_REFUSED, "",
		       "claude-sandbox: no system bus answers at /run/dbus/system_bus_socket; start it "
		       "('sudo ./quickstart' does)\n");
	}
}

static int is_first(const char *path)
{
	return path && streq(strrchr(path, '/'), "/x");
}

static int answer_sessions(sd_bus_message *call, sd_bus_message *reply)
{
	static const char *const ids[] = { "aaaaaaaaaaaaaaaa", "aabbbbbbbbbbbbbb" };
	static const char *const workspaces[] = { "/src/\xff", "/home/ann/\033[2J" };
	const char *id;
	int r;

	if (sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION))
		return sd_bus_message_read(call, "s", &id) >= 0 && streq(id, ids[1]) ? 0 : -EINVAL;
	if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Get"))
		return sd_bus_message_append(reply, "v", "b", is_first(sd_bus_message_get_path(call)));
	sd_bus_message_open_container(reply, 'a', "(sossuayts)");
	for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
		sd_bus_message_open_container(reply, 'r', "sossuayts");
		sd_bus_message_append(reply, "sossu", ids[i],
				      i == 0 ? CS_SESSION_ROOT "/x" : CS_SESSION_ROOT "/y", "claude", "ann",
				      1000u);
		sd_bus_message_append_array(reply, 'y', workspaces[i], strlen(workspaces[i]));
		r = sd_bus_message_append(reply, "ts", UINT64_C(1700000000000000), "running");
		if (r < 0)
			return r;
		sd_bus_message_close_container(reply);
	}
	return sd_bus_message_close_container(reply);
}

static void sessions_have_two_forms(void **state)
{
	expect_answer(answer_sessions, "claude-sandbox sessions", 0,
		      "ID                AGENT   USER  STATE    AGE     NETWORK  WORKSPACE\n"
		      "aaaaaaaaaaaaaaaa  claude  ann   running  3h 00m  jailed   /src/\\xff\n"
		      "aabbbbbbbbbbbbbb  claude  ann   running  3h 00m  shared   /home/ann/\\x1b[2J\n",
		      "");
	expect_answer(answer_sessions, "claude-sandbox sessions --json", 0,
		      "[\n"
		      "  {\n"
		      "    \"id\": \"aaaaaaaaaaaaaaaa\",\n"
		      "    \"agent\": \"claude\",\n"
		      "    \"user\": \"ann\",\n"
		      "    \"uid\": 1000,\n"
		      "    \"state\": \"running\",\n"
		      "    \"started_usec\": 1700000000000000,\n"
		      "    \"jailed\": true,\n"
		      "    \"workspace\": \"/src/\\\\xff\",\n"
		      "    \"path\": \"/org/claudesandbox1/session/x\"\n"
		      "  },\n"
		      "  {\n"
		      "    \"id\": \"aabbbbbbbbbbbbbb\",\n"
		      "    \"agent\": \"claude\",\n"
		      "    \"user\": \"ann\",\n"
		      "    \"uid\": 1000,\n"
		      "    \"state\": \"running\",\n"
		      "    \"started_usec\": 1700000000000000,\n"
		      "    \"jailed\": false,\n"
		      "    \"workspace\": \"/home/ann/\\u001b[2J\",\n"
		      "    \"path\": \"/org/claudesandbox1/session/y\"\n"
		      "  }\n"
		      "]\n",
		      "");
}

static int answer_nothing(sd_bus_message *call, sd_bus_message *reply)
{
	if (sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_LIST_SESSIONS))
		return sd_bus_message_append(reply, "a(sossuayts)", 0);
	return sd_bus_message_append(reply, "a(sss)", 0);
}

static void nothing_is_a_sentence_or_an_empty_list(void **state)
{
	expect_answer(answer_nothing, "claude-sandbox sessions", 0, "no sessions\n", "");
	expect_answer(answer_nothing, "claude-sandbox sessions --json", 0, "[]\n", "");
	expect_answer(answer_nothing, "claude-sandbox allow-ip", 0, "no internal address is allowed\n", "");
	expect_answer(answer_nothing, "claude-sandbox allow-ip list --json", 0, "[]\n", "");
}

static void stop_takes_a_beginning(void **state)
{
	expect_answer(answer_sessions, "claude-sandbox stop aab", 0, "stopped aabbbbbbbbbbbbbb\n", "");
	expect_answer(answer_sessions, "claude-sandbox stop aab --json", 0,
		      "{\n  \"id\": \"aabbbbbbbbbbbbbb\"\n}\n", "");
	expect_answer(
		answer_sessions, "claude-sandbox stop a", CS_EXIT_FOUND, "",
		"claude-sandbox: more than one session that you may see begins with 'a'; 'claude-sandbox "
		"sessions' lists them\n");
	expect_answer(
		answer_sessions, "claude-sandbox stop z", CS_EXIT_FOUND, "",
		"claude-sandbox: no session that you may see begins with 'z'; 'claude-sandbox sessions' "
		"lists "
		"them\n");
	/* A whole id that is not in the list is the service's to judge: here it answers EINVAL. */
	expect_answer(answer_sessions, "claude-sandbox stop cccccccccccccccc", CS_EXIT_REFUSED, "",
		      "claude-sandbox: Invalid argument\n");
}

static void errors_of_the_service_are_shown(void **state)
{
	static const char *const lines[] = { "claude-sandbox stop aaaaaaaaaaaaaaaa",
					     "claude-sandbox sessions --json" };

	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		expect_refusal(CS_ERROR_NOT_AUTHORIZED, "not yours\033[2J; ask an administrator", lines[i],
			       CS_EXIT_REFUSED, "claude-sandbox: not yours\\x1b[2J; ask an administrator\n");
	expect_refusal(CS_ERROR_NO_SUCH_SESSION, "no such session; list them", lines[0], CS_EXIT_FOUND,
		       "claude-sandbox: no such session; list them\n");
}

static int answer_policy(sd_bus_message *call, sd_bus_message *reply)
{
	if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Get"))
		return sd_bus_message_append(reply, "v", "s", "");
	return sd_bus_message_append(reply, "a(sss)", 2, "egress-jail", "1", "default", "allow-ip",
				     "10.1.2.3", "/etc/claude-sandbox.conf:4");
}

static int answer_bad_configuration(sd_bus_message *call, sd_bus_message *reply)
{
	const char *interface, *property;

	if (sd_bus_message_read(call, "ss", &interface, &property) < 0)
		return -EINVAL;
	return sd_bus_message_append(reply, "v", "s",
				     streq(property, "Version") ? "0.0.1" : "line 3: no; mend it");
}

static void policy_is_shown_or_its_error(void **state)
{
	expect_answer(answer_policy, "claude-sandbox policy", 0,
		      "SETTING      VALUE     ORIGIN\n"
		      "egress-jail  1         default\n"
		      "allow-ip     10.1.2.3  /etc/claude-sandbox.conf:4\n",
		      "");
	expect_answer(answer_bad_configuration, "claude-sandbox policy", CS_EXIT_FOUND, "",
		      "claude-sandbox: line 3: no; mend it\n");
}

static int answer_version(sd_bus_message *call, sd_bus_message *reply)
{
	return sd_bus_message_append(reply, "v", "s", CS_VERSION);
}

static void versions_are_compared(void **state)
{
	expect_answer(answer_version, "claude-sandbox version", 0,
		      "claude-sandbox " CS_VERSION "\nservice " CS_VERSION "\n", "");
	expect_answer(answer_bad_configuration, "claude-sandbox version", CS_EXIT_FOUND,
		      "claude-sandbox " CS_VERSION "\nservice 0.0.1\n",
		      "claude-sandbox: the service has another version than this command; restart "
		      "claude-sandboxd\n");
	expect(NULL, "claude-sandbox version --json", CS_EXIT_FOUND,
	       "{\n  \"command\": \"" CS_VERSION "\",\n  \"service\": null\n}\n",
	       "claude-sandbox: no system bus answers at /run/dbus/system_bus_socket; start it ('sudo "
	       "./quickstart' does)\n");
}

static void output_that_cannot_be_written_is_a_failure(void **state)
{
	SandboxContext context = { .out = fopen("/dev/full", "w"), .open_bus = open_peer };
	char *argv[] = { (char *)"claude-sandbox", (char *)"--help", NULL };
	char *err = NULL;
	size_t size;

	context.err = open_memstream(&err, &size);
	assert_true(context.out && context.err);
	assert_int_equal(sandbox_run(2, argv, &context), CS_EXIT_REFUSED);
	fclose(context.err);
	assert_string_equal(err, "claude-sandbox: the output cannot be written; look at where it goes\n");
	free(err);
	fclose(context.out);
}

static void another_machine_is_asked(void **state)
{
	static const char *const lines[] = { "claude-sandbox -H root@far policy",
					     "claude-sandbox -Hroot@far policy",
					     "claude-sandbox policy --host root@far",
					     "claude-sandbox --host=root@far policy" };

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		*asked_host = '\0';
		expect(NULL, lines[i], CS_EXIT_REFUSED, "",
		       "claude-sandbox: root@far: no system bus answers at /run/dbus/system_bus_socket; "
		       "start it "
		       "('sudo ./quickstart' does)\n");
		assert_string_equal(asked_host, "root@far");
	}
	expect(NULL, "claude-sandbox policy", CS_EXIT_REFUSED, "",
	       "claude-sandbox: no system bus answers at /run/dbus/system_bus_socket; start it ('sudo "
	       "./quickstart' does)\n");
	assert_string_equal(asked_host, "");
	/* The current directory is one of this machine. */
	run_directory = "/home/u/project";
	expect_answer(
		answer_sessions, "claude-sandbox --host far show", CS_EXIT_FOUND, "",
		"claude-sandbox: more than one session may be meant; name one by its id ('claude-sandbox "
		"sessions' lists them)\n");
	run_directory = NULL;
}

static void a_reader_that_went_is_no_mistake(void **state)
{
	char *argv[] = { (char *)"claude-sandbox", (char *)"--help", NULL };
	SandboxContext context = { .open_bus = open_peer };
	char *err = NULL;
	size_t size;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	context.out = fdopen(ends[1], "w");
	context.err = open_memstream(&err, &size);
	assert_true(context.out && context.err);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(sandbox_run(2, argv, &context), CS_EXIT_REFUSED);
	signal(SIGPIPE, SIG_DFL);
	fclose(context.err);
	assert_string_equal(err, "");
	free(err);
	fclose(context.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_stand_anywhere),
		cmocka_unit_test(mistakes_are_usage),
		cmocka_unit_test(help_is_output),
		cmocka_unit_test(shell_hands_everything_on),
		cmocka_unit_test(without_a_bus_nothing_can_run),
		cmocka_unit_test(sessions_have_two_forms),
		cmocka_unit_test(nothing_is_a_sentence_or_an_empty_list),
		cmocka_unit_test(stop_takes_a_beginning),
		cmocka_unit_test(errors_of_the_service_are_shown),
		cmocka_unit_test(policy_is_shown_or_its_error),
		cmocka_unit_test(versions_are_compared),
		cmocka_unit_test(another_machine_is_asked),
		cmocka_unit_test(a_reader_that_went_is_no_mistake),
		cmocka_unit_test(output_that_cannot_be_written_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
