/* SPDX-License-Identifier: MIT */
#include "dbus/client-verify.h"

#include "dbus/client-peer.h"
#include "dbus/wire.h"

/* sd_bus_call_async(3): 0 would be a default of 25 s. */
#define CLIENT_NO_LIMIT UINT64_MAX
#define ROW "sssss"

void client_verdict_done(ClientVerdict *verdict)
{
	client_table_done(&verdict->rows);
	*verdict = (ClientVerdict){ 0 };
}

static int append_option(sd_bus_message *m, const char *key, const char *type, const void *value)
{
	int r;

	r = sd_bus_message_open_container(m, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", key);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = sd_bus_message_append_basic(m, *type, value);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_options(sd_bus_message *m, const ClientVerify *verify)
{
	const int yes = 1;
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0 && verify->call)
		r = append_option(m, CS_OPTION_CALL, "s", verify->call);
	if (r >= 0 && verify->probes)
		r = append_option(m, CS_OPTION_PROBES, "b", &yes);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_launch(sd_bus_message *m, const ClientVerify *verify)
{
	int r;

	r = sd_bus_message_append(m, "s", verify->agent);
	if (r >= 0)
		r = wire_append_vector(m, verify->environment);
	return r < 0 ? r : wire_append_bytes(m, verify->directory);
}

int client_verify_message(sd_bus *bus, const ClientVerify *verify, sd_bus_message **ret)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (verify->session && asprintf(&path, CS_SESSION_ROOT "/%s", verify->session) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, path ?: CS_MANAGER_PATH,
					   path ? CS_SESSION_INTERFACE : CS_MANAGER_INTERFACE,
					   CS_MEMBER_VERIFY);
	if (r >= 0 && !path)
		r = append_launch(m, verify);
	if (r >= 0)
		r = append_options(m, verify);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, verify->interactive);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int client_read_verdict(sd_bus_message *reply, ClientVerdict *ret)
{
	int passed = 0, r;

	if (sd_bus_message_read_basic(reply, 'b', &passed) <= 0)
		return -EBADMSG;
	r = client_read_rows(reply, ROW, &ret->rows);
	if (r >= 0)
		ret->passed = passed;
	return r;
}

int client_read_row_signal(sd_bus_message *m, const char *call, ClientTable *ret)
{
	const char *of;
	int r;

	if (sd_bus_message_read_basic(m, 's', &of) <= 0)
		return -EBADMSG;
	if (!streq(of, call))
		return 0;
	r = client_read_row(m, ROW, ret);
	return r < 0 ? r : 1;
}

typedef struct RowsWait {
	const char *call;
	char *owner; /* of the service's name: nobody else's rows count */
	ClientRowFunction function;
	void *userdata;
	sd_bus_message *reply;
	int result;
} RowsWait;

static int on_row(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(client_table_done) ClientTable row = { 0 };
	RowsWait *wait = userdata;
	int r;

	/* A row that cannot be read is in the answer, or the answer cannot be read. */
	if (wait->result >= 0 && client_is_from(m, wait->owner) &&
	    client_read_row_signal(m, wait->call, &row) > 0) {
		r = wait->function(wait->userdata, &row);
		if (r < 0)
			wait->result = r;
	}
	return 0;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	RowsWait *wait = userdata;

	wait->reply = sd_bus_message_ref(m);
	return 0;
}

static void slot_unref(sd_bus_slot **slot)
{
	*slot = sd_bus_slot_unref(*slot);
}

/* The object of a session that has ended, or that is another's. */
static int refuse_unknown(sd_bus_message *message, sd_bus_error *reterr)
{
	const char *path = sd_bus_message_get_path(message);
	const char *id = path ? starts_with(path, CS_SESSION_ROOT "/") : NULL;

	return sd_bus_error_setf(
		reterr, CS_ERROR_NO_SUCH_SESSION,
		"There is no session '%s' that you may see; 'claude-sandbox sessions' lists them.", id ?: "");
}

int client_call_for_rows(sd_bus *bus, sd_bus_message *message, const char *call, ClientRowFunction function,
			 int (*wait_function)(void *userdata, sd_bus *bus), void *userdata,
			 sd_bus_message **ret_reply, sd_bus_error *reterr)
{
	_cleanup_(slot_unref) sd_bus_slot *rows = NULL, *answer = NULL;
	RowsWait wait = { .call = call, .function = function, .userdata = userdata };
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_free_ char *owner = NULL;
	int r;

	r = client_find_owner(bus, &owner, reterr);
	if (r < 0)
		return r;
	wait.owner = owner;
	r = sd_bus_match_signal(bus, &rows, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_ROW,
				on_row, &wait);
	if (r >= 0)
		r = sd_bus_call_async(bus, &answer, message, on_reply, &wait, CLIENT_NO_LIMIT);
	while (r >= 0 && wait.result >= 0 && !wait.reply) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = wait_function(userdata, bus);
	}
	reply = wait.reply;
	if (r >= 0)
		r = wait.result;
	if (r >= 0 && sd_bus_message_is_method_error(reply, SD_BUS_ERROR_UNKNOWN_OBJECT))
		return refuse_unknown(message, reterr);
	if (r >= 0 && sd_bus_message_is_method_error(reply, NULL))
		return sd_bus_error_copy(reterr, sd_bus_message_get_error(reply));
	if (r < 0)
		return sd_bus_error_is_set(reterr) ? r : sd_bus_error_set_errno(reterr, r);
	*ret_reply = TAKE_PTR(reply);
	return 0;
}
