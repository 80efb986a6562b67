/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dbus/client.h"
#include "tests/unit/peer.h"

static int append_session(sd_bus_message *reply, const char *id, const char *workspace, size_t size)
{
	int r;

	r = sd_bus_message_open_container(reply, 'r', "sossuayts");
	if (r >= 0)
		r = sd_bus_message_append(reply, "sossu", id, CS_SESSION_ROOT "/x", "claude", "ann", 1000u);
	if (r >= 0)
		r = sd_bus_message_append_array(reply, 'y', workspace, size);
	if (r >= 0)
		r = sd_bus_message_append(reply, "ts", UINT64_C(1700000000000000), "running");
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r;
}

static int answer_sessions(sd_bus_message *call, sd_bus_message *reply)
{
	if (!sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_LIST_SESSIONS) ||
	    !sd_bus_message_has_signature(call, ""))
		return -EINVAL;
	sd_bus_message_open_container(reply, 'a', "(sossuayts)");
	append_session(reply, "aaaaaaaaaaaaaaaa", "/src/\xff", 6);
	append_session(reply, "aabbbbbbbbbbbbbb", "/", 1);
	append_session(reply, "zzzzzzzzzzzzzzzz", "", 0);
	return sd_bus_message_close_container(reply);
}

static void sessions_are_decoded(void **state)
{
	_cleanup_(client_sessions_done) ClientSessions sessions = { 0 };
	sd_bus_error error = SD_BUS_ERROR_NULL;
	Peer peer = peer_new(answer_sessions);

	assert_int_equal(client_list_sessions(peer.bus, &sessions, &error), 0);
	assert_int_equal(sessions.n, 3);
	assert_string_equal(sessions.items[0].id, "aaaaaaaaaaaaaaaa");
	assert_string_equal(sessions.items[0].path, CS_SESSION_ROOT "/x");
	assert_string_equal(sessions.items[0].agent, "claude");
	assert_string_equal(sessions.items[0].user, "ann");
	assert_int_equal(sessions.items[0].uid, 1000);
	assert_string_equal(sessions.items[0].workspace, "/src/\xff");
	assert_true(sessions.items[0].started_usec == UINT64_C(1700000000000000));
	assert_string_equal(sessions.items[0].state, "running");
	assert_string_equal(sessions.items[2].workspace, "");
	peer_done(&peer);
}

static int answer_no_sessions(sd_bus_message *call, sd_bus_message *reply)
{
	return sd_bus_message_append(reply, "a(sossuayts)", 0);
}

static void no_sessions_are_an_empty_list(void **state)
{
	_cleanup_(client_sessions_done) ClientSessions sessions = { 0 };
	Peer peer = peer_new(answer_no_sessions);

	assert_int_equal(client_list_sessions(peer.bus, &sessions, NULL), 0);
	assert_int_equal(sessions.n, 0);
	peer_done(&peer);
}

static int answer_nul_in_path(sd_bus_message *call, sd_bus_message *reply)
{
	sd_bus_message_open_container(reply, 'a', "(sossuayts)");
	append_session(reply, "aaaaaaaaaaaaaaaa", "/a\0b", 4);
	return sd_bus_message_close_container(reply);
}

static int answer_other_types(sd_bus_message *call, sd_bus_message *reply)
{
	return sd_bus_message_append(reply, "a(ss)", 1, "a", "b");
}

static void strange_replies_are_refused(void **state)
{
	static const AnswerFunction answers[] = { answer_nul_in_path, answer_other_types };

	for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
		ClientSessions sessions = { 0 };
		sd_bus_error error = SD_BUS_ERROR_NULL;
		_cleanup_free_ char *sentence = NULL;
		Peer peer = peer_new(answers[i]);

		assert_int_equal(client_list_sessions(peer.bus, &sessions, &error), -EBADMSG);
		assert_null(sessions.items);
		sentence = client_sentence(-EBADMSG, &error);
		assert_non_null(strstr(sentence, "restart claude-sandboxd"));
		sd_bus_error_free(&error);
		peer_done(&peer);
	}
}

static int answer_table(sd_bus_message *call, sd_bus_message *reply)
{
	int r;

	sd_bus_message_open_container(reply, 'a', "(sss)");
	for (unsigned i = 0; i < 5; i++) {
		char address[] = "10.0.0.0";

		address[7] = (char)('0' + i);
		r = sd_bus_message_append(reply, "(sss)", address, "", sd_bus_message_get_member(call));
		if (r < 0)
			return r;
	}
	return sd_bus_message_close_container(reply);
}

static void tables_are_decoded(void **state)
{
	_cleanup_(client_table_done) ClientTable addresses = { 0 }, policy = { 0 };
	Peer peer = peer_new(answer_table);

	assert_int_equal(client_list_allow_ip(peer.bus, &addresses, NULL), 0);
	assert_int_equal(addresses.n_rows, 5);
	assert_int_equal(addresses.n_columns, 3);
	assert_string_equal(addresses.cells[0], "10.0.0.0");
	assert_string_equal(addresses.cells[1], "");
	assert_string_equal(addresses.cells[12], "10.0.0.4");
	assert_string_equal(addresses.cells[14], CS_MEMBER_LIST_ALLOW_IP);

	assert_int_equal(client_get_policy(peer.bus, &policy, NULL), 0);
	assert_string_equal(policy.cells[2], CS_MEMBER_GET_POLICY);
	peer_done(&peer);
}

static int answer_stop(sd_bus_message *call, sd_bus_message *reply)
{
	const char *id;

	/* A caller that may be asked for a password says so; the empty dictionary is part of the call. */
	if (!sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION) ||
	    !sd_bus_message_has_signature(call, "sa{sv}") || sd_bus_message_read(call, "s", &id) < 0)
		return -EINVAL;
	return sd_bus_message_get_allow_interactive_authorization(call) == streq(id, "interactive") ? 0
												    : -EPERM;
}

static void stop_says_who_is_there(void **state)
{
	Peer peer = peer_new(answer_stop);

	assert_int_equal(client_stop_session(peer.bus, "interactive", true, NULL), 0);
	assert_int_equal(client_stop_session(peer.bus, "script", false, NULL), 0);
	peer_done(&peer);
}

static int answer_property(sd_bus_message *call, sd_bus_message *reply)
{
	const char *interface, *property;

	if (sd_bus_message_read(call, "ss", &interface, &property) < 0)
		return -EINVAL;
	return streq(property, "Sessions") ? sd_bus_message_append(reply, "v", "u", 7)
					   : sd_bus_message_append(reply, "v", "s", "1.2.3");
}

static void properties_are_strings(void **state)
{
	_cleanup_free_ char *version = NULL;
	char *sessions = NULL;
	Peer peer = peer_new(answer_property);

	assert_int_equal(client_get_property(peer.bus, "Version", &version, NULL), 0);
	assert_string_equal(version, "1.2.3");
	assert_int_equal(client_get_property(peer.bus, "Sessions", &sessions, NULL), -EBADMSG);
	assert_null(sessions);
	peer_done(&peer);
}

static void service_errors_arrive(void **state)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ char *sentence = NULL;
	Peer peer = peer_new_failing(CS_ERROR_NO_SUCH_SESSION, "no session is called that; list them");

	assert_true(client_stop_session(peer.bus, "aaaaaaaaaaaaaaaa", false, &error) < 0);
	assert_true(sd_bus_error_has_name(&error, CS_ERROR_NO_SUCH_SESSION));
	sentence = client_sentence(-EIO, &error);
	assert_string_equal(sentence, "no session is called that; list them");
	sd_bus_error_free(&error);
	peer_done(&peer);
}

static void a_service_that_goes_is_an_error(void **state)
{
	ClientSessions sessions = { 0 };
	sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ char *sentence = NULL;
	int status, r;
	Peer peer = peer_new(answer_no_sessions);

	assert_int_equal(kill(peer.pid, SIGKILL), 0);
	assert_int_equal(waitpid(peer.pid, &status, 0), peer.pid);
	r = client_list_sessions(peer.bus, &sessions, &error);
	assert_true(r < 0);
	sentence = client_sentence(r, &error);
	assert_non_null(sentence);
	assert_true(*sentence != '\0');
	sd_bus_error_free(&error);
	sd_bus_close_unref(peer.bus);
}

static void sentences_name_cause_and_fix(void **state)
{
	static const struct {
		const char *name, *message, *expected;
		int error;
	} cases[] = {
		{ SD_BUS_ERROR_NO_SERVER, NULL, "/run/dbus/system_bus_socket", -ENOENT },
		{ SD_BUS_ERROR_SERVICE_UNKNOWN, "not provided", "cannot be started (not provided); run 'sudo",
		  -EHOSTUNREACH },
		{ "org.freedesktop.DBus.Error.Spawn.ChildExited", "exited 1", "(exited 1)", -EIO },
		{ SD_BUS_ERROR_NO_REPLY, "gone", "went away", -EIO },
		{ SD_BUS_ERROR_UNKNOWN_METHOD, "what", "restart claude-sandboxd", -EBADR },
		{ CS_ERROR_NOT_AUTHORIZED, "ask an administrator", "ask an administrator", -EACCES },
		{ "org.example.Error", "", "(org.example.Error)", -EIO },
		{ NULL, NULL, "Permission denied", -EACCES },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		sd_bus_error error = SD_BUS_ERROR_MAKE_CONST(cases[i].name, cases[i].message);
		_cleanup_free_ char *sentence = client_sentence_there(cases[i].error, &error);

		assert_non_null(sentence);
		if (!strstr(sentence, cases[i].expected))
			fail_msg("%s: %s", cases[i].name, sentence);
	}
}

static void ids_are_found_by_their_beginning(void **state)
{
	ClientSession items[] = { { .id = (char *)"aaaaaaaaaaaaaaaa" },
				  { .id = (char *)"aabbbbbbbbbbbbbb" } };
	ClientSessions sessions = { items, ELEMENTSOF(items) };
	const char *id = NULL;

	assert_int_equal(client_find_session(&sessions, "aab", &id), 0);
	assert_ptr_equal(id, items[1].id);
	assert_int_equal(client_find_session(&sessions, "aaaaaaaaaaaaaaaa", &id), 0);
	assert_ptr_equal(id, items[0].id);
	assert_int_equal(client_find_session(&sessions, "a", &id), -ENOTUNIQ);
	assert_int_equal(client_find_session(&sessions, "b", &id), -ENOENT);

	assert_true(client_id_is_prefix("a2"));
	assert_true(client_id_is_prefix("aaaaaaaaaaaaaaaa"));
	assert_false(client_id_is_prefix("aaaaaaaaaaaaaaaaa"));
	assert_false(client_id_is_prefix(""));
	assert_false(client_id_is_prefix("A"));
	assert_false(client_id_is_prefix("a1"));
	assert_false(client_id_is_prefix("../a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_are_decoded),
		cmocka_unit_test(no_sessions_are_an_empty_list),
		cmocka_unit_test(strange_replies_are_refused),
		cmocka_unit_test(tables_are_decoded),
		cmocka_unit_test(stop_says_who_is_there),
		cmocka_unit_test(properties_are_strings),
		cmocka_unit_test(service_errors_arrive),
		cmocka_unit_test(a_service_that_goes_is_an_error),
		cmocka_unit_test(sentences_name_cause_and_fix),
		cmocka_unit_test(ids_are_found_by_their_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
