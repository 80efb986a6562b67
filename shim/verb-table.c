/* SPDX-License-Identifier: MIT */
#include "shim/sandbox.h"
#include "shim/verbs.h"

#define WHICH                                                                                  \
	"ID is a session's id or its\nbeginning; without it the only session, or that of the " \
	"current directory.\n"

static const char *const follow_options[] = { "-f", "--follow", NULL };
static const char *const verify_options[] = { "--probes", NULL };
static const char *const sessions_options[] = { "--all", NULL };
static const char *const install_options[] = { "--list", "--remove", NULL };

static const char forge_here[] = "a token is stored on the machine where it is typed";

static const SandboxVerb verbs[] = {
	{
		.name = "shell",
		.synopsis = "[ARGUMENT...]",
		.summary = "look around in a jail made for this directory",
		.details =
			"Starts bash as an agent would be started: the same mounts, variables and network.\n"
			"Everything behind 'shell' goes to bash; its exit status is the command's.\n",
		.passes_on = true,
		.here = "a jail is made on the machine where it is asked for",
		.run = verb_shell,
	},
	{
		.name = "doctor",
		.synopsis = "[--json] [AGENT]",
		.summary = "say what keeps agents from being started here, and what helps",
		.details =
			"Looks at PATH, the installation, the bus, polkit and the configuration, then "
			"starts a\n"
			"jail step by step as an agent's would be started, with another program in the "
			"agent's\n"
			"place. What is wrong is told with what helps, in the words with which a launch is\n"
			"refused. AGENT (claude, codex, pi, shell) is one that has to be there; without it "
			"any.\n"
			"Exit status 1: something is wrong.\n",
		.takes_argument = true,
		.has_json = true,
		.run = verb_doctor,
	},
	{
		.name = "verify",
		.synopsis = "[--json] [--probes] [AGENT|ID]",
		.summary = "check that a jail holds what it promises",
		.details = "Makes a jail for this directory as that agent would get it (claude, codex, pi, "
			   "shell;\n"
			   "without a name the first that is installed) and measures from inside what it can "
			   "see\n"
			   "and reach. With the ID of a session, or its beginning, that session is checked "
			   "while\n"
			   "its agent goes on. --probes tries the known ways out as well.\n"
			   "Exit status 1: something did not pass.\n",
		.takes_argument = true,
		.options = verify_options,
		.has_json = true,
		.run = verb_verify,
	},
	{
		.name = "sessions",
		.synopsis = "[--json] [--all]",
		.summary = "list the sessions that you may see",
		.details = "Your own sessions; everybody's for root. With --all everybody's, for which an\n"
			   "administrator's password is asked.\n",
		.options = sessions_options,
		.has_json = true,
		.run = verb_sessions,
	},
	{
		.name = "show",
		.synopsis = "[--json] [ID]",
		.summary = "show what one session is and how strong its jail is",
		.details =
			"Its properties, what of its jail is how strong, how much it sees and reaches, and\n"
			"its warnings. " WHICH,
		.takes_argument = true,
		.has_json = true,
		.run = verb_show,
	},
	{
		.name = "exposure",
		.synopsis = "[--json] [ID]",
		.summary = "list all that a session's agent sees: paths, then variables",
		.details =
			"Each path with its kind, its mode and where it is decided; the last one at or "
			"above\n"
			"a path decides about it ('claude-sandbox why'). Each variable without its value.\n"
			"" WHICH,
		.takes_argument = true,
		.has_json = true,
		.run = verb_exposure,
	},
	{
		.name = "routes",
		.synopsis = "[--json] [ID]",
		.summary = "list where a session's packets go, as the kernel holds it now",
		.details = "The longest destination that fits an address decides. " WHICH,
		.takes_argument = true,
		.has_json = true,
		.run = verb_routes,
	},
	{
		.name = "ports",
		.synopsis = "[--json] [ID]",
		.summary = "list the TCP ports that cross between a session and this machine",
		.details =
			"A local port leads from the jail to this machine, a callback port the other way;\n"
			"both between loopback addresses only. " WHICH,
		.takes_argument = true,
		.has_json = true,
		.run = verb_ports,
	},
	{
		.name = "denied",
		.synopsis = "[--json] [--utc] [-f] [ID]",
		.summary = "list what a session's agent tried to reach and may not",
		.details = "The latest attempt first, each destination and program once, with how often. -f\n"
			   "(--follow) goes on to show what comes, until the session ends. " WHICH,
		.takes_argument = true,
		.options = follow_options,
		.has_json = true,
		.run = verb_denied,
	},
	{
		.name = "why",
		.synopsis = "[--json] [--session ID] PATH|ADDRESS",
		.summary = "say whether a session sees a path or reaches an address, and why",
		.details =
			"PATH is followed as the agent would; ADDRESS is IPv4 or IPv6, or a network as "
			"routes\n"
			"lists it (10.0.0.0/8; a path of that name is ./10.0.0.0/8). Names of hosts are not\n"
			"resolved. It asks a session that runs: without --session the only one, or that of\n"
			"the current directory.\n",
		.argument = "PATH|ADDRESS",
		.takes_argument = true,
		.value_option = "--session",
		.has_json = true,
		.run = verb_why,
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
		.synopsis = "[--json] [list] | add [--session ID [--for TIME]] ADDRESS [COMMENT...] | "
			    "remove [--session ID] ADDRESS | edit",
		.summary = "list or change the internal addresses that sessions may reach",
		.details =
			"list shows each with its comment and with where it is set. add writes ADDRESS "
			"(IPv4,\n"
			"or a network with /16 to /32 behind it) into the configuration and opens it in "
			"every\n"
			"running session; said again with a comment, it changes that. remove takes it away again, "
			"and\n"
			"what is connected to it ends. Both take an administrator's password.\n"
			"--session ID: of one session alone, until it ends or, with --for TIME (such as "
			"90s,\n"
			"15m, 1h, 7d), for that long. To take that back needs no password.\n"
			"Exits with 1 when a session did not confirm.\n",
		.takes_argument = true,
		.takes_second = true,
		.takes_text = true,
		.value_option = "--session",
		.second_value_option = "--for",
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
		.here = "agents are installed on the machine where it runs",
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
		.name = "gh-auth",
		.synopsis = "[--json]",
		.summary = "store a token of GitHub for gh in sessions",
		.details = "The token is read from the terminal without being shown, or from standard input; "
			   "gh\n"
			   "checks it and stores it in its own form. Every agent of yours can use it then.\n",
		.has_json = true,
		.here = forge_here,
		.run = verb_gh_auth,
	},
	{
		.name = "glab-auth",
		.synopsis = "[--json] [HOST]",
		.summary = "store a token of GitLab for glab in sessions",
		.details = "As gh-auth, for gitlab.com or HOST.\n",
		.takes_argument = true,
		.has_json = true,
		.here = forge_here,
		.run = verb_glab_auth,
	},
	{
		.name = "log",
		.synopsis = "[--json] [--utc] [-f] [ID]",
		.summary = "list what happened: launches, refusals, changes, ends",
		.details =
			"The newest 1000 events of your sessions and calls; everybody's for root. With "
			"ID, a\n"
			"session's id or its beginning, only what is about it, ended or not. -f, --follow:\n"
			"and then whatever happens, one line each, until it is interrupted or nobody "
			"reads.\n",
		.takes_argument = true,
		.options = follow_options,
		.has_json = true,
		.run = verb_log,
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
