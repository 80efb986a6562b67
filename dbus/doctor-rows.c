/* SPDX-License-Identifier: MIT */
#include "dbus/doctor-rows.h"

#include <sys/stat.h>

#include "dbus/ahead.h"
#include "dbus/causes.h"
#include "dbus/doctor.h"
#include "dbus/installed.h"
#include "dbus/names.h"
#include "dbus/shell-names.h"

static bool has(const ClientTable *rows, const char *id)
{
	for (size_t i = 0; i < rows->n_rows; i++)
		if (streq(rows->cells[i * DOCTOR_COLUMNS], id))
			return true;
	return false;
}

int doctor_rows_take(ClientTable *rows, char *const cells[static DOCTOR_COLUMNS])
{
	char **larger, **new;

	if (has(rows, cells[0]))
		return -EEXIST;
	larger = reallocarray(rows->cells, (rows->n_rows + 1) * DOCTOR_COLUMNS, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	rows->cells = larger;
	rows->n_columns = DOCTOR_COLUMNS;
	new = larger + rows->n_rows *DOCTOR_COLUMNS;
	for (size_t i = 0; i < DOCTOR_COLUMNS; i++) {
		new[i] = strdup(cells[i]);
		if (!new[i]) {
			while (i > 0)
				free(new[--i]);
			return -ENOMEM;
		}
	}
	rows->n_rows++;
	return 0;
}

int doctor_rows_add(ClientTable *rows, const char *id, const char *status, const char *detail,
		    const char *fix)
{
	const char *const cells[DOCTOR_COLUMNS] = { id, status, doctor_title(id) ?: id, detail ?: "",
						    fix ?: "" };

	return doctor_rows_take(rows, (char *const *)cells);
}

int doctor_rows_add_sentence(ClientTable *rows, const char *id, const char *status, const char *sentence)
{
	_cleanup_free_ char *cause = NULL, *fix = NULL;
	int r = cause_split(sentence, &cause, &fix);

	return r < 0 ? r : doctor_rows_add(rows, id, status, cause, fix);
}

static int add_check(ClientTable *rows, const char *id, const char *bad, int (*check)(char **),
		     const char *good)
{
	_cleanup_free_ char *problem = NULL;
	int r = check(&problem);

	if (r == -ENOMEM)
		return r;
	r = r < 0  ? doctor_rows_add_sentence(rows, id, bad, problem ?: strerror(-r))
	     : good ? doctor_rows_add(rows, id, "ok", good, NULL)
		   : 0;
	return r == -EEXIST ? 0 : r;
}

int doctor_rows_installed(ClientTable *rows)
{
	int r;

	r = add_check(rows, DOCTOR_POLICY, "fail", installed_check_policy, CS_BUS_POLICY_PATH);
	if (r == 0)
		r = add_check(rows, DOCTOR_ACTIVATION, "fail", installed_check_activation,
			      CS_ACTIVATION_PATH);
	if (r == 0)
		r = add_check(rows, DOCTOR_ENTRY_OURS, "fail", installed_check_entries,
			      "claude, codex and pi in " CS_BIN_DIR);
	if (r == 0)
		r = add_check(rows, DOCTOR_FILES_OWNER, "fail", installed_check_files, NULL);
	if (r == 0)
		r = add_check(rows, DOCTOR_FILES_OWNER, "note", installed_check_directories,
			      "what is there of programs, links, bus and polkit files is root's alone");
	return r;
}

static bool path_has(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	for (const char *p = path; *p; p += strcspn(p, ":"), p += *p == ':') {
		size_t length = strcspn(p, ":");

		while (length > 1 && p[length - 1] == '/')
			length--;
		if (length == n && strncmp(p, directory, n) == 0)
			return true;
	}
	return false;
}

/*
 * Programs outside PATH to which an agent's own installer makes an alias: what sets that may be read by a startup file, which
 * is not looked at. Return: 1 and a row, 0 or -ENOMEM.
 */
static int add_aside(ClientTable *rows, char *const *environment)
{
	static const char *const places[] = { ".claude/local" };
	const char *home = shell_variable(environment, "HOME");
	int r = 0;

	for (size_t i = 0; r == 0 && home && *home == '/' && i < ELEMENTSOF(places); i++) {
		_cleanup_free_ char *path = NULL, *sentence = NULL;
		struct stat st;

		if (asprintf(&path, "%s/%s", home, places[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		(void)refuse(
			&sentence, 0,
			"an agent's own installer has put a program into %s, which starts without a jail by its "
			"path, or by an alias that was not found; remove it, with 'rm -r %s'",
			path, path);
		r = sentence ? doctor_rows_add_sentence(rows, DOCTOR_ENTRY_PATH, "note", sentence) : -ENOMEM;
		r = r == 0 ? 1 : r;
	}
	return r;
}

int doctor_rows_path(ClientTable *rows, char *const *environment)
{
	const char *const names[] = { "claude", "codex", "pi" }, *path = ahead_path(environment);
	int r;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_free_ char *program = NULL, *sentence = NULL;

		r = shell_name_find(environment, names[i], &sentence);
		if (r == 0)
			r = ahead_find(path, names[i], &program);
		if (r < 0)
			return r;
		if (!program && !sentence)
			continue;
		if (!sentence)
			(void)refuse(&sentence, 0, BECAUSE(ENTRY_BEHIND), names[i], program);
		return sentence ? doctor_rows_add_sentence(rows, DOCTOR_ENTRY_PATH, "fail", sentence)
				: -ENOMEM;
	}
	if (!path || !path_has(path, CS_BIN_DIR))
		return doctor_rows_add_sentence(rows, DOCTOR_ENTRY_PATH, "fail", BECAUSE(ENTRY_OFF_PATH));
	r = add_aside(rows, environment);
	if (r != 0)
		return r < 0 ? r : 0;
	/* No more than was looked at. */
	return doctor_rows_add(
		rows, DOCTOR_ENTRY_PATH, "ok",
		"by PATH claude, codex and pi start in their jails, and no startup file of your shell "
		"says otherwise (files that those read were not looked at)",
		NULL);
}
