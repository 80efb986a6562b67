/* SPDX-License-Identifier: MIT */
/*
 * In this order:
 *  1. the message's shape, and how much of this is going on already: answered with an error;
 *  2. what the service sees by itself, and the configuration. Of a broken one the defaults stand in, of what
 *     the environment asks for beyond it nothing: nobody types a password for a look;
 *  3. who calls: a process that may have no session gets none, and everything up to here;
 *  4. polkit: is it there, does it know us, and, as for a launch, may the caller start agents;
 *  5. the session, which reports its own start. It is its user's: what it says goes to that user alone, and
 *     never replaces a row of the service's.
 */
#include "service/daemon/doctor-call.h"

#include <sys/wait.h>

#include "dbus/causes.h"
#include "dbus/doctor.h"
#include "dbus/errors.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/config-file.h"
#include "service/daemon/doctor-own.h"
#include "service/daemon/launch-queue.h"
#include "service/daemon/log.h"
#include "service/daemon/polkit.h"
#include "service/daemon/widening.h"
#include "service/link/pack.h"

/* It may have to be started first. */
#define POLKIT_LIST_USEC (10 * USEC_PER_SEC)
/* From the program in the jail to the end of the session. */
#define DOCTOR_END_USEC (10 * USEC_PER_SEC)
/* With those of the service that are there by then. */
#define ROWS_OF_SESSION_MAX (ROW_LIST_MAX / 2)
/* Whose start is tried where nobody names one: the session takes the first agent that is there. */
#define ANY_AGENT "shell"

static void doctor_reply(Launch *launch)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	/* Always the same rows, whatever was in the way; what the caller's shell would start its command
	 * looks at. */
	for (size_t i = 0; doctor_id_at(i); i++)
		if (!streq(doctor_id_at(i), DOCTOR_ENTRY_PATH))
			doctor_add(launch, doctor_id_at(i), ROW_NOTE, DOCTOR_NOT_TRIED, NULL);
	r = sd_bus_message_new_method_return(launch->call, &reply);
	if (r >= 0)
		r = row_list_append(&launch->rows, true, reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	if (r < 0)
		launch_answer_error(launch, SD_BUS_ERROR_FAILED, "The answer could not be sent; try again.");
	else
		launch_free(launch);
}

/* Is there a row that fails whose id begins so? */
static bool has_failed(const Launch *launch, const char *prefix)
{
	for (size_t i = 0; i < launch->rows.n; i++)
		if (starts_with(launch->rows.rows[i].id, prefix) && launch->rows.rows[i].status == ROW_FAIL)
			return true;
	return false;
}

static void doctor_refused(Launch *launch, const char *error, const char *sentence)
{
	_cleanup_free_ char *shown = wire_text(error_sentence(error, sentence), ROW_DETAIL_MAX);

	if (streq(error, CS_ERROR_SHUTTING_DOWN)) {
		launch_answer_error(launch, error, sentence);
		return;
	}
	if (streq(error, CS_ERROR_NOT_AUTHORIZED) && !launch->session)
		doctor_add_sentence(launch, DOCTOR_POLKIT_LAUNCH, ROW_FAIL, shown ?: "no memory");
	else if (streq(error, CS_ERROR_NESTED_CALLER))
		doctor_add_sentence(launch, DOCTOR_USER_CALLER, ROW_FAIL, shown ?: "no memory");
	/* The session has said itself at which step it ended. */
	else if (!has_failed(launch, "chain."))
		doctor_add_sentence(launch,
				    doctor_has(launch, DOCTOR_CHAIN_SESSION) ? DOCTOR_CHAIN_END
									     : DOCTOR_CHAIN_SESSION,
				    ROW_FAIL, shown ?: "no memory");
	doctor_reply(launch);
}

static int read_options(Launch *launch, sd_bus_message *call, sd_bus_error *reterr)
{
	LaunchRequest *request = &launch->request;
	const OptionSpec options[] = {
		{ CS_OPTION_CALL, 's', NULL, &launch->row_call, NULL },
		{ CS_OPTION_AGENT, 's', NULL, &request->agent, NULL },
		{ CS_OPTION_CWD, OPTION_BYTES, NULL, &request->cwd, NULL },
		{ CS_OPTION_ENVIRONMENT, OPTION_VECTOR, NULL, NULL, &request->environment },
	};
	int r;

	r = options_read(call, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	if (!request->agent && !(request->agent = strdup(ANY_AGENT)))
		return -ENOMEM;
	/* In which no agent may work: the session then takes a directory of its own. */
	if (!request->cwd && !(request->cwd = strdup("/")))
		return -ENOMEM;
	if (request->cwd[0] != '/')
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "cwd is not an absolute path.");
	return launch_check_agent(launch, reterr);
}

/* The configuration of the file alone; launch->config is what a session gets. Return: 0 or -ENOMEM. */
static int read_configuration(Launch *launch)
{
	int r = config_file_read_checked(CS_CONFIG_PATH, launch->manager->users, &launch->config, NULL);

	/* Why, a row says. */
	return r < 0 && r != -ENOMEM ? config_parse(CS_CONFIG_PATH, "", 0, &launch->config, NULL) : r;
}

/* What the caller's environment asks for. Narrowing is taken over. */
static int read_twins(Launch *launch)
{
	_cleanup_(strings_freep) char **widenings = NULL;
	_cleanup_free_ char *problem = NULL, *words = NULL, *sentence = NULL;
	int r;

	r = config_add_environment(&launch->config, launch->request.environment, &widenings, &problem);
	if (r == -ENOMEM)
		return r;
	if (r >= 0 && (!widenings || !widenings[0])) {
		doctor_add(launch, DOCTOR_CONFIG_ENVIRONMENT, ROW_PASS, "nothing beyond the configuration",
			   NULL);
		return 0;
	}
	if (r < 0) {
		doctor_add_sentence(launch, DOCTOR_CONFIG_ENVIRONMENT, ROW_FAIL, problem ?: strerror(-r));
	} else {
		(void)widening_words(widenings, &words);
		(void)refuse(&sentence, 0, BECAUSE(ENVIRONMENT_WIDENS), CS_CONFIG_PATH,
			     words ?: "too much to be named");
		doctor_add_sentence(launch, DOCTOR_CONFIG_ENVIRONMENT, ROW_WARN, sentence ?: "no memory");
	}
	config_done(&launch->config);
	launch->config = CONFIG_INIT;
	return read_configuration(launch);
}

/* Is there anything that keeps a session from being tried? *ret_error: NULL for no. */
static int examine(Launch *launch, sd_bus_error *ret_error)
{
	int r;

	r = launch_check_caller(launch, ret_error);
	if (r >= 0)
		r = read_configuration(launch);
	doctor_add_own(launch);
	if (sd_bus_error_is_set(ret_error) || r < 0)
		return r == -ENOMEM ? r : 0;
	doctor_add(launch, DOCTOR_USER_CALLER, ROW_PASS,
		   "it lives where the service lives, and is not confined", NULL);
	r = read_twins(launch);
	if (r >= 0)
		r = launch_check_limits(launch, ret_error);
	if (r >= 0)
		r = launch_check_sessions(launch, ret_error);
	return r == -ENOMEM ? r : 0;
}

static void ask(Launch *launch)
{
	int r = launch_ask(launch, launch->call, launch->action);

	if (r < 0)
		doctor_refused(launch, CS_ERROR_JAIL_UNAVAILABLE, strerror(-r));
	else if (r > 0) {
		doctor_add(launch, DOCTOR_POLKIT_LAUNCH, ROW_PASS, "root is not asked about", NULL);
		launch_queue_add(launch);
	}
}

/* Return: whether polkit is to be asked about the launch. */
static bool look_at_polkit(Launch *launch, sd_bus_message *reply)
{
	static const char *const actions[] = { CS_ACTION_LAUNCH, CS_ACTION_WIDEN, CS_ACTION_EDIT_ALLOW_IP,
					       CS_ACTION_MANAGE_SESSIONS };
	_cleanup_free_ char *sentence = NULL;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	const char *words;

	if (!error) {
		doctor_add(launch, DOCTOR_POLKIT_ALIVE, ROW_PASS, "it answers", NULL);
		for (size_t i = 0; i < ELEMENTSOF(actions) && !sentence; i++)
			if (polkit_knows(reply, actions[i]) <= 0)
				(void)refuse(&sentence, 0, BECAUSE(POLKIT_UNKNOWN), actions[i]);
		if (sentence)
			doctor_add_sentence(launch, DOCTOR_POLKIT_ACTIONS, ROW_FAIL, sentence);
		else
			doctor_add(launch, DOCTOR_POLKIT_ACTIONS, ROW_PASS, "all four are known", NULL);
		return true;
	}
	doctor_add(launch, DOCTOR_POLKIT_ACTIONS, ROW_NOTE, DOCTOR_NOT_TRIED, NULL);
	switch (polkit_answer(reply, &words)) {
	case POLKIT_ABSENT:
		(void)refuse(&sentence, 0, BECAUSE(POLKIT_ABSENT), CS_ACTION_WIDEN);
		doctor_add_sentence(launch, DOCTOR_POLKIT_ALIVE,
				    launch->client->uid == 0 ? ROW_NOTE : ROW_WARN, sentence ?: "no memory");
		return true;
	case POLKIT_SILENT:
		(void)refuse(&sentence, 0, BECAUSE(POLKIT_SILENT), CS_ACTION_LAUNCH);
		break;
	default:
		(void)refuse(&sentence, 0, BECAUSE(POLKIT_BROKEN), CS_ACTION_LAUNCH,
			     words ?: "it talks nonsense");
	}
	doctor_add_sentence(launch, DOCTOR_POLKIT_ALIVE, launch->client->uid == 0 ? ROW_WARN : ROW_FAIL,
			    sentence ?: "no memory");
	return launch->client->uid == 0;
}

static int on_polkit(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	Launch *launch = userdata;

	launch->probe = sd_bus_slot_unref(launch->probe);
	if (look_at_polkit(launch, reply) && launch->action)
		ask(launch);
	else
		doctor_reply(launch);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	Launch *launch = userdata;

	/* Its end is the answer. */
	launch->refusal = CS_ERROR_SESSION_SILENT;
	launch->sentence = "the session did not come to its end within ten seconds; try again";
	keeper_kill(launch->session->keeper);
	return 0;
}

static void doctor_started(Launch *launch)
{
	launch->running = true;
	launch->deadline = sd_event_source_disable_unref(launch->deadline);
	if (sd_event_add_time_relative(launch->manager->event, &launch->deadline, CLOCK_MONOTONIC,
				       DOCTOR_END_USEC, USEC_PER_SEC, on_deadline, launch) < 0)
		keeper_kill(launch->session->keeper);
}

static void doctor_rows(Launch *launch, const LinkRow *rows, uint32_t n)
{
	/* A session is there, so somebody has said yes. */
	if (launch->client->uid != 0)
		doctor_add(launch, DOCTOR_POLKIT_LAUNCH, ROW_PASS, "this user may", NULL);
	for (uint32_t i = 0; i < n; i++) {
		const char *id = rows[i].columns[0] ?: "";

		/* The service's own, which come behind, have their place. */
		launch->rows.broken |= launch->rows.n >= ROWS_OF_SESSION_MAX;
		if (launch->rows.broken || doctor_has(launch, id) ||
		    row_list_add_said(&launch->rows, &rows[i]) < 0 || !launch->row_call)
			continue;
		row_send(&launch->manager->signals, launch->client, launch->row_call,
			 &launch->rows.rows[launch->rows.n - 1], true);
	}
}

/* Did the program in the jail say what it found? The session may have softened what failed for a cause of the
 * host's. */
static bool has_measured(const Launch *launch)
{
	for (size_t i = 0; i < launch->rows.n; i++)
		if (streq(launch->rows.rows[i].id, DOCTOR_ANSWERS))
			return launch->rows.rows[i].status != ROW_PASS &&
			       !streq(launch->rows.rows[i].detail, DOCTOR_NOT_TRIED);
	return false;
}

static void doctor_ended(Launch *launch)
{
	const Session *session = launch->session;

	if (launch->refusal || !launch->running)
		doctor_refused(launch, launch->refusal ?: CS_ERROR_SESSION_DIED, launch->sentence);
	else if (session->why || session->exit_status == EXIT_STATUS_UNKNOWN ||
		 WIFSIGNALED(session->exit_status))
		doctor_refused(launch, CS_ERROR_SESSION_DIED, session->why);
	else if (WEXITSTATUS(session->exit_status) > 1 ||
		 (WEXITSTATUS(session->exit_status) == 1 && !has_measured(launch)))
		doctor_refused(
			launch, CS_ERROR_SESSION_DIED,
			"what measures in the jail could not do its work; install claude-sandbox again "
			"(sudo ./quickstart)");
	else if (launch->rows.broken || !doctor_has(launch, DOCTOR_CHAIN_AGENT))
		doctor_refused(launch, CS_ERROR_SESSION_DIED,
			       "the session did not say how its start went, or said what is no row; install "
			       "claude-sandbox again "
			       "(sudo ./quickstart)");
	else {
		doctor_add(launch, DOCTOR_CHAIN_END, ROW_PASS, "the session ended by itself", NULL);
		doctor_reply(launch);
	}
}

static const LaunchKind launch_of_doctor = {
	.member = CS_MEMBER_DOCTOR,
	.purpose = PURPOSE_DOCTOR,
	.started = doctor_started,
	.rows = doctor_rows,
	.refused = doctor_refused,
	.ended = doctor_ended,
};

int doctor_begin(Manager *manager, Client *client, sd_bus_message *call, const char *action,
		 sd_bus_error *reterr)
{
	_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	Launch *launch;
	int r;

	r = launch_new(manager, client, call, &launch_of_doctor, &launch);
	if (r < 0)
		return r;
	r = read_options(launch, call, reterr);
	if (r >= 0)
		r = launch_check_pending(launch, reterr);
	if (r >= 0)
		r = examine(launch, &error);
	if (r >= 0) {
		launch->action = sd_bus_error_is_set(&error) ? NULL : action;
		r = polkit_list(manager->bus, POLKIT_LIST_USEC, on_polkit, launch, &launch->probe);
	}
	if (r < 0) {
		launch_free(launch);
		return r;
	}
	if (sd_bus_error_is_set(&error))
		doctor_add_sentence(launch,
				    streq(error.name, CS_ERROR_NESTED_CALLER) ? DOCTOR_USER_CALLER
									      : DOCTOR_CHAIN_SESSION,
				    ROW_FAIL, error_sentence(error.name, error.message));
	return 1;
}
