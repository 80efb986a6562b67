/* SPDX-License-Identifier: MIT */

/*
 * doctor: what keeps agents from being started here, and what helps. First what needs no service, then the
 * service's rows as they come. Without a service its place is taken by what anybody can see.
 */

#include "dbus/causes.h"
#include "dbus/client-doctor.h"
#include "dbus/client-remote.h"
#include "dbus/client-verify.h"
#include "dbus/doctor-rows.h"
#include "dbus/doctor.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "shim/rows.h"
#include "shim/verb.h"
#include "shim/verbs.h"

/* Of this connection: there is one call. */
#define CALL "doctor"

enum { STATUS = 1 };

typedef struct Doctor {
	const SandboxCall *call;
	const SandboxContext *context;
	ClientTable rows;
	size_t n_shown;
} Doctor;

/* What was added since. Return: 0 or -ENOMEM. */
static int show_new(Doctor *doctor)
{
	int r = 0;

	for (; !doctor->call->json && doctor->n_shown < doctor->rows.n_rows && r != -ENOMEM;
	     doctor->n_shown++)
		r = rows_print(doctor->context, &rows_form_doctor,
			       doctor->rows.cells + doctor->n_shown * DOCTOR_COLUMNS);
	return r == -ENOMEM ? r : 0;
}

static int on_row(void *userdata, const ClientTable *row)
{
	Doctor *doctor = userdata;
	int r = doctor_rows_take(&doctor->rows, row->cells);

	return r == -EEXIST ? 0 : r < 0 ? r : show_new(doctor);
}

/* Whoever read the output has gone, and with the command the question. */
static int on_wait(void *userdata, sd_bus *bus)
{
	const Doctor *doctor = userdata;
	int r = verb_wait(doctor->context, bus);

	return r > 0 ? -EPIPE : r;
}

static int take_answer(Doctor *doctor, sd_bus_message *reply)
{
	_cleanup_(client_table_done) ClientTable answer = { 0 };
	int r = client_read_doctor(reply, &answer);

	/* What did not come by itself is in the answer. */
	for (size_t i = 0; r >= 0 && i < answer.n_rows; i++) {
		r = doctor_rows_take(&doctor->rows, answer.cells + i * DOCTOR_COLUMNS);
		if (r == -EEXIST)
			r = 0;
	}
	return r < 0 ? r : show_new(doctor);
}

static int ask(Doctor *doctor, sd_bus *bus, sd_bus_error *reterr)
{
	const SandboxContext *context = doctor->context;
	ClientDoctor asked = { .agent = doctor->call->argument, .call = CALL };
	_cleanup_message_ sd_bus_message *message = NULL, *reply = NULL;
	int r;

	/* Where the person stands here says nothing about there. */
	if (!context->host) {
		asked.environment = context->environment;
		asked.directory = context->directory;
	}
	r = client_doctor_message(bus, &asked, &message);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	r = client_call_for_rows(bus, message, CALL, on_row, on_wait, doctor, &reply, reterr);
	if (r >= 0)
		r = take_answer(doctor, reply);
	return r < 0 && !sd_bus_error_is_set(reterr) ? sd_bus_error_set_errno(reterr, r) : r;
}

/* What is missing where nobody answered. */
static int add_installed(Doctor *doctor)
{
	int r = doctor->context->host ? 0 : doctor_rows_installed(&doctor->rows);

	return r < 0 ? r : show_new(doctor);
}

/* Nobody answers, or not as the service does: a row of its own, and what can be seen without. */
static int add_failure(Doctor *doctor, sd_bus *bus, int error, const sd_bus_error *e)
{
	const char *host = doctor->context->host;
	_cleanup_free_ char *sentence =
		host ? client_remote_sentence(host, error, e) : client_sentence_from(bus, error, e);
	int r = -ENOMEM;

	if (sentence)
		r = doctor_rows_add_sentence(&doctor->rows, client_doctor_row(error, e), "fail", sentence);
	return r < 0 && r != -EEXIST ? r : add_installed(doctor);
}

/* Return: 1 when the service has its name, or nobody; 0 when another has it, which is not asked; -ENOMEM. */
static int look_at_owner(Doctor *doctor, sd_bus *bus)
{
	_cleanup_free_ char *problem = NULL;
	int r;

	/* The number of a process there is nobody's here. */
	if (doctor->context->host || client_check_owner(bus, &problem) >= 0)
		return 1;
	r = problem ? doctor_rows_add_sentence(&doctor->rows, DOCTOR_NAME, "fail", problem) : -ENOMEM;
	return r < 0 ? r : add_installed(doctor);
}

static int examine(Doctor *doctor)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r = 0;

	if (!doctor->context->host)
		r = doctor_rows_path(&doctor->rows, doctor->context->environment);
	if (r >= 0)
		r = show_new(doctor);
	if (r < 0)
		return r;
	r = verb_open(doctor->context, &bus, &error);
	if (r >= 0) {
		r = look_at_owner(doctor, bus);
		if (r <= 0)
			return r;
		r = ask(doctor, bus, &error);
	}
	if (r >= 0 || r == -EPIPE || r == -ENOMEM)
		return r;
	return add_failure(doctor, bus, r, &error);
}

/* ---- the sum ---- */

static unsigned count(const Doctor *doctor, const char *status)
{
	unsigned n = 0;

	for (size_t i = 0; i < doctor->rows.n_rows; i++)
		n += streq(doctor->rows.cells[i * DOCTOR_COLUMNS + STATUS], status);
	return n;
}

static int show_sum(const Doctor *doctor, unsigned failed)
{
	static const PrintColumn columns[] = { { NULL, "ok", PRINT_FLAG, false } };
	static const PrintColumn row_columns[] = {
		{ NULL, "id", PRINT_TEXT, false },    { NULL, "status", PRINT_RESULT, false },
		{ NULL, "title", PRINT_TEXT, false }, { NULL, "detail", PRINT_TEXT, false },
		{ NULL, "fix", PRINT_TEXT, false },
	};
	const PrintTable rows = { row_columns, DOCTOR_COLUMNS, doctor->rows.n_rows,
				  (const char *const *)doctor->rows.cells };
	const char *const ok = failed == 0 ? "true" : "false";
	const SandboxContext *context = doctor->context;
	int r;

	if (doctor->call->json)
		return print_json_document(context->out, &(PrintTable){ columns, 1, 1, &ok },
					   &(PrintPart){ "rows", &rows }, 1, &context->style);
	/* Fifty rows have gone by: what matters stands at the end, where it is read. */
	r = rows_repeat(context, &rows_form_doctor, &doctor->rows, "fail", "Wrong");
	if (r == 0)
		r = rows_repeat(context, &rows_form_doctor, &doctor->rows, "warn", "To look at");
	if (r == 0)
		fprintf(context->out, "\n%u ok, %u to note, %u to look at, %u wrong\n", count(doctor, "ok"),
			count(doctor, "note"), count(doctor, "warn"), failed);
	return r == -ENOMEM ? r : 0;
}

static bool is_agent(const char *name)
{
	return streq(name, "claude") || streq(name, "codex") || streq(name, "pi") || streq(name, "shell");
}

int verb_doctor(const SandboxCall *call, const SandboxContext *context)
{
	Doctor doctor = { .call = call, .context = context };
	unsigned failed;
	int r;

	if (call->argument && !is_agent(call->argument))
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'%s' is no agent; they are claude, codex, pi and shell", call->argument);
	if (!context->host && access(CS_MARKER_PATH, F_OK) == 0)
		return verb_refuse(context, CS_EXIT_REFUSED,
				   "this is the inside of a jail, where no bus is; run it outside");
	r = examine(&doctor);
	failed = count(&doctor, "fail");
	if (r >= 0)
		r = show_sum(&doctor, failed);
	client_table_done(&doctor.rows);
	if (r == -ENOMEM)
		return verb_complain_memory(context);
	if (r == -EPIPE)
		return CS_EXIT_REFUSED;
	return failed > 0 ? CS_EXIT_FOUND : 0;
}
