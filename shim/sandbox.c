/* SPDX-License-Identifier: MIT */
#include "shim/sandbox.h"

#include <poll.h>

#include "dbus/client-remote.h"
#include "dbus/names.h"
#include "shim/nearest.h"

#define NAMES_MOST 64u

static const char *nearest_verb(const char *name)
{
	const char *names[NAMES_MOST + 1] = { NULL };

	for (size_t i = 0; i < NAMES_MOST && sandbox_verb_at(i); i++)
		names[i] = sandbox_verb_at(i)->name;
	return nearest_name(name, names);
}

int sandbox_refuse_verb(const char *name, char **ret_problem)
{
	const char *nearest = name ? nearest_verb(name) : NULL;
	_cleanup_free_ char *names = NULL;

	if (nearest)
		return refuse(ret_problem, -EINVAL, "there is no verb '%s'; did you mean '%s'?", name,
			      nearest);

	for (size_t i = 0; sandbox_verb_at(i); i++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", names ? names : "", names ? ", " : "",
			     sandbox_verb_at(i)->name) < 0)
			return -ENOMEM;
		free(names);
		names = longer;
	}
	return name ? refuse(ret_problem, -EINVAL, "there is no verb '%s'; the verbs are: %s", name, names)
		    : refuse(ret_problem, -EINVAL, "a verb is missing; the verbs are: %s", names);
}

static bool has_option(const SandboxVerb *verb, const char *option)
{
	for (const char *const *own = verb ? verb->options : NULL; own && *own; own++)
		if (streq(*own, option))
			return true;
	return false;
}

#define DASHES "--"

static int refuse_option(const char *option, const SandboxVerb *verb, char **ret_problem)
{
	/* The dashes are in all of them: without them a few letters weigh more. */
	const char *names[NAMES_MOST + 1] = { "json", "utc", "help", "host", "version" };
	const char *nearest = NULL, *rest = starts_with(option, DASHES), *name;
	size_t n = verb ? 4 : 5;

	for (const char *const *own = verb ? verb->options : NULL; own && *own && n < NAMES_MOST - 2; own++)
		if ((name = starts_with(*own, DASHES)))
			names[n++] = name;
	if (verb && verb->value_option)
		names[n++] = verb->value_option + strlen(DASHES);
	if (verb && verb->second_value_option)
		names[n++] = verb->second_value_option + strlen(DASHES);
	names[n] = NULL;
	if (rest)
		nearest = nearest_name(rest, names);
	return nearest ? refuse(ret_problem, -EINVAL, "there is no option '%s'; did you mean '" DASHES "%s'?",
				option, nearest)
		       : refuse(ret_problem, -EINVAL, "there is no option '%s'; see 'claude-sandbox --help'",
				option);
}

/* "--name VALUE" or "--name=VALUE". Return: 1 when next was taken; 0; -ENOENT for another option. */
static int parse_one_value(const char *option, const char *name, const char *next, const SandboxVerb *verb,
			   const char **ret, char **ret_problem)
{
	const char *rest = name ? starts_with(option, name) : NULL;

	if (!rest || (*rest != '\0' && *rest != '='))
		return -ENOENT;
	*ret = *rest == '=' ? rest + 1 : next;
	if (!*ret || !**ret)
		return refuse(ret_problem, -EINVAL, "'%s' needs a value; usage: claude-sandbox %s %s", name,
			      verb->name, verb->synopsis);
	return *rest == '\0';
}

static int parse_value(const char *option, const char *next, SandboxCall *call, char **ret_problem)
{
	const SandboxVerb *verb = call->verb;
	int r;

	if (!verb)
		return -ENOENT;
	r = parse_one_value(option, verb->value_option, next, verb, &call->value, ret_problem);
	return r != -ENOENT ? r
			    : parse_one_value(option, verb->second_value_option, next, verb,
					      &call->second_value, ret_problem);
}

/* "-H HOST", "-HHOST", "--host HOST", "--host=HOST". Return as parse_one_value(). */
static int parse_host(const char *option, const char *next, SandboxCall *call, char **ret_problem)
{
	const char *rest = starts_with(option, "--host"), *joined = NULL;

	if (rest && *rest == '=')
		joined = rest + 1;
	else if (!rest || *rest != '\0') {
		rest = starts_with(option, "-H");
		if (!rest)
			return -ENOENT;
		joined = *rest ? rest : NULL;
	}
	call->host = joined ?: next;
	if (!call->host || !*call->host)
		return refuse(ret_problem, -EINVAL,
			      "'%s' needs a machine; write [USER@]HOST[:PORT] behind it",
			      joined ? "--host" : option);
	return joined == NULL;
}

/* Return: 1 when next was taken as well; 0; a negative errno. */
static int parse_option(const char *option, const char *next, SandboxCall *call, char **ret_problem)
{
	int r;

	r = parse_value(option, next, call, ret_problem);
	if (r == -ENOENT)
		r = parse_host(option, next, call, ret_problem);
	if (r != -ENOENT)
		return r;
	if (has_option(call->verb, option)) {
		if (call->option && !streq(call->option, option))
			return refuse(ret_problem, -EINVAL, "%s and %s exclude each other", call->option,
				      option);
		call->option = option;
		return 0;
	}
	if (streq(option, "--json"))
		call->json = true;
	else if (streq(option, "--utc"))
		call->utc = true;
	else if (streq(option, "--help") || streq(option, "-h"))
		call->help = true;
	else if (streq(option, "--version") && !call->verb)
		call->version = true;
	else
		return refuse_option(option, call->verb, ret_problem);
	return 0;
}

static void parse_passed_on(char *const *arguments, SandboxCall *call)
{
	if (*arguments && streq(*arguments, "--help")) {
		call->help = true;
		return;
	}
	if (*arguments && streq(*arguments, "--"))
		arguments++;
	call->arguments = arguments;
}

static int check(const SandboxCall *call, char **ret_problem)
{
	const SandboxVerb *verb = call->verb;

	if (call->help || call->version)
		return 0;
	if (!verb)
		return sandbox_refuse_verb(NULL, ret_problem);
	if (call->host && !client_remote_is_valid(call->host))
		return refuse(ret_problem, -EINVAL,
			      "'%s' is not [USER@]HOST[:PORT]; write it as for ssh, without options",
			      call->host);
	if (call->host && verb->here)
		return refuse(ret_problem, -EINVAL, "'%s' takes no -H: %s; log in there and run it",
			      verb->name, verb->here);
	if (call->json && !verb->has_json)
		return refuse(ret_problem, -EINVAL, "'%s' has no --json; leave it out", verb->name);
	if (verb->argument && !call->argument)
		return refuse(ret_problem, -EINVAL, "the verb '%s' needs %s; usage: claude-sandbox %s %s",
			      verb->name, verb->argument, verb->name, verb->synopsis);
	return 0;
}

/* What was written without quotes is one text all the same. */
static int add_word(SandboxCall *call, const char *word)
{
	char *joined;

	if (!call->third) {
		call->third = word;
		return 0;
	}
	if (asprintf(&joined, "%s %s", call->third, word) < 0)
		return -ENOMEM;
	free(call->joined);
	call->third = call->joined = joined;
	return 0;
}

static int parse_words(int argc, char *const *argv, SandboxCall *call, char **ret_problem)
{
	bool options = true;
	int r;

	for (int i = 1; i < argc; i++) {
		if (options && streq(argv[i], "--")) {
			options = false;
		} else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
			r = parse_option(argv[i], argv[i + 1], call, ret_problem);
			if (r < 0)
				return r;
			i += r;
		} else if (!call->verb) {
			call->verb = sandbox_verb_find(argv[i]);
			if (!call->verb)
				return sandbox_refuse_verb(argv[i], ret_problem);
			if (call->verb->passes_on) {
				parse_passed_on(argv + i + 1, call);
				break;
			}
		} else if (call->verb->takes_argument && !call->argument) {
			call->argument = argv[i];
		} else if (call->verb->takes_second && !call->second) {
			call->second = argv[i];
		} else if (call->verb->takes_text) {
			r = add_word(call, argv[i]);
			if (r < 0)
				return r;
		} else {
			return refuse(ret_problem, -EINVAL,
				      "'%s' is one argument too many; usage: claude-sandbox %s %s", argv[i],
				      call->verb->name, call->verb->synopsis);
		}
	}
	return check(call, ret_problem);
}

int sandbox_parse(int argc, char *const *argv, SandboxCall *ret, char **ret_problem)
{
	SandboxCall call = { 0 };
	int r = parse_words(argc, argv, &call, ret_problem);

	if (r < 0) {
		free(call.joined);
		return r;
	}
	*ret = call;
	return 0;
}

void sandbox_help(FILE *out, const SandboxVerb *verb)
{
	if (verb) {
		fprintf(out, "Usage: claude-sandbox %s %s\n\nTo %s.\n%s", verb->name, verb->synopsis,
			verb->summary, verb->details);
		return;
	}
	fputs("Usage: claude-sandbox [-H HOST] [--json] VERB [ARGUMENT...]\n\n"
	      "Sessions of coding agents in their jails. To start one, type the agent's name: claude.\n\n"
	      "Verbs:\n",
	      out);
	for (size_t i = 0; (verb = sandbox_verb_at(i)); i++) {
		int width = fprintf(out, "  %s %s", verb->name, verb->passes_on ? verb->synopsis : "");

		if (verb->argument)
			width += fprintf(out, "%s", verb->argument);
		fprintf(out, "%*s%s\n", 26 - width, "", verb->summary);
	}
	fputs("\nOptions:\n"
	      "  --json                  write JSON instead of lines\n"
	      "  --utc                   show times in UTC, not in the time zone of this terminal\n"
	      "  -H, --host [USER@]HOST  ask the service of another machine, over ssh\n"
	      "  -h, --help              show this help, or that of the verb\n"
	      "  --version               show this command's version\n\n"
	      "Exit status: 0 fine, 1 something is wrong, 2 usage, 125 could not run.\n"
	      "See claude-sandbox(1), claude-sandbox.conf(5); on one screen: claude-sandbox-tui(1).\n",
	      out);
}

int sandbox_read_link(const char *path, char **ret)
{
	_cleanup_free_ char *target = NULL;

	/* A link may be longer the next time: try again with more room. */
	for (size_t size = 256; size <= 65536; size *= 2) {
		ssize_t n;

		free(target);
		target = malloc(size);
		if (!target)
			return -ENOMEM;
		n = readlink(path, target, size);
		if (n < 0)
			return -errno;
		if ((size_t)n < size) {
			target[n] = '\0';
			*ret = TAKE_PTR(target);
			return 0;
		}
	}
	return -ENAMETOOLONG;
}

/* The pipe's other end was closed, as head(1) does: that is no mistake, whoever had SIGPIPE ignored. */
static bool reader_is_gone(FILE *out)
{
	struct pollfd end = { .fd = fileno(out) };

	return end.fd >= 0 && poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLHUP));
}

int sandbox_run(int argc, char *const *argv, const SandboxContext *context)
{
	_cleanup_free_ char *problem = NULL, *joined = NULL;
	SandboxContext there = *context;
	SandboxCall call;
	int status = 0;

	if (sandbox_parse(argc, argv, &call, &problem) < 0) {
		print_complaint(context->err, problem);
		return CS_EXIT_USAGE;
	}
	joined = call.joined;
	there.host = call.host;
	/* Where the person stands here says nothing about the sessions there. */
	if (call.host)
		there.directory = NULL;
	if (call.utc)
		print_utc();
	if (call.help)
		sandbox_help(context->out, call.verb);
	else if (call.version)
		fputs("claude-sandbox " CS_VERSION "\n", context->out);
	else
		status = call.verb->run(&call, &there);

	if (fflush(context->out) != 0 || ferror(context->out)) {
		if (reader_is_gone(context->out))
			return CS_EXIT_REFUSED;
		print_complaint(context->err, "the output cannot be written; look at where it goes");
		return CS_EXIT_REFUSED;
	}
	return status;
}
