/* SPDX-License-Identifier: MIT */
#include "shim/sandbox.h"

#include "dbus/names.h"

static int refuse_verb(const char *name, char **ret_problem)
{
	_cleanup_free_ char *names = NULL;

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

/* Return: 1 when next was taken as well; 0; a negative errno. */
static int parse_option(const char *option, const char *next, SandboxCall *call, char **ret_problem)
{
	int r;

	r = parse_value(option, next, call, ret_problem);
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
	else if (streq(option, "--help") || streq(option, "-h"))
		call->help = true;
	else if (streq(option, "--version") && !call->verb)
		call->version = true;
	else
		return refuse(ret_problem, -EINVAL, "there is no option '%s'; see 'claude-sandbox --help'",
			      option);
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
		return refuse_verb(NULL, ret_problem);
	if (call->json && !verb->has_json)
		return refuse(ret_problem, -EINVAL, "'%s' has no --json; leave it out", verb->name);
	if (verb->argument && !call->argument)
		return refuse(ret_problem, -EINVAL, "'%s' needs %s; usage: claude-sandbox %s %s", verb->name,
			      verb->argument, verb->name, verb->synopsis);
	return 0;
}

int sandbox_parse(int argc, char *const *argv, SandboxCall *ret, char **ret_problem)
{
	SandboxCall call = { 0 };
	bool options = true;
	int r;

	for (int i = 1; i < argc; i++) {
		if (options && streq(argv[i], "--")) {
			options = false;
		} else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
			r = parse_option(argv[i], argv[i + 1], &call, ret_problem);
			if (r < 0)
				return r;
			i += r;
		} else if (!call.verb) {
			call.verb = sandbox_verb_find(argv[i]);
			if (!call.verb)
				return refuse_verb(argv[i], ret_problem);
			if (call.verb->passes_on) {
				parse_passed_on(argv + i + 1, &call);
				break;
			}
		} else if (call.verb->takes_argument && !call.argument) {
			call.argument = argv[i];
		} else if (call.verb->takes_second && !call.second) {
			call.second = argv[i];
		} else if (call.verb->takes_third && !call.third) {
			call.third = argv[i];
		} else {
			return refuse(ret_problem, -EINVAL,
				      "'%s' is one argument too many; usage: claude-sandbox %s %s", argv[i],
				      call.verb->name, call.verb->synopsis);
		}
	}
	r = check(&call, ret_problem);
	if (r < 0)
		return r;

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
	fputs("Usage: claude-sandbox [--json] VERB [ARGUMENT...]\n\n"
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
	      "  -h, --help              show this help, or that of the verb\n"
	      "  --version               show this command's version\n\n"
	      "Exit status: 0 fine, 1 something is wrong, 2 usage, 125 could not run.\n"
	      "See claude-sandbox(1), claude-sandbox.conf(5).\n",
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

int sandbox_run(int argc, char *const *argv, const SandboxContext *context)
{
	_cleanup_free_ char *problem = NULL;
	SandboxCall call;
	int status = 0;

	if (sandbox_parse(argc, argv, &call, &problem) < 0) {
		print_complaint(context->err, problem);
		return CS_EXIT_USAGE;
	}
	if (call.help)
		sandbox_help(context->out, call.verb);
	else if (call.version)
		fputs("claude-sandbox " CS_VERSION "\n", context->out);
	else
		status = call.verb->run(&call, context);

	if (fflush(context->out) != 0 || ferror(context->out)) {
		print_complaint(context->err, "the output cannot be written; look at where it goes");
		return CS_EXIT_REFUSED;
	}
	return status;
}
