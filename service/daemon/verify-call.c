/* SPDX-License-Identifier: MIT */
/*
 * THE VERDICT IS THE SERVICE'S: it says "passed" when each check has exactly one row, none failed, and the
 * program that checks said so too by its status. A program that was killed, fell silent, or said something
 * else is a failed row of its own, "end", never a shorter list.
 */
#include "service/daemon/verify-call.h"

#include <sys/wait.h>

#include "dbus/errors.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/launch-start.h"
#include "service/daemon/log.h"

#define END_ID "end"
#define END_TITLE "the checks came to their end"

void verify_take_rows(const Signals *signals, const Client *client, const char *row_call, RowList *list,
		      const LinkRow *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (row_list_add_said(list, &rows[i]) == 0 && row_call)
			row_send(signals, client, row_call, &list->rows[list->n - 1], false);
}

/* The row that says what is missing. */
static int add_end(RowList *list, const char *why, const char *missing)
{
	_cleanup_free_ char *detail = NULL;
	_cleanup_(row_done) Row row = { 0 };
	Row *larger;
	int r;

	if (asprintf(&detail, "%s%s%s%s",
		     why            ? why
		     : list->broken ? "something was said that is no row"
		     : missing      ? "checks are missing"
			       : "the program that checks says that something failed, and no row says what",
		     missing ? "; not measured, or more than once: " : "", missing ?: "",
		     "; run the checks again, and distrust this jail if they end so again") < 0) {
		detail = NULL;
		return -ENOMEM;
	}
	r = row_make(END_ID, ROW_FAIL, END_TITLE, detail, NULL, &row);
	if (r < 0)
		return r;
	/* Beyond the bound on what a session may say: this one is ours. */
	larger = reallocarray(list->rows, list->n + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	list->rows = larger;
	list->rows[list->n++] = row;
	row = (Row){ 0 };
	return 0;
}

int verify_conclude(RowList *list, const VerifyEnd *end, const Row **ret_last)
{
	_cleanup_free_ char *missing = NULL;
	int passed, r;

	*ret_last = NULL;
	passed = row_list_passed(list, &missing);
	if (passed < 0)
		return passed;
	if (!end->why && !missing && !list->broken && !(passed && end->failed))
		return passed;
	r = add_end(list, end->why, missing);
	if (r == 0)
		*ret_last = &list->rows[list->n - 1];
	return r;
}

int verify_reply(sd_bus_message *call, const RowList *list, bool passed)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "b", passed);
	if (r >= 0)
		r = row_list_append(list, false, reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 0;
}

static int verify_read(Launch *launch, sd_bus_message *call, sd_bus_error *reterr)
{
	uint64_t probes = 0;
	const OptionSpec options[] = { { CS_OPTION_CALL, 's', NULL, &launch->row_call },
				       { CS_OPTION_PROBES, 'b', &probes, NULL } };
	int r;

	r = verify_request_read(call, &launch->request, reterr);
	if (r >= 0)
		r = options_read(call, options, ELEMENTSOF(options), reterr);
	launch->probes = probes;
	return r;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	Launch *launch = userdata;

	/* Its end is the answer. */
	launch->sentence = "the checks took longer than ten minutes";
	keeper_kill(launch->session->keeper);
	return 0;
}

static void verify_started(Launch *launch)
{
	launch->deadline = sd_event_source_disable_unref(launch->deadline);
	if (sd_event_add_time_relative(launch->manager->event, &launch->deadline, CLOCK_MONOTONIC,
				       VERIFY_DEADLINE_USEC, USEC_PER_SEC, on_deadline, launch) < 0)
		keeper_kill(launch->session->keeper);
	launch->running = true;
}

static void verify_rows(Launch *launch, const LinkRow *rows, uint32_t n)
{
	/* Its first words may be faster than the session's about it. */
	launch->running = true;
	verify_take_rows(&launch->manager->signals, launch->client, launch->row_call, &launch->rows, rows, n);
}

/* The program that checks: 0 all passed, 1 something failed. Return: 0 with *ret_why NULL for these. */
static int why_ended(const Launch *launch, char **ret_why)
{
	const Session *session = launch->session;
	int status = session->exit_status, r = 0;

	*ret_why = NULL;
	if (launch->sentence)
		(void)refuse(ret_why, 0, "%s", launch->sentence);
	else if (session->why)
		(void)refuse(ret_why, 0, "%s", session->why);
	else if (status == EXIT_STATUS_UNKNOWN)
		(void)refuse(ret_why, 0, "the session died");
	else if (WIFSIGNALED(status))
		(void)refuse(ret_why, 0, "what checks was killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) > 1)
		(void)refuse(ret_why, 0, "what checks could not do its work, and ended with status %d",
			     WEXITSTATUS(status));
	else
		return 0;
	if (!*ret_why)
		r = -ENOMEM;
	return r;
}

static void verify_ended(Launch *launch)
{
	_cleanup_free_ char *why = NULL;
	const Row *last;
	int r;

	if (!launch->running) {
		launch_refuse(launch, launch->refusal ? launch->refusal : CS_ERROR_SESSION_DIED,
			      launch->sentence);
		return;
	}
	r = why_ended(launch, &why);
	if (r >= 0)
		r = verify_conclude(&launch->rows,
				    &(VerifyEnd){ .failed = launch->session->exit_status != 0, .why = why },
				    &last);
	if (r >= 0 && last && launch->row_call)
		row_send(&launch->manager->signals, launch->client, launch->row_call, last, false);
	if (r >= 0)
		r = verify_reply(launch->call, &launch->rows, r > 0);
	if (r < 0)
		launch_refuse(launch, SD_BUS_ERROR_FAILED, "The answer could not be sent; try again.");
	else
		launch_free(launch);
}

const LaunchKind launch_of_verify = {
	.member = CS_MEMBER_VERIFY,
	.purpose = PURPOSE_VERIFY,
	.read = verify_read,
	.started = verify_started,
	.rows = verify_rows,
	.ended = verify_ended,
};
