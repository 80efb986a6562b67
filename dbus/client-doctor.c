/* SPDX-License-Identifier: MIT */
#include "dbus/client-doctor.h"

#include <inttypes.h>

#include "dbus/causes.h"
#include "dbus/client-read.h"
#include "dbus/doctor.h"
#include "dbus/errors.h"
#include "dbus/wire.h"

#define CLIENT_NO_LIMIT UINT64_MAX
#define DOCTOR_ROW "sssss"
#define BUS_NAME "org.freedesktop.DBus"
#define BUS_PATH "/org/freedesktop/DBus"
#define ERROR_NAME_PREFIX "org.freedesktop.DBus.Error."
#define ANSWER_USEC (5 * 1000 * 1000ULL)
#define SERVICE_COMM "claude-sandboxd"
#define COMM_SIZE 32 /* 15 bytes and what ends them are all there is */

static int append_text(sd_bus_message *m, const char *key, const char *text)
{
	return text ? sd_bus_message_append(m, "{sv}", key, "s", text) : 0;
}

/* type: of what write() writes. */
static int append_bytes(sd_bus_message *m, const char *key, const char *directory, char *const *environment)
{
	const char *type = directory ? "ay" : "aay";
	int r;

	if (!directory && !environment)
		return 0;
	r = sd_bus_message_open_container(m, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", key);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = directory ? wire_append_bytes(m, directory) : wire_append_vector(m, environment);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int client_doctor_message(sd_bus *bus, const ClientDoctor *doctor, sd_bus_message **ret)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					   CS_MEMBER_DOCTOR);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = append_text(m, CS_OPTION_CALL, doctor->call);
	if (r >= 0)
		r = append_text(m, CS_OPTION_AGENT, doctor->agent);
	if (r >= 0)
		r = append_bytes(m, CS_OPTION_CWD, doctor->directory, NULL);
	if (r >= 0)
		r = append_bytes(m, CS_OPTION_ENVIRONMENT, NULL, doctor->environment);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, doctor->interactive);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int client_read_doctor(sd_bus_message *reply, ClientTable *ret)
{
	return client_read_rows(reply, DOCTOR_ROW, ret);
}

static int ask_bus(sd_bus *bus, const char *member, uint32_t *ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_NAME, member);
	if (r >= 0)
		r = sd_bus_message_append(m, "s", CS_BUS_NAME);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	r = sd_bus_call(bus, m, CLIENT_NO_LIMIT, reterr, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "u", ret);
	return r < 0 ? r : 0;
}

/* As /proc/PID/comm has it (proc(5)). */
static void read_comm(uint32_t pid, char comm[static COMM_SIZE])
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(comm, COMM_SIZE, f))
		comm[0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
}

static bool answers(sd_bus *bus)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, CS_MANAGER_PATH, "org.freedesktop.DBus.Peer",
					   "Ping");
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, false);
	if (r >= 0)
		r = sd_bus_call(bus, m, ANSWER_USEC, &error, NULL);
	return r != -ETIMEDOUT;
}

int client_check_owner(sd_bus *bus, char **ret_problem)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	char comm[COMM_SIZE] = "";
	uint32_t uid = 0, pid = 0;

	if (ask_bus(bus, "GetConnectionUnixUser", &uid, &error) < 0)
		return 0;
	if (ask_bus(bus, "GetConnectionUnixProcessID", &pid, &error) >= 0 && pid != 0)
		read_comm(pid, comm);
	if (uid == 0 && (!*comm || streq(comm, SERVICE_COMM)))
		return answers(bus) ? 0
				    : refuse(ret_problem, -ETIMEDOUT, BECAUSE(SERVICE_SILENT), CS_BUS_NAME,
					     pid, pid);
	return refuse(ret_problem, -EADDRINUSE, BECAUSE(NAME_OTHER), CS_BUS_NAME, pid,
		      *comm ? comm : "unknown", uid);
}

char *client_sentence_from(sd_bus *bus, int error, const sd_bus_error *e)
{
	const char *name = e && e->name ? e->name : "";
	char *problem = NULL;

	if (bus &&
	    (streq(name, SD_BUS_ERROR_UNKNOWN_METHOD) || streq(name, SD_BUS_ERROR_UNKNOWN_OBJECT) ||
	     streq(name, SD_BUS_ERROR_UNKNOWN_INTERFACE)) &&
	    client_check_owner(bus, &problem) < 0 && problem)
		return problem;
	return client_sentence(error, e);
}

const char *client_doctor_row(int error, const sd_bus_error *e)
{
	const char *name = e && e->name ? e->name : "";

	if (streq(name, SD_BUS_ERROR_NO_SERVER) || error == -ECONNREFUSED)
		return DOCTOR_BUS;
	if (streq(name, SD_BUS_ERROR_ACCESS_DENIED))
		return DOCTOR_POLICY;
	if (streq(name, SD_BUS_ERROR_SERVICE_UNKNOWN) || streq(name, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
	    starts_with(name, ERROR_NAME_PREFIX "Spawn.") || streq(name, ERROR_NAME_PREFIX "TimedOut"))
		return DOCTOR_ACTIVATION;
	return error_is_known(name) ? DOCTOR_CHAIN_SESSION : DOCTOR_NAME;
}
