/* SPDX-License-Identifier: MIT */
#include "service/daemon/doctor-own.h"

#include <sys/stat.h>

#include "dbus/causes.h"
#include "dbus/doctor.h"
#include "dbus/installed.h"
#include "dbus/names.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/config-file.h"
#include "service/daemon/run-dir.h"

bool doctor_has(const Launch *launch, const char *id)
{
	for (size_t i = 0; i < launch->rows.n; i++)
		if (streq(launch->rows.rows[i].id, id))
			return true;
	return false;
}

void doctor_add(Launch *launch, const char *id, RowStatus status, const char *detail, const char *fix)
{
	_cleanup_(row_done) Row row = { 0 };

	if (doctor_has(launch, id) || row_make(id, status, doctor_title(id) ?: id, detail, fix, &row) < 0 ||
	    row_list_add(&launch->rows, &row) < 0)
		return;
	if (launch->row_call)
		row_send(&launch->manager->signals, launch->client, launch->row_call,
			 &launch->rows.rows[launch->rows.n - 1], true);
}

void doctor_add_sentence(Launch *launch, const char *id, RowStatus status, const char *sentence)
{
	_cleanup_free_ char *cause = NULL, *fix = NULL;

	if (cause_split(sentence, &cause, &fix) == 0)
		doctor_add(launch, id, status, cause, fix);
}

static void add_check(Launch *launch, const char *id, RowStatus bad, int (*check)(char **), const char *good)
{
	_cleanup_free_ char *problem = NULL;
	int r = check(&problem);

	if (r < 0)
		doctor_add_sentence(launch, id, bad, problem ?: strerror(-r));
	else if (good)
		doctor_add(launch, id, ROW_PASS, good, NULL);
}

static void add_installed(Launch *launch)
{
	_cleanup_free_ char *name = NULL;

	doctor_add(launch, DOCTOR_BUS, ROW_PASS, "it carried this call", NULL);
	if (asprintf(&name, CS_BUS_NAME " is claude-sandboxd " CS_VERSION ", process %d", (int)getpid()) < 0)
		name = NULL;
	doctor_add(launch, DOCTOR_NAME, ROW_PASS, name, NULL);
	add_check(launch, DOCTOR_POLICY, ROW_FAIL, installed_check_policy, CS_BUS_POLICY_PATH);
	add_check(launch, DOCTOR_ACTIVATION, ROW_FAIL, installed_check_activation, CS_ACTIVATION_PATH);
	add_check(launch, DOCTOR_ENTRY_OURS, ROW_FAIL, installed_check_entries,
		  "claude, codex and pi in " CS_BIN_DIR);
	add_check(launch, DOCTOR_FILES_OWNER, ROW_FAIL, installed_check_files, NULL);
	add_check(launch, DOCTOR_FILES_OWNER, ROW_NOTE, installed_check_directories,
		  "what is there of programs, links, bus and polkit files is root's alone");
}

/* What it opens, by the origin of each line. Return: to be freed, or NULL when nothing. */
static char *openings(const Config *config)
{
	static const ConfigKey keys[] = { CONFIG_WORKSPACE_ROOT, CONFIG_ALLOW_WRITE, CONFIG_PASS_ENV,
					  CONFIG_GPU, CONFIG_ALLOW_DEVICE };
	_cleanup_free_ char *text = NULL;

	if (!config_flag(config, CONFIG_EGRESS_JAIL) && asprintf(&text, "egress-jail is off") < 0)
		return NULL;
	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		const ConfigValue *value;
		size_t index = 0;

		while ((value = config_next(config, keys[i], &index))) {
			char *longer;

			if (asprintf(&longer, "%s%s%s = %s", text ?: "", text ? ", " : "",
				     config_key_name(keys[i]), value->text) < 0)
				return TAKE_PTR(text);
			free(text);
			text = longer;
		}
	}
	return TAKE_PTR(text);
}

/* Whether the file can be used at all, then what is in it. */
static void add_configuration(Launch *launch)
{
	_cleanup_free_ char *text = NULL, *problem = NULL, *opened = NULL;
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	size_t size = 0;
	int r;

	r = config_file_open(CS_CONFIG_PATH, &fd, &st, &text, &size, &problem);
	if (r == -ENOENT) {
		doctor_add(launch, DOCTOR_CONFIG_OWNER, ROW_PASS, "there is no " CS_CONFIG_PATH, NULL);
		doctor_add(launch, DOCTOR_CONFIG_FILE, ROW_PASS, "none: the defaults hold", NULL);
		doctor_add(launch, DOCTOR_CONFIG_WARNINGS, ROW_PASS, "nothing", NULL);
		return;
	}
	if (r < 0) {
		doctor_add_sentence(launch, DOCTOR_CONFIG_OWNER, ROW_FAIL, problem ?: strerror(-r));
		doctor_add(launch, DOCTOR_CONFIG_FILE, ROW_NOTE, DOCTOR_NOT_TRIED, NULL);
		doctor_add(launch, DOCTOR_CONFIG_WARNINGS, ROW_NOTE, DOCTOR_NOT_TRIED, NULL);
		return;
	}
	doctor_add(launch, DOCTOR_CONFIG_OWNER, ROW_PASS, CS_CONFIG_PATH, NULL);
	r = config_file_read_checked(CS_CONFIG_PATH, launch->manager->users, &config, &problem);
	if (r < 0) {
		doctor_add_sentence(launch, DOCTOR_CONFIG_FILE, ROW_FAIL, problem ?: strerror(-r));
		doctor_add(launch, DOCTOR_CONFIG_WARNINGS, ROW_NOTE, DOCTOR_NOT_TRIED, NULL);
		return;
	}
	doctor_add(launch, DOCTOR_CONFIG_FILE, ROW_PASS, CS_CONFIG_PATH, NULL);
	opened = openings(&config);
	doctor_add(launch, DOCTOR_CONFIG_WARNINGS, opened ? ROW_NOTE : ROW_PASS, opened ?: "nothing", NULL);
}

typedef struct Stale {
	Manager *manager;
	size_t n;
	char *first;
} Stale;

static void look_at_directory(void *userdata, const char *id)
{
	Stale *stale = userdata;

	if (registry_find(stale->manager->registry, id))
		return;
	stale->n++;
	if (!stale->first)
		stale->first = strdup(id);
}

/* An id says that there was a session, of whomever: the first is named to root alone. */
static void add_leavings(Launch *launch)
{
	Stale stale = { .manager = launch->manager };
	_cleanup_free_ char *sentence = NULL;
	int r = run_dir_each_session(look_at_directory, &stale);

	if (r < 0)
		(void)refuse(&sentence, r, BECAUSE(FILE_HIDDEN), CS_SESSIONS_DIR, strerror(-r));
	else if (stale.n > 0)
		(void)refuse(&sentence, 0, BECAUSE(RUN_STALE), stale.n, CS_SESSIONS_DIR,
			     launch->client->uid == 0 && stale.first ? stale.first : "root is told which");
	if (sentence)
		doctor_add_sentence(launch, DOCTOR_RUN_STALE, ROW_WARN, sentence);
	else
		doctor_add(launch, DOCTOR_RUN_STALE, ROW_PASS, "none", NULL);
	free(stale.first);
}

static void add_cgroups(Launch *launch)
{
	const CgroupWish wish = { .uid = launch->client->uid, .caller = launch->facts.cgroup };
	const Cgroups *cgroups = launch->manager->cgroups;
	bool memory = cgroups_offers(cgroups, &wish, "memory"), pids = cgroups_offers(cgroups, &wish, "pids");
	_cleanup_free_ char *sentence = NULL;

	if (!cgroups_are_possible(cgroups, &wish))
		doctor_add_sentence(launch, DOCTOR_CGROUP, ROW_NOTE, BECAUSE(CGROUP_NONE));
	else if (memory && pids)
		doctor_add(launch, DOCTOR_CGROUP, ROW_PASS, "with limits of memory and tasks", NULL);
	else {
		(void)refuse(&sentence, 0, BECAUSE(CGROUP_LESS),
			     memory ? "no processes"
			     : pids ? "no memory"
				    : "neither memory nor processes",
			     memory ? "tasks-max does"
			     : pids ? "memory-max does"
				    : "memory-max and tasks-max do");
		if (sentence)
			doctor_add_sentence(launch, DOCTOR_CGROUP, ROW_NOTE, sentence);
	}
}

/* Those of the caller's that deny-group takes away. Return: to be freed, or NULL. */
static char *dropped_groups(const Launch *launch)
{
	_cleanup_(strings_freep) char **names = config_deny_groups(&launch->config);
	const Client *client = launch->client;
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; names && names[i]; i++) {
		char *longer;
		gid_t gid;

		if (users_group(launch->manager->users, names[i], &gid) < 0)
			continue;
		for (size_t j = 0; j < client->n_groups; j++) {
			if (client->groups[j] != gid)
				continue;
			if (asprintf(&longer, "%s%s%s", text ?: "", text ? ", " : "", names[i]) < 0)
				return TAKE_PTR(text);
			free(text);
			text = longer;
			break;
		}
	}
	return TAKE_PTR(text);
}

static void add_groups(Launch *launch)
{
	_cleanup_free_ char *dropped = dropped_groups(launch), *detail = NULL;

	if (dropped && asprintf(&detail, "not carried into sessions (deny-group): %s", dropped) < 0)
		detail = NULL;
	doctor_add(launch, DOCTOR_USER_GROUPS, ROW_PASS, detail ?: "all are carried into sessions", NULL);
}

void doctor_add_own(Launch *launch)
{
	add_installed(launch);
	add_configuration(launch);
	add_leavings(launch);
	add_cgroups(launch);
	add_groups(launch);
}
