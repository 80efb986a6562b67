/* SPDX-License-Identifier: MIT */

/* verify: check a jail, a new one or one that runs, row by row as they come. */

#include "dbus/client-verify.h"
#include "dbus/wire.h"
#include "service/link/rows.h"
#include "shim/rows.h"
#include "shim/verb.h"
#include "shim/verbs.h"

/* Of this connection: there is one call. */
#define CALL "verify"
#define PROBE_PREFIX 'p'

enum { NUMBER, STATUS, TITLE, DETAIL, FIX, CELLS };

/* Without an argument the first of these that is installed. */
static const char *const agents[] = { "claude", "codex", "pi", "shell" };

typedef struct Verify {
	const SandboxCall *call;
	const SandboxContext *context;
	size_t n_shown; /* rows that came and were shown */
} Verify;

static int on_row(void *userdata, const ClientTable *row)
{
	Verify *verify = userdata;

	verify->n_shown++;
	return verify->call->json ? 0 : rows_print(verify->context, &rows_form_verify, row->cells);
}

/* Whoever read the output has gone, and with the command the checks end. */
static int on_wait(void *userdata, sd_bus *bus)
{
	const Verify *verify = userdata;
	int r = verb_wait(verify->context, bus);

	return r > 0 ? -EPIPE : r;
}

static bool is_agent(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(agents); i++)
		if (streq(agents[i], name))
			return true;
	return false;
}

/* ---- the sum ---- */

typedef struct Sum {
	unsigned checks, passed, probes, blocked, unclear;
} Sum;

static Sum sum_up(const ClientTable *rows)
{
	Sum sum = { 0 };

	for (size_t i = 0; i < rows->n_rows; i++) {
		char *const *cells = rows->cells + i * CELLS;
		bool good = !streq(cells[STATUS], "fail"), note = streq(cells[STATUS], "note");

		if (*cells[NUMBER] == PROBE_PREFIX) {
			sum.probes++;
			sum.blocked += good && !note;
			sum.unclear += note;
		} else if (*cells[NUMBER] >= '0' && *cells[NUMBER] <= '9') {
			sum.checks++;
			sum.passed += good;
		}
	}
	return sum;
}

static void print_sum(const SandboxContext *context, const ClientVerdict *verdict)
{
	const Sum sum = sum_up(&verdict->rows);
	/* Those that never came have not passed. */
	unsigned checks = MAX_OF(sum.checks, (unsigned)ROW_CHECKS);

	fprintf(context->out, "\n%u of %u passed", sum.passed, checks);
	if (sum.probes > 0)
		fprintf(context->out, ", %u of %u probes blocked", sum.blocked, sum.probes);
	if (sum.unclear > 0)
		fprintf(context->out, ", %u inconclusive", sum.unclear);
	/* The last line is what people read. */
	if (!verdict->passed && sum.passed == checks && sum.blocked + sum.unclear == sum.probes)
		fprintf(context->out, "; FAILED, since the checks did not come to their end");
	fprintf(context->out, "\n");
}

static int print_document(const SandboxContext *context, const ClientVerify *asked,
			  const ClientVerdict *verdict)
{
	static const PrintColumn columns[] = {
		{ NULL, "passed", PRINT_FLAG, false },
		{ NULL, "agent", PRINT_TEXT, false },
		{ NULL, "session", PRINT_TEXT, false },
	};
	static const PrintColumn row_columns[] = {
		{ NULL, "number", PRINT_TEXT, false }, { NULL, "status", PRINT_RESULT, false },
		{ NULL, "title", PRINT_TEXT, false },  { NULL, "detail", PRINT_TEXT, false },
		{ NULL, "fix", PRINT_TEXT, false },
	};
	const char *const cells[] = { verdict->passed ? "true" : "false",
				      asked->session ? NULL : asked->agent, asked->session };
	const PrintTable rows = { row_columns, CELLS, verdict->rows.n_rows,
				  (const char *const *)verdict->rows.cells };

	return print_json_document(context->out, &(PrintTable){ columns, ELEMENTSOF(columns), 1, cells },
				   &(PrintPart){ "rows", &rows }, 1, &context->style);
}

static int show(const Verify *verify, const ClientVerify *asked, const ClientVerdict *verdict)
{
	const SandboxContext *context = verify->context;
	const ClientTable *rows = &verdict->rows;
	int r = 0;

	if (verify->call->json) {
		r = print_document(context, asked, verdict);
	} else {
		/* What did not come by itself is in the answer. */
		for (size_t i = verify->n_shown; r == 0 && i < rows->n_rows; i++)
			r = rows_print(context, &rows_form_verify, rows->cells + i * CELLS);
		if (r == 0)
			r = rows_repeat(context, &rows_form_verify, rows, "fail", "Failed");
		print_sum(context, verdict);
	}
	if (r == -ENOMEM)
		return verb_complain_memory(context);
	return verdict->passed ? 0 : CS_EXIT_FOUND;
}

/* ---- the call ---- */

static int ask(Verify *verify, sd_bus *bus, ClientVerify *asked, ClientVerdict *ret, sd_bus_error *reterr)
{
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	do {
		_cleanup_message_ sd_bus_message *message = NULL;

		r = client_verify_message(bus, asked, &message);
		if (r < 0)
			return sd_bus_error_set_errno(reterr, r);
		r = client_call_for_rows(bus, message, CALL, on_row, on_wait, verify, &reply, reterr);
	} while (r < 0 && verb_asks(verify->context, &agent, &asked->interactive, reterr));
	if (r < 0)
		return r;
	r = client_read_verdict(reply, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

static int answer(const Verify *verify, const ClientVerify *asked, const ClientVerdict *verdict, int r,
		  const sd_bus_error *error)
{
	if (r == -EPIPE)
		return CS_EXIT_REFUSED;
	return r < 0 ? verb_complain(verify->context, r, error) : show(verify, asked, verdict);
}

static int verify_session(Verify *verify, bool probes)
{
	_cleanup_(client_verdict_done) ClientVerdict verdict = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	ClientVerify asked = { .probes = probes, .call = CALL };
	int r;

	r = verb_find_session(verify->context, verify->call->argument, &bus, &id);
	if (r != 0)
		return r;
	asked.session = id;
	r = ask(verify, bus, &asked, &verdict, &error);
	return answer(verify, &asked, &verdict, r, &error);
}

static int verify_agent(Verify *verify, bool probes)
{
	const SandboxContext *context = verify->context;
	const char *const named[] = { verify->call->argument };
	const char *const *wanted = *named ? named : agents;
	size_t n = *named ? 1 : ELEMENTSOF(agents);
	_cleanup_(client_verdict_done) ClientVerdict verdict = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	ClientVerify asked;
	int r;

	if (context->host)
		return verb_refuse(
			context, CS_EXIT_USAGE,
			"a new jail is made on the machine where it is asked for; name a session of "
			"%s by its id, or log in there",
			context->host);
	if (!context->directory)
		return verb_refuse(context, CS_EXIT_REFUSED,
				   "the current directory cannot be told; change to one that exists");
	r = verb_open(context, &bus, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	for (size_t i = 0; i < n; i++) {
		asked = (ClientVerify){ .agent = wanted[i],
					.environment = context->environment,
					.directory = context->directory,
					.probes = probes,
					.call = CALL };
		sd_bus_error_free(&error);
		r = ask(verify, bus, &asked, &verdict, &error);
		if (r >= 0 || !sd_bus_error_has_name(&error, CS_ERROR_AGENT_MISSING))
			break;
	}
	return answer(verify, &asked, &verdict, r, &error);
}

int verb_verify(const SandboxCall *call, const SandboxContext *context)
{
	Verify verify = { .call = call, .context = context };
	bool probes = call->option;

	if (!call->argument || is_agent(call->argument))
		return verify_agent(&verify, probes);
	if (!client_id_is_prefix(call->argument))
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'%s' is no agent and no session's id; agents are claude, codex, pi and "
				   "shell, and 'claude-sandbox sessions' lists sessions",
				   call->argument);
	return verify_session(&verify, probes);
}
