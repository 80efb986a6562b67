/* SPDX-License-Identifier: MIT */
#include "shim/sandbox.h"

#include "dbus/names.h"
#include "shim/verbs.h"

static const char *const install_options[] = { "--list", "--remove", NULL };

static const SandboxVerb verbs[] = {
	{
		.name = "shell",
		.synopsis = "[ARGUMENT...]",
		.summary = "look around in a jail made for this directory",
		.details =
			"Starts bash as an agent would be started: the same mounts, variables and network.\n"
			"Everything behind 'shell' goes to bash; its exit status is the command's.\n",
		.passes_on = true,
		.run = verb_shell,
	},
	{
		.name = "sessions",
		.synopsis = "[--json]",
		.summary = "list the sessions that you may see",
		.details = "Your own sessions; everybody's for root.\n",
		.has_json = true,
		.run = verb_sessions,
	},
	{
		.name = "stop",
		.synopsis = "[--json] ID",
		.summary = "end a session",
		.details = "ID is a session's id or its beginning, where only one session begins so.\n"
			   "The agent is hung up on as if its terminal closed, and killed if it stays;\n"
			   "the command returns when nothing of it runs. Another user's session, by its\n"
			   "whole id, takes an administrator's password.\n",
		.argument = "ID",
		.takes_argument = true,
		.has_json = true,
		.run = verb_stop,
	},
	{
		.name = "allow-ip",
		.synopsis = "[--json] [list]",
		.summary = "list the internal addresses that sessions may reach",
		.details = "Each with its comment and with where it is set.\n",
		.takes_argument = true,
		.has_json = true,
		.run = verb_allow_ip,
	},
	{
		.name = "policy",
		.synopsis = "[--json]",
		.summary = "show every setting, its value and where it comes from",
		.details = "Exits with 1 when the configuration has an error: no session starts until it is "
			   "mended.\n",
		.has_json = true,
		.run = verb_policy,
	},
	{
		.name = "install",
		.synopsis = "[--json] AGENT [VERSION] | --list | --remove AGENT",
		.summary = "install an agent for every user, from npm's registry",
		.details = "AGENT is claude, codex or pi; VERSION a version or a tag of the registry, else "
			   "latest.\n"
			   "Needs root and npm. No script of a package is run and every archive is checked\n"
			   "against its digest; running sessions keep the version that they have.\n"
			   "--list shows what is installed, for everybody and for yourself.\n"
			   "--remove takes away what was installed for everybody.\n",
		.takes_argument = true,
		.takes_second = true,
		.options = install_options,
		.has_json = true,
		.run = verb_install,
	},
	{
		.name = "version",
		.synopsis = "[--json]",
		.summary = "show the versions of this command and of the service",
		.details = "Exits with 1 when the service does not answer or has another version.\n",
		.has_json = true,
		.run = verb_version,
	},
	{
		.name = "help",
		.synopsis = "[VERB]",
		.summary = "show this help, or that of one verb",
		.details = "",
		.takes_argument = true,
		.run = verb_help,
	},
};

const SandboxVerb *sandbox_verb_at(size_t index)
{
	return index < ELEMENTSOF(verbs) ? &verbs[index] : NULL;
}

const SandboxVerb *sandbox_verb_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		if (streq(verbs[i].name, name))
			return &verbs[i];
	}
	return NULL;
}

static int refuse_verb(const char *name, char **ret_problem)
{
	_cleanup_free_ char *names = NULL;

	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", names ? names : "", names ? ", " : "", verbs[i].name) < 0)
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

static int parse_option(const char *option, SandboxCall *call, char **ret_problem)
{
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
			r = parse_option(argv[i], &call, ret_problem);
			if (r < 0)
				return r;
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
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		int width =
			fprintf(out, "  %s %s", verbs[i].name, verbs[i].passes_on ? verbs[i].synopsis : "");

		if (verbs[i].argument)
			width += fprintf(out, "%s", verbs[i].argument);
		fprintf(out, "%*s%s\n", 26 - width, "", verbs[i].summary);
	}
	fputs("\nOptions:\n"
	      "  --json                  write JSON instead of lines\n"
	      "  -h, --help              show this help, or that of the verb\n"
	      "  --version               show this command's version\n\n"
	      "Exit status: 0 fine, 1 something is wrong, 2 usage, 125 could not run.\n"
	      "See claude-sandbox(1), claude-sandbox.conf(5).\n",
	      out);
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
