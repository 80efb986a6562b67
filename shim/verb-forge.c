/* SPDX-License-Identifier: MIT */

/*
 * gh-auth and glab-auth: a token for the forge's tool in sessions. It is read from the terminal or from
 * standard input, handed to the tool on a pipe, and what the tool makes of it replaces its file. It is never
 * an argument, a variable or a readable file.
 */

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>

#include "shim/forge-tool.h"
#include "shim/secret.h"
#include "dbus/text.h"
#include "shim/verb.h"
#include "shim/verbs.h"

#define HOST_MOST 253u /* RFC 1035, 2.3.4, as text */
#define LABEL_MOST 63u

/* As forge-host in the configuration: a name in lower case. */
static bool is_host(const char *host)
{
	size_t label = 0;

	if (strlen(host) > HOST_MOST)
		return false;
	for (const char *c = host;; c++) {
		if (*c == '.' || *c == '\0') {
			if (label == 0 || label > LABEL_MOST || c[-1] == '-')
				return false;
			if (*c == '\0')
				return true;
			label = 0;
		} else if ((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || (*c == '-' && label > 0)) {
			label++;
		} else {
			return false;
		}
	}
}

typedef struct Forge {
	const ForgeTool *tool;
	const char *host, *home;
	char *program, *file, *directory;
	int directory_fd;
	bool made;
} Forge;

#define FORGE_INIT ((Forge){ .directory_fd = FD_NONE })

static void forge_done(Forge *forge)
{
	free(forge->program);
	free(forge->file);
	free(forge->directory);
	close_fdp(&forge->directory_fd);
}

/* Everything that can be refused before a person types a token. */
static int prepare(Forge *forge, char **reterr)
{
	const struct passwd *account = getpwuid(getuid());
	int r;

	if (!account || !account->pw_dir || account->pw_dir[0] != '/')
		return refuse(reterr, -ENOENT,
			      "there is no account with a home for user %u; ask an administrator", getuid());
	forge->home = account->pw_dir;
	r = forge_tool_find(forge->tool, &forge->program, reterr);
	if (r < 0)
		return r;
	if (asprintf(&forge->directory, "%s/.config/%s", forge->home, forge->tool->directory) < 0) {
		forge->directory = NULL;
		return refuse(reterr, -ENOMEM, "not enough memory");
	}
	if (asprintf(&forge->file, "%s/%s", forge->directory, forge->tool->file) < 0) {
		forge->file = NULL;
		return refuse(reterr, -ENOMEM, "not enough memory");
	}
	return forge_store_open(forge->home, forge->tool->directory, &forge->directory_fd, &forge->made,
				reterr);
}

static int log_in(const Forge *forge, const SandboxContext *context, int *ret_signal, char **reterr)
{
	_cleanup_(forge_text_done) ForgeText before = { 0 }, after = { 0 };
	_cleanup_secret_ char *token = NULL;
	_cleanup_free_ char *prompt = NULL;
	int r;

	if (asprintf(&prompt, "Token for %s (it is not shown): ", forge->host) < 0) {
		prompt = NULL;
		return refuse(reterr, -ENOMEM, "not enough memory");
	}
	r = forge_store_read(forge->directory_fd, forge->tool->file, forge->file, &before, reterr);
	if (r == 0)
		r = secret_read(STDIN_FILENO, prompt, &token, reterr);
	if (r == 0)
		r = forge_tool_login(forge->tool, forge->program, forge->host, token, &before,
				     context->environment, &after, ret_signal, reterr);
	return r < 0 ? r
		     : forge_store_write(forge->directory_fd, forge->tool->file, forge->file, &after, reterr);
}

/* Is there a row of the policy with that value? value NULL: any but "0". Return: its origin or NULL. */
static const char *find_setting(const ClientTable *policy, const char *setting, const char *value)
{
	for (size_t i = 0; i < policy->n_rows; i++) {
		char *const *row = policy->cells + i * policy->n_columns;

		if (streq(row[0], setting) && (value ? streq(row[1], value) : !streq(row[1], "0")))
			return row[2];
	}
	return NULL;
}

/* What the configuration says about it is worth a word, and nothing when there is nobody to ask. */
static void warn(const Forge *forge, const SandboxContext *context)
{
	_cleanup_(client_table_done) ClientTable policy = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	const char *origin;

	if (verb_open(context, &bus, &error) < 0 || client_get_policy(bus, &policy, &error) < 0)
		return;
	origin = find_setting(&policy, "no-forge", NULL);
	if (origin)
		(void)verb_refuse(context, 0,
				  "sessions do not see the token: no-forge is set (%s); take it out", origin);
	else if (!streq(forge->host, forge->tool->host) && !find_setting(&policy, "forge-host", forge->host))
		(void)verb_refuse(
			context, 0,
			"git in sessions does not use the token for %s; add 'forge-host = %s' to the "
			"configuration",
			forge->host, forge->host);
}

static int say(const Forge *forge, const SandboxCall *call, const SandboxContext *context)
{
	static const PrintColumn columns[] = {
		{ NULL, "host", PRINT_TEXT, false },
		{ NULL, "file", PRINT_TEXT, false },
	};
	const char *const cells[] = { forge->host, forge->file };
	_cleanup_free_ char *file = NULL;

	if (call->json)
		return print_json_object(context->out,
					 &(PrintTable){ columns, ELEMENTSOF(columns), 1, cells },
					 &context->style) == -ENOMEM
			       ? verb_complain_memory(context)
			       : 0;
	file = text_escape(forge->file, context->style.utf8);
	if (!file)
		return verb_complain_memory(context);
	fprintf(context->out, "stored the token for %s in %s%s\n", forge->host, file,
		forge->made ? "; sessions that run already do not see it" : "");
	return 0;
}

static int store(const SandboxCall *call, const SandboxContext *context, const ForgeTool *tool)
{
	_cleanup_(forge_done) Forge forge = FORGE_INIT;
	_cleanup_free_ char *problem = NULL;
	int r, signal = 0;

	if (access(CS_MARKER_PATH, F_OK) == 0)
		return verb_refuse(
			context, CS_EXIT_REFUSED,
			"this is the inside of a jail, where an agent may listen; run '%s' outside",
			call->verb->name);
	forge.tool = tool;
	forge.host = call->argument ?: tool->host;
	if (!is_host(forge.host))
		return verb_refuse(
			context, CS_EXIT_USAGE,
			"'%s' is no host's name; write it in lower case, without https://, port or "
			"path",
			forge.host);
	/* Neither a core dump nor another program of the user is to show the token. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	r = prepare(&forge, &problem);
	if (r == 0)
		r = log_in(&forge, context, &signal, &problem);
	if (r < 0) {
		if (forge.made)
			(void)rmdir(forge.directory);
		(void)verb_refuse(context, 0, "%s", problem ?: strerror(ENOMEM));
		if (signal != 0)
			(void)raise(signal);
		return CS_EXIT_REFUSED;
	}
	warn(&forge, context);
	return say(&forge, call, context);
}

int verb_gh_auth(const SandboxCall *call, const SandboxContext *context)
{
	return store(call, context, &forge_tool_gh);
}

int verb_glab_auth(const SandboxCall *call, const SandboxContext *context)
{
	return store(call, context, &forge_tool_glab);
}
