/* SPDX-License-Identifier: MIT */
#include "shim/verb.h"

#include <poll.h>
#include <stdarg.h>
#include <time.h>

#include "base/paths.h"
#include "dbus/client-remote.h"
#include "dbus/names.h"
#include "dbus/why.h"

int verb_open(const SandboxContext *context, sd_bus **ret, sd_bus_error *reterr)
{
	return context->open_bus(context->host, ret, reterr);
}

int verb_complain(const SandboxContext *context, int error, const sd_bus_error *e)
{
	_cleanup_free_ char *sentence =
		context->host ? client_remote_sentence(context->host, error, e) : client_sentence(error, e);

	print_complaint(context->err, sentence);
	return sd_bus_error_has_name(e, CS_ERROR_NO_SUCH_SESSION) ? CS_EXIT_FOUND : CS_EXIT_REFUSED;
}

int verb_complain_memory(const SandboxContext *context)
{
	print_complaint(context->err, NULL);
	return CS_EXIT_REFUSED;
}

int verb_refuse(const SandboxContext *context, int status, const char *format, ...)
{
	_cleanup_free_ char *sentence = NULL;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vasprintf(&sentence, format, arguments);
	va_end(arguments);
	if (n < 0)
		sentence = NULL;
	print_complaint(context->err, sentence);
	return status;
}

/* An error of the stream is found by sandbox_run(), which looks at every verb's output. */
int verb_show_table(const SandboxCall *call, const SandboxContext *context, const PrintTable *table,
		    const char *empty)
{
	int r = call->json ? print_json(context->out, table, &context->style)
			   : print_table(context->out, table, &context->style, empty);

	return r == -ENOMEM ? verb_complain_memory(context) : 0;
}

/* As sd_bus_wait(3) with sd_bus_get_fd(3), and an eye on the output. */
int verb_wait(const SandboxContext *context, sd_bus *bus)
{
	struct pollfd polls[] = { { .fd = sd_bus_get_fd(bus) }, { .fd = fileno(context->out) } };
	struct timespec now, left = { 0 };
	uint64_t until, now_usec;
	int events = sd_bus_get_events(bus), r;

	if (polls[0].fd < 0 || events < 0)
		return polls[0].fd < 0 ? polls[0].fd : events;
	polls[0].events = (short)events;
	r = sd_bus_get_timeout(bus, &until);
	if (r < 0 || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return r < 0 ? r : -errno;
	now_usec = (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
	if (until != UINT64_MAX && until > now_usec) {
		left.tv_sec = (time_t)((until - now_usec) / USEC_PER_SEC);
		left.tv_nsec = (long)((until - now_usec) % USEC_PER_SEC * NSEC_PER_USEC);
	}
	if (ppoll(polls, ELEMENTSOF(polls), until == UINT64_MAX ? NULL : &left, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	return polls[1].revents & (POLLERR | POLLHUP) ? 1 : 0;
}

/*
 * The only session of all, or of those whose workspace holds the current directory; one that ends has nothing
 * to say any more. Return: 0 or an errno.
 */
static int choose_session(const SandboxContext *context, const ClientSessions *sessions, const char **ret)
{
	const char *any = NULL, *here = NULL;
	size_t n = 0, n_here = 0;

	for (size_t i = 0; i < sessions->n; i++) {
		const ClientSession *session = &sessions->items[i];

		if (streq(session->state, "ending"))
			continue;
		any = session->id;
		n++;
		if (!context->directory || !path_is_within(context->directory, session->workspace))
			continue;
		here = session->id;
		n_here++;
	}
	if (n == 0)
		return -ENOENT;
	if (n > 1 && n_here != 1)
		return -ENOTUNIQ;
	*ret = n == 1 ? any : here;
	return 0;
}

bool verb_asks(const SandboxContext *context, TextAgent *agent, bool *asked, sd_bus_error *error)
{
	if (*asked || !context->interactive || !client_needs_password(error))
		return false;
	*asked = true;
	sd_bus_error_free(error);
	/* One of this machine cannot ask for another's. */
	if (!context->host && context->agent(agent) >= 0)
		text_agent_wait(agent);
	return true;
}

int verb_list_all(const SandboxContext *context, sd_bus *bus, ClientSessions *ret, sd_bus_error *reterr)
{
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	bool asked = false;
	int r;

	do
		r = client_list_all_sessions(bus, asked, ret, reterr);
	while (r < 0 && verb_asks(context, &agent, &asked, reterr));
	return r;
}

/* A whole id: of one's own, or one for which somebody types a password where a person is there to do it. */
static int look_for(const SandboxContext *context, sd_bus *bus, const char *id, sd_bus_error *reterr)
{
	_cleanup_(client_sessions_done) ClientSessions own = { 0 }, all = { 0 };
	const char *found;
	int r;

	if (!context->interactive)
		return 0;
	r = client_list_sessions(bus, &own, reterr);
	if (r < 0 || client_find_session(&own, id, &found) >= 0)
		return r;
	return verb_list_all(context, bus, &all, reterr);
}

static int find_among(const SandboxContext *context, const ClientSessions *sessions, const char *prefix,
		      const char **ret)
{
	int r;

	r = prefix ? client_find_session(sessions, prefix, ret) : choose_session(context, sessions, ret);
	if (r == 0)
		return 0;
	if (prefix)
		return verb_refuse(
			context, CS_EXIT_FOUND,
			"%s that you may see begins with '%s'; 'claude-sandbox sessions' lists them",
			r == -ENOENT ? "no session" : "more than one session", prefix);
	if (r == -ENOENT)
		return verb_refuse(
			context, CS_EXIT_FOUND,
			"no session that you may see runs, and only one that runs can be asked; start "
			"one");
	return verb_refuse(
		context, CS_EXIT_FOUND,
		"more than one session may be meant; name one by its id ('claude-sandbox sessions' "
		"lists them)");
}

int verb_find_session(const SandboxContext *context, const char *id, sd_bus **ret_bus, char **ret_id)
{
	_cleanup_(client_sessions_done) ClientSessions sessions = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r;

	if (id && !client_id_is_prefix(id))
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'%s' is no session's id; 'claude-sandbox sessions' lists them", id);
	r = verb_open(context, &bus, &error);
	if (r >= 0 && id && strlen(id) == CS_ID_LENGTH) {
		r = look_for(context, bus, id, &error);
	} else if (r >= 0) {
		r = client_list_sessions(bus, &sessions, &error);
		if (r >= 0) {
			r = find_among(context, &sessions, id, &id);
			if (r > 0)
				return r;
		}
	}
	if (r < 0)
		return verb_complain(context, r, &error);
	*ret_id = strdup(id);
	if (!*ret_id)
		return verb_complain_memory(context);
	*ret_bus = TAKE_PTR(bus);
	return 0;
}

int verb_list(const SandboxContext *context, const char *id, VerbList list, char **ret_id,
	      ClientTable *ret_table)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *found = NULL;
	int r;

	r = verb_find_session(context, id, &bus, &found);
	if (r != 0)
		return r;
	r = list(bus, found, ret_table, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (ret_id)
		*ret_id = TAKE_PTR(found);
	return 0;
}
