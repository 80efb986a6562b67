/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus/names.h"
#include "service/daemon/auth.h"
#include "service/daemon/polkit.h"

static void every_member_of_the_contract_has_a_rule(void **state)
{
	static const char *const manager[] = {
		CS_MEMBER_LAUNCH,        CS_MEMBER_DOCTOR,
		CS_MEMBER_VERIFY,        CS_MEMBER_LIST_ALLOW_IP,
		CS_MEMBER_ADD_ALLOW_IP,  CS_MEMBER_REMOVE_ALLOW_IP,
		CS_MEMBER_LIST_SESSIONS, CS_MEMBER_LIST_ALL_SESSIONS,
		CS_MEMBER_SUBSCRIBE,     CS_MEMBER_UNSUBSCRIBE,
		CS_MEMBER_LIST_EVENTS,   CS_MEMBER_STOP_SESSION,
		CS_MEMBER_GET_POLICY,
	};
	static const char *const session[] = {
		CS_MEMBER_LIST_ROUTES, CS_MEMBER_LIST_EXPOSURE, CS_MEMBER_LIST_ENVIRONMENT,
		CS_MEMBER_LIST_PORTS,  CS_MEMBER_LIST_DENIED,   CS_MEMBER_ALLOW_IP,
		CS_MEMBER_REVOKE_IP,   CS_MEMBER_VERIFY,        CS_MEMBER_STOP,
	};
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(manager); i++)
		assert_int_not_equal(auth_find(CS_MANAGER_INTERFACE, manager[i])->rule, AUTH_DENIED);
	for (size_t i = 0; i < ELEMENTSOF(session); i++)
		assert_int_not_equal(auth_find(CS_SESSION_INTERFACE, session[i])->rule, AUTH_DENIED);
	while (auth_at(n))
		n++;
	assert_int_equal(n, ELEMENTSOF(manager) + ELEMENTSOF(session));
}

static void what_is_not_in_the_table_is_denied(void **state)
{
	assert_int_equal(auth_find(CS_MANAGER_INTERFACE, "Nonsense")->rule, AUTH_DENIED);
	assert_int_equal(auth_find(CS_MANAGER_INTERFACE, "")->rule, AUTH_DENIED);
	assert_int_equal(auth_find(CS_MANAGER_INTERFACE, NULL)->rule, AUTH_DENIED);
	assert_int_equal(auth_find(NULL, CS_MEMBER_LAUNCH)->rule, AUTH_DENIED);
	assert_int_equal(auth_find(CS_SESSION_INTERFACE, CS_MEMBER_LAUNCH)->rule, AUTH_DENIED);
	assert_int_equal(auth_find("org.example", CS_MEMBER_LIST_SESSIONS)->rule, AUTH_DENIED);
}

static void what_is_asked_about(void **state)
{
	const AuthEntry *entry;

	for (size_t i = 0; (entry = auth_at(i)); i++) {
		assert_int_not_equal(entry->rule, AUTH_DENIED);
		if (entry->rule == AUTH_OPEN)
			assert_null(entry->action);
		else
			assert_non_null(entry->action);
	}
	entry = auth_find(CS_MANAGER_INTERFACE, CS_MEMBER_LAUNCH);
	assert_int_equal(entry->rule, AUTH_ACTION);
	assert_string_equal(entry->action, CS_ACTION_LAUNCH);
	entry = auth_find(CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION);
	assert_int_equal(entry->rule, AUTH_OWNER);
	assert_string_equal(entry->action, CS_ACTION_MANAGE_SESSIONS);
	entry = auth_find(CS_SESSION_INTERFACE, CS_MEMBER_STOP);
	assert_int_equal(entry->rule, AUTH_OWNER);
	entry = auth_find(CS_MANAGER_INTERFACE, CS_MEMBER_ADD_ALLOW_IP);
	assert_int_equal(entry->rule, AUTH_ACTION);
	assert_string_equal(entry->action, CS_ACTION_EDIT_ALLOW_IP);
	/* To widen one's own session is asked about, to narrow it is not. */
	entry = auth_find(CS_SESSION_INTERFACE, CS_MEMBER_ALLOW_IP);
	assert_int_equal(entry->rule, AUTH_ACTION);
	assert_string_equal(entry->action, CS_ACTION_EDIT_ALLOW_IP);
	assert_int_equal(auth_find(CS_SESSION_INTERFACE, CS_MEMBER_REVOKE_IP)->rule, AUTH_OWNER);
}

static void absence_is_not_silence(void **state)
{
	assert_true(polkit_error_is_absence(SD_BUS_ERROR_SERVICE_UNKNOWN));
	assert_true(polkit_error_is_absence(SD_BUS_ERROR_NAME_HAS_NO_OWNER));
	assert_true(polkit_error_is_absence("org.freedesktop.DBus.Error.Spawn.ExecFailed"));
	assert_false(polkit_error_is_absence(SD_BUS_ERROR_NO_REPLY));
	assert_false(polkit_error_is_absence(SD_BUS_ERROR_TIMEOUT));
	assert_false(polkit_error_is_absence(SD_BUS_ERROR_ACCESS_DENIED));
	assert_false(polkit_error_is_absence("org.freedesktop.DBus.Error.Spawn.ChildExited"));
	assert_false(polkit_error_is_absence("org.freedesktop.PolicyKit1.Error.Failed"));
	assert_false(polkit_error_is_absence(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_of_the_contract_has_a_rule),
		cmocka_unit_test(what_is_not_in_the_table_is_denied),
		cmocka_unit_test(what_is_asked_about),
		cmocka_unit_test(absence_is_not_silence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
