/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/sandbox-run.h"

#define ONE "aaaaaaaaaaaaaaaa"
#define TWO "aabbbbbbbbbbbbbb"
#define HOSTILE "/src/\xff\033[2J\n"

static int append_session(sd_bus_message *reply, const char *id, const char *workspace)
{
	int r;

	r = sd_bus_message_open_container(reply, 'r', "sossuayts");
	if (r >= 0)
		r = sd_bus_message_append(reply, "sossu", id, CS_SESSION_ROOT "/x", "claude", "ann", 1000u);
	if (r >= 0)
		r = sd_bus_message_append_array(reply, 'y', workspace, strlen(workspace));
	if (r >= 0)
		r = sd_bus_message_append(reply, "ts", UINT64_C(1700000000000000), "running");
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_entry(sd_bus_message *reply, const char *path, const char *kind, const char *mode,
			const char *origin)
{
	int r;

	r = sd_bus_message_open_container(reply, 'r', "ayssss");
	if (r >= 0)
		r = sd_bus_message_append_array(reply, 'y', path, strlen(path));
	if (r >= 0)
		r = sd_bus_message_append(reply, "ssss", kind, mode, origin, "so that");
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_exposure(sd_bus_message *reply)
{
	int r;

	r = sd_bus_message_open_container(reply, 'a', "(ayssss)");
	if (r >= 0)
		r = append_entry(reply, "/", "bind", "ro", "system");
	if (r >= 0)
		r = append_entry(reply, "/home", "tmpfs", "private", "homes");
	if (r >= 0)
		r = append_entry(reply, HOSTILE, "bind", "rw", "/etc/claude-sandbox.conf:12");
	if (r >= 0)
		r = append_entry(reply, HOSTILE "/f", "descriptor", "rw", "caller");
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_workspace(sd_bus_message *reply)
{
	int r;

	r = sd_bus_message_open_container(reply, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append(reply, "s", SESSION_PROPERTY_WORKSPACE);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'v', "ay");
	if (r >= 0)
		r = sd_bus_message_append_array(reply, 'y', HOSTILE, strlen(HOSTILE));
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static bool jailed;

static int append_properties(sd_bus_message *reply)
{
	int r;

	r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(
			reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", SESSION_PROPERTY_ID,
			"s", ONE, SESSION_PROPERTY_AGENT, "s", "claude", SESSION_PROPERTY_USER, "s", "ann",
			SESSION_PROPERTY_UID, "u", 1000u, SESSION_PROPERTY_STARTED, "t",
			UINT64_C(1700000000000000), SESSION_PROPERTY_STATE, "s", "running",
			SESSION_PROPERTY_LEADER, "u", 42u, SESSION_PROPERTY_JAILED, "b", jailed,
			SESSION_PROPERTY_WARNINGS, "as", 1, "mind\033[1m", SESSION_PROPERTY_POSTURE, "a(sss)",
			1, "ipv6", "off", "no such thing", SESSION_PROPERTY_EXIT_STATUS, "i", -1,
			SESSION_PROPERTY_DENIED, "t", UINT64_C(3), "OfLater", "i", 1);
	if (r >= 0)
		r = append_workspace(reply);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Two sessions, of which the first answers everything. */
static int answer(sd_bus_message *call, sd_bus_message *reply)
{
	int r;

	if (sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_LIST_SESSIONS)) {
		r = sd_bus_message_open_container(reply, 'a', "(sossuayts)");
		if (r >= 0)
			r = append_session(reply, ONE, "/src");
		if (r >= 0)
			r = append_session(reply, TWO, "/home/ann/two");
		return r < 0 ? r : sd_bus_message_close_container(reply);
	}
	if (sd_bus_message_is_method_call(call, CS_SESSION_INTERFACE, CS_MEMBER_LIST_EXPOSURE))
		return append_exposure(reply);
	if (sd_bus_message_is_method_call(call, CS_SESSION_INTERFACE, CS_MEMBER_LIST_ENVIRONMENT))
		return sd_bus_message_append(reply, "a(ss)", 2, "HOME", "account",
					     "A\x01"
					     "B",
					     "caller");
	if (sd_bus_message_is_method_call(call, CS_SESSION_INTERFACE, CS_MEMBER_LIST_ROUTES))
		return sd_bus_message_append(reply, "a(sssss)", 2, "10.0.0.0/8", "deny", "", "private",
					     "in force", "default", "internet", "jail0", "the internet",
					     "in force");
	if (sd_bus_message_is_method_call(call, CS_SESSION_INTERFACE, CS_MEMBER_LIST_PORTS))
		return sd_bus_message_append(reply, "a(qsss)", 2, 5432, "local", "listening",
					     "/etc/claude-sandbox.conf:3", 1455, "callback", "taken",
					     "environment CLAUDE_SANDBOX_CALLBACK_PORTS");
	return append_properties(reply);
}

static void exposure_has_two_forms(void **state)
{
	expect_answer(answer, "claude-sandbox exposure aaa", 0,
		      "PATH                    MODE     KIND        ORIGIN                       REASON\n"
		      "/                       ro       bind        system                       so that\n"
		      "/home                   private  tmpfs       homes                        so that\n"
		      "/src/\\xff\\x1b[2J\\x0a    rw       bind        /etc/claude-sandbox.conf:12  so that\n"
		      "/src/\\xff\\x1b[2J\\x0a/f  rw       descriptor  caller                       so that\n"
		      "\n"
		      "VARIABLE  ORIGIN\n"
		      "HOME      account\n"
		      "A\\x01B    caller\n",
		      "");
	run_directory = "/src/deep";
	expect_answer(answer, "claude-sandbox exposure --json", 0,
		      "{\n  \"id\": \"" ONE "\",\n  \"paths\": [\n"
		      "    {\n      \"path\": \"/\",\n      \"mode\": \"ro\",\n      \"kind\": \"bind\",\n"
		      "      \"origin\": \"system\",\n      \"reason\": \"so that\"\n    },\n"
		      "    {\n      \"path\": \"/home\",\n      \"mode\": \"private\",\n      \"kind\": "
		      "\"tmpfs\",\n"
		      "      \"origin\": \"homes\",\n      \"reason\": \"so that\"\n    },\n"
		      "    {\n      \"path\": \"/src/\\\\xff\\u001b[2J\\n\",\n      \"mode\": \"rw\",\n"
		      "      \"kind\": \"bind\",\n      \"origin\": \"/etc/claude-sandbox.conf:12\",\n"
		      "      \"reason\": \"so that\"\n    },\n"
		      "    {\n      \"path\": \"/src/\\\\xff\\u001b[2J\\n/f\",\n      \"mode\": \"rw\",\n"
		      "      \"kind\": \"descriptor\",\n      \"origin\": \"caller\",\n"
		      "      \"reason\": \"so that\"\n    }\n  ],\n  \"variables\": [\n"
		      "    {\n      \"name\": \"HOME\",\n      \"origin\": \"account\"\n    },\n"
		      "    {\n      \"name\": \"A\\u0001B\",\n      \"origin\": \"caller\"\n    }\n  ]\n}\n",
		      "");
	run_directory = NULL;
}

static void routes_have_columns(void **state)
{
	expect_answer(answer, "claude-sandbox routes aaa", 0,
		      "DESTINATION  VERDICT   DEVICE  STATE     REASON\n"
		      "10.0.0.0/8   deny              in force  private\n"
		      "default      internet  jail0   in force  the internet\n",
		      "");
}

static void ports_have_columns(void **state)
{
	expect_answer(answer, "claude-sandbox ports aaa", 0,
		      "PORT  DIRECTION  STATE      ORIGIN\n"
		      "5432  local      listening  /etc/claude-sandbox.conf:3\n"
		      "1455  callback   taken      environment CLAUDE_SANDBOX_CALLBACK_PORTS\n",
		      "");
	expect_answer(
		answer, "claude-sandbox ports --json aaa", 0,
		"[\n  {\n    \"port\": 5432,\n    \"direction\": \"local\",\n"
		"    \"state\": \"listening\",\n    \"origin\": \"/etc/claude-sandbox.conf:3\"\n  },\n"
		"  {\n    \"port\": 1455,\n    \"direction\": \"callback\",\n    \"state\": \"taken\",\n"
		"    \"origin\": \"environment CLAUDE_SANDBOX_CALLBACK_PORTS\"\n  }\n]\n",
		"");
}

static void show_is_a_page(void **state)
{
	jailed = true;
	expect_answer(answer, "claude-sandbox show aaa", 0,
		      "ID         " ONE "\n"
		      "AGENT      claude\n"
		      "USER       ann\n"
		      "STATE      running\n"
		      "AGE        3h 00m\n"
		      "WORKSPACE  /src/\\xff\\x1b[2J\\x0a\n"
		      "LEADER     42\n"
		      "NETWORK    jailed\n"
		      "DENIED     3\n"
		      "PATHS      4 (1 ro, 2 rw, 0 masked, 1 private)\n"
		      "VARIABLES  2\n"
		      "ROUTES     2 (1 deny)\n"
		      "PORTS      2 (1 listening)\n"
		      "\n"
		      "LAYER  STRENGTH  DETAIL\n"
		      "ipv6   off       no such thing\n"
		      "\n"
		      "WARNING\n"
		      "mind\\x1b[1m\n",
		      "");
}

static int answer_no_tables(sd_bus_message *call, sd_bus_message *reply)
{
	if (sd_bus_message_is_method_call(call, CS_SESSION_INTERFACE, NULL))
		return -ETIMEDOUT;
	return answer(call, reply);
}

/* What the service knows of a session that says nothing. */
static void show_of_a_silent_session(void **state)
{
	jailed = false;
	expect_answer(
		answer_no_tables, "claude-sandbox show --json aaa", CS_EXIT_FOUND,
		"{\n  \"id\": \"" ONE
		"\",\n  \"agent\": \"claude\",\n  \"user\": \"ann\",\n  \"uid\": 1000,\n"
		"  \"state\": \"running\",\n  \"started_usec\": 1700000000000000,\n"
		"  \"workspace\": \"/src/\\\\xff\\u001b[2J\\n\",\n  \"leader\": 42,\n  \"jailed\": false,\n"
		"  \"exit_status\": null,\n  \"denied\": 3,\n  \"paths\": null,\n  \"paths_ro\": null,\n  "
		"\"paths_rw\": null,\n"
		"  \"paths_masked\": null,\n  \"paths_private\": null,\n  \"variables\": null,\n"
		"  \"routes\": null,\n  \"routes_deny\": null,\n  \"ports\": null,\n"
		"  \"ports_listening\": null,\n"
		"  \"posture\": [\n    {\n      \"layer\": \"ipv6\",\n      \"strength\": \"off\",\n"
		"      \"detail\": \"no such thing\"\n    }\n  ],\n"
		"  \"warnings\": [\n    \"mind\\u001b[1m\"\n  ]\n}\n",
		"claude-sandbox: Connection timed out\n");
}

static int no_links(const char *path, char **ret)
{
	return strstr(path, "here") ? -EINVAL : -ENOENT;
}

static void why_explains(void **state)
{
	jailed = true;
	run_read_link = no_links;
	run_directory = "/src";
	expect_answer(answer, "claude-sandbox why /home/x", 0,
		      "PATH     /home/x\n"
		      "SESSION  " ONE "\n"
		      "MODE     private\n"
		      "MEANS    not what is outside: a private directory, empty at the start, lies above it\n"
		      "ENTRY    /home\n"
		      "KIND     tmpfs\n"
		      "ORIGIN   homes\n"
		      "REASON   so that\n",
		      "");
	expect_answer(answer, "claude-sandbox why 10.1.2.3 --session aaa", 0,
		      "ADDRESS      10.1.2.3\n"
		      "SESSION      " ONE "\n"
		      "VERDICT      deny\n"
		      "MEANS        refused, whatever way is tried\n"
		      "ROUTE        10.0.0.0/8\n"
		      "STATE        in force\n"
		      "REASON       private\n"
		      "TO ALLOW     claude-sandbox allow-ip add 10.1.2.3\n"
		      "ONLY HERE    claude-sandbox allow-ip add --session " ONE " 10.1.2.3\n"
		      "FOR AN HOUR  claude-sandbox allow-ip add --session " ONE " --for 1h 10.1.2.3\n",
		      "");
	expect_answer(answer, "claude-sandbox why 10.0.0.0/8 --session aaa", 0,
		      "ADDRESS  10.0.0.0/8\n"
		      "SESSION  " ONE "\n"
		      "VERDICT  deny\n"
		      "MEANS    refused, whatever way is tried\n"
		      "ROUTE    10.0.0.0/8\n"
		      "STATE    in force\n"
		      "REASON   private\n",
		      "");
	expect_answer(answer, "claude-sandbox why 10.2.3.4/16 --session aaa", 0,
		      "ADDRESS      10.2.3.4/16\n"
		      "SESSION      " ONE "\n"
		      "VERDICT      deny\n"
		      "MEANS        refused, whatever way is tried\n"
		      "ROUTE        10.0.0.0/8\n"
		      "STATE        in force\n"
		      "REASON       private\n"
		      "TO ALLOW     claude-sandbox allow-ip add 10.2.0.0/16\n"
		      "ONLY HERE    claude-sandbox allow-ip add --session " ONE " 10.2.0.0/16\n"
		      "FOR AN HOUR  claude-sandbox allow-ip add --session " ONE " --for 1h 10.2.0.0/16\n",
		      "");
	expect_answer(answer, "claude-sandbox why ::1 --session=aaa", 0,
		      "ADDRESS  ::1\n"
		      "SESSION  " ONE "\n"
		      "VERDICT  deny\n"
		      "MEANS    refused: a jail has no IPv6\n"
		      "REASON   no such thing\n",
		      "");
	jailed = false;
	expect_answer(
		answer, "claude-sandbox why 10.1.2.3 --json", 0,
		"{\n  \"address\": \"10.1.2.3\",\n  \"session\": \"" ONE "\",\n  \"verdict\": \"shared\",\n"
		"  \"meaning\": \"reached as the host reaches it: this session shares the host's network\",\n"
		"  \"route\": null,\n  \"device\": null,\n  \"state\": null,\n  \"reason\": null,\n  "
		"\"to_allow\": null,\n  \"to_allow_here\": null,\n  \"to_allow_for_an_hour\": null\n}\n",
		"");
	expect(NULL, "claude-sandbox why github.com", CS_EXIT_USAGE, "",
	       "claude-sandbox: 'github.com' is no address and nothing here; names of hosts are not "
	       "resolved: give "
	       "the address, or ./github.com for a path\n");
	expect(NULL, "claude-sandbox why http://10.0.0.1/", CS_EXIT_USAGE, "",
	       "claude-sandbox: 'http://10.0.0.1/' is a URL; give the address of its host alone\n");
	expect(NULL, "claude-sandbox why 10.0.0.1:80", CS_EXIT_USAGE, "",
	       "claude-sandbox: '10.0.0.1:80' has a port, and routes know none; leave it out: "
	       "claude-sandbox why 10.0.0.1\n");
	run_directory = NULL;
	expect(NULL, "claude-sandbox why ./x", CS_EXIT_USAGE, "",
	       "claude-sandbox: './x' is below a current directory that has gone; give an absolute path\n");
	run_read_link = sandbox_read_link;
}

static int answer_no_sessions(sd_bus_message *call, sd_bus_message *reply)
{
	return sd_bus_message_append(reply, "a(sossuayts)", 0);
}

static void the_session_is_chosen_or_asked_for(void **state)
{
	static const char several[] =
		"claude-sandbox: more than one session may be meant; name one by its id "
		"('claude-sandbox sessions' lists them)\n";

	expect_answer(answer, "claude-sandbox show", CS_EXIT_FOUND, "", several);
	run_directory = "/srcs";
	expect_answer(answer, "claude-sandbox routes", CS_EXIT_FOUND, "", several);
	run_directory = "/src";
	expect_answer(
		answer, "claude-sandbox routes --json a", CS_EXIT_FOUND, "",
		"claude-sandbox: more than one session that you may see begins with 'a'; 'claude-sandbox "
		"sessions' lists them\n");
	expect_answer(answer, "claude-sandbox exposure A", CS_EXIT_USAGE, "",
		      "claude-sandbox: 'A' is no session's id; 'claude-sandbox sessions' lists them\n");
	expect_answer(answer_no_sessions, "claude-sandbox why /", CS_EXIT_FOUND, "",
		      "claude-sandbox: no session that you may see runs, and only one that runs can be "
		      "asked; start "
		      "one\n");
	run_directory = NULL;
	expect_refusal(SD_BUS_ERROR_UNKNOWN_OBJECT, "Unknown object", "claude-sandbox show " TWO,
		       CS_EXIT_FOUND,
		       "claude-sandbox: There is no session '" TWO
		       "' that you may see; 'claude-sandbox sessions' lists "
		       "them.\n");
	expect(NULL, "claude-sandbox why --session", CS_EXIT_USAGE, "",
	       "claude-sandbox: '--session' needs a value; usage: claude-sandbox why [--json] [--session ID] "
	       "PATH|ADDRESS\n");
	expect(NULL, "claude-sandbox show --session a", CS_EXIT_USAGE, "",
	       "claude-sandbox: there is no option '--session'; see 'claude-sandbox --help'\n");
}

static int answer_short(sd_bus_message *call, sd_bus_message *reply)
{
	return sd_bus_message_append(reply, "a{sv}", 1, SESSION_PROPERTY_ID, "s", ONE);
}

static int answer_strange(sd_bus_message *call, sd_bus_message *reply)
{
	return sd_bus_message_append(reply, "a(sssss)", 1, "a", "b", "c", "d", "e");
}

static void strange_replies_are_refused(void **state)
{
	static const char err[] =
		"claude-sandbox: the running service does not speak as this command does (Bad message); "
		"restart claude-sandboxd\n";

	expect_answer(answer_short, "claude-sandbox show " ONE, CS_EXIT_REFUSED, "", err);
	expect_answer(answer_strange, "claude-sandbox exposure " ONE, CS_EXIT_REFUSED, "", err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exposure_has_two_forms),
		cmocka_unit_test(routes_have_columns),
		cmocka_unit_test(ports_have_columns),
		cmocka_unit_test(show_is_a_page),
		cmocka_unit_test(show_of_a_silent_session),
		cmocka_unit_test(why_explains),
		cmocka_unit_test(the_session_is_chosen_or_asked_for),
		cmocka_unit_test(strange_replies_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
