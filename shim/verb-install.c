/* SPDX-License-Identifier: MIT */
#include <pwd.h>
#include <strings.h>
#include <sys/stat.h>

#include "dbus/ahead.h"
#include "dbus/names.h"
#include "shim/ahead-warn.h"
#include "shim/install.h"
#include "dbus/text.h"
#include "shim/verbs.h"

/* Where --list finds an agent. */
#define FROM_SYSTEM "system"
#define FROM_PERSON "person"

#define REGISTRY "npm_config_registry="

static int complain(const SandboxContext *context, const char *sentence, int status)
{
	print_complaint(context->err, sentence);
	return status;
}

static void say(void *userdata, const char *line)
{
	const SandboxContext *context = userdata;
	_cleanup_free_ char *shown = text_escape(line, context->style.utf8);

	fprintf(context->out, "%s\n", shown ? shown : "");
	(void)fflush(context->out);
}

static void say_nothing(void *userdata, const char *line)
{
}

static int show(const SandboxContext *context, const PrintTable *table)
{
	return print_json_object(context->out, table, &context->style) == -ENOMEM
		       ? complain(context, NULL, CS_EXIT_REFUSED)
		       : 0;
}

typedef struct ListRow {
	const char *agent, *from;
	char *version, *path;
} ListRow;

enum { LIST_COLUMNS = 4, LIST_ROWS_MAX = 8 };

typedef struct List {
	ListRow rows[LIST_ROWS_MAX];
	const char *cells[LIST_ROWS_MAX * LIST_COLUMNS];
	size_t n;
} List;

static void list_done(List *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->rows[i].version);
		free(list->rows[i].path);
	}
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

static int list_add(List *list, const InstallAgent *agent, const char *from, char *path, char *version)
{
	const ListRow row = { agent->name, from, version, path };

	if (list->n == LIST_ROWS_MAX)
		return -ENOSPC;
	list->cells[list->n * LIST_COLUMNS] = row.agent;
	list->cells[list->n * LIST_COLUMNS + 1] = row.version;
	list->cells[list->n * LIST_COLUMNS + 2] = row.from;
	list->cells[list->n * LIST_COLUMNS + 3] = row.path;
	list->rows[list->n++] = row;
	return 0;
}

static int list_system(List *list, const InstallAgent *agent)
{
	_cleanup_free_ char *path = NULL, *version = NULL;
	int r;

	if (asprintf(&path, "%s/%s/%s", CS_AGENTS_DIR, agent->name, agent->name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* One that was put there by hand has no version that we know. */
	r = install_store_version(CS_AGENTS_DIR, agent->name, &version);
	if (r == -ENOMEM || !is_program(path))
		return r == -ENOMEM ? r : 0;
	r = list_add(list, agent, FROM_SYSTEM, path, version);
	if (r == 0) {
		(void)TAKE_PTR(path);
		(void)TAKE_PTR(version);
	}
	return r;
}

/* Their makers' installers keep each version in a file or directory of its name. */
static int list_person(List *list, const InstallAgent *agent, const char *home)
{
	_cleanup_free_ char *path = NULL, *target = NULL, *version = NULL;
	const char *name;
	int r;

	if (asprintf(&path, "%s/.local/bin/%s", home, agent->name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	target = is_program(path) ? realpath(path, NULL) : NULL;
	if (!target || ahead_is_entry(target))
		return 0;
	name = strrchr(target, '/') + 1;
	if (name[0] >= '0' && name[0] <= '9' && install_version_is_valid(name) && !(version = strdup(name)))
		return -ENOMEM;
	r = list_add(list, agent, FROM_PERSON, path, version);
	if (r == 0) {
		(void)TAKE_PTR(path);
		(void)TAKE_PTR(version);
	}
	return r;
}

static int run_list(const SandboxCall *call, const SandboxContext *context)
{
	static const PrintColumn columns[LIST_COLUMNS] = {
		{ "AGENT", "agent", PRINT_TEXT, false },
		{ "VERSION", "version", PRINT_TEXT, false },
		{ "FROM", "from", PRINT_TEXT, false },
		{ "PATH", "path", PRINT_TEXT, true },
	};
	_cleanup_(list_done) List list = { 0 };
	const struct passwd *person = getpwuid(getuid());
	int r = 0;

	for (size_t i = 0; r == 0 && install_agent_at(i); i++) {
		r = list_system(&list, install_agent_at(i));
		if (r == 0 && person)
			r = list_person(&list, install_agent_at(i), person->pw_dir);
	}
	if (r == 0) {
		const PrintTable table = { columns, LIST_COLUMNS, list.n, list.cells };

		r = call->json ? print_json(context->out, &table, &context->style)
			       : print_table(context->out, &table, &context->style, "no agent is installed");
	}
	if (r == -ENOMEM)
		return complain(context, NULL, CS_EXIT_REFUSED);
	ahead_warn(context);
	return 0;
}

static int show_removed(const SandboxCall *call, const SandboxContext *context, const char *version, int used)
{
	static const PrintColumn columns[] = { { NULL, "agent", PRINT_TEXT, false },
					       { NULL, "version", PRINT_TEXT, false } };
	const char *cells[] = { call->argument, version };

	if (call->json)
		return show(context, &(PrintTable){ columns, ELEMENTSOF(columns), 1, cells });
	fprintf(context->out, "removed %s%s%s\n", call->argument, version ? " " : "", version ? version : "");
	if (used > 0)
		fputs("its files stay until another installation finds no session that has them\n",
		      context->out);
	return 0;
}

static int run_remove(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(install_store_done) InstallStore store = INSTALL_STORE_INIT;
	_cleanup_free_ char *problem = NULL, *version = NULL;
	int r, used;

	r = install_store_open(CS_AGENTS_DIR, &store, &problem);
	if (r < 0)
		return complain(context, problem, CS_EXIT_REFUSED);
	r = install_store_version(CS_AGENTS_DIR, call->argument, &version);
	if (r == 0 || r == -EBADMSG)
		r = install_store_withdraw(&store, call->argument);
	if (r == -ENOENT) {
		(void)refuse(&problem, r,
			     "%s is not installed for everybody; 'claude-sandbox install --list' shows what "
			     "is",
			     call->argument);
		return complain(context, problem, CS_EXIT_FOUND);
	}
	if (r < 0) {
		(void)refuse(&problem, r, "%s cannot be removed from %s: %s", call->argument, CS_AGENTS_DIR,
			     strerrordesc_np(-r));
		return complain(context, problem, CS_EXIT_REFUSED);
	}
	used = install_store_sweep(&store);
	return show_removed(call, context, version, used);
}

static int show_installed(const SandboxCall *call, const SandboxContext *context, const InstallAgent *agent,
			  const Installed *installed)
{
	static const PrintColumn columns[] = { { NULL, "agent", PRINT_TEXT, false },
					       { NULL, "version", PRINT_TEXT, false },
					       { NULL, "path", PRINT_TEXT, false } };
	const char *cells[] = { agent->name, installed->version, installed->path };

	if (call->json)
		return show(context, &(PrintTable){ columns, ELEMENTSOF(columns), 1, cells });
	fprintf(context->out, "installed %s %s: %s\n", agent->name, installed->version, installed->path);
	if (installed->old_in_use > 0)
		fputs("running sessions keep the version that they have\n", context->out);
	return 0;
}

static int run_install(const SandboxCall *call, const SandboxContext *context, const InstallAgent *agent)
{
	_cleanup_(install_store_done) InstallStore store = INSTALL_STORE_INIT;
	_cleanup_(install_npm_done) InstallNpm npm = { 0 };
	_cleanup_(installed_done) Installed installed = { 0 };
	_cleanup_free_ char *problem = NULL;
	int r;

	r = install_npm_find(&npm, &problem);
	if (r == 0)
		r = install_store_open(CS_AGENTS_DIR, &store, &problem);
	/* A variable decides whose program everybody gets: let whoever types this see it. */
	for (char *const *variable = context->environment; r == 0 && !call->json && variable && *variable;
	     variable++)
		if (strncasecmp(*variable, REGISTRY, strlen(REGISTRY)) == 0)
			say((void *)context, *variable);
	if (r == 0)
		r = install_agent(&store, &npm, agent, call->second ? call->second : "latest",
				  context->environment, call->json ? say_nothing : say, (void *)context,
				  &installed, &problem);
	if (r < 0)
		return complain(context, problem, CS_EXIT_REFUSED);
	return show_installed(call, context, agent, &installed);
}

static int refuse_usage(const SandboxCall *call, char **ret_problem)
{
	bool list = call->option && streq(call->option, "--list");

	if (list)
		return call->argument ? refuse(ret_problem, -EINVAL, "'install --list' takes no '%s'",
					       call->argument)
				      : 0;
	if (!call->argument)
		return refuse(
			ret_problem, -EINVAL,
			"'install' needs an agent: claude, codex or pi; usage: claude-sandbox install %s",
			call->verb->synopsis);
	if (!install_agent_find(call->argument))
		return refuse(ret_problem, -EINVAL,
			      "'%s' cannot be installed; the agents are: claude, codex, pi", call->argument);
	if (call->second && call->option)
		return refuse(ret_problem, -EINVAL, "'install --remove' takes no version");
	if (call->second && !install_version_is_valid(call->second))
		return refuse(ret_problem, -EINVAL,
			      "'%s' is no version: digits, letters, dots and hyphens, as 1.2.3 or latest",
			      call->second);
	return 0;
}

int verb_install(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_free_ char *problem = NULL;

	if (refuse_usage(call, &problem) < 0)
		return complain(context, problem, CS_EXIT_USAGE);
	if (call->option && streq(call->option, "--list"))
		return run_list(call, context);
	if (access(CS_MARKER_PATH, F_OK) == 0)
		return complain(context, "agents are not installed from inside a session; do it outside",
				CS_EXIT_REFUSED);
	if (geteuid() != 0) {
		(void)refuse(&problem, -EPERM,
			     "agents are installed for everybody by root; run 'sudo claude-sandbox install "
			     "%s%s%s%s'",
			     call->option ? "--remove " : "", call->argument, call->second ? " " : "",
			     call->second ? call->second : "");
		return complain(context, problem, CS_EXIT_REFUSED);
	}
	return call->option ? run_remove(call, context)
			    : run_install(call, context, install_agent_find(call->argument));
}
