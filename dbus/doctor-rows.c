/* SPDX-License-Identifier: MIT */
#include "dbus/doctor-rows.h"

#include <inttypes.h>

#include "dbus/causes.h"
#include "dbus/doctor.h"
#include "dbus/installed.h"
#include "dbus/names.h"

/* As /proc/PID/comm has it (proc(5)): 15 bytes at most. */
#define SERVICE_COMM "claude-sandboxd"

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

static void read_comm(uint32_t pid, char comm[static 32])
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(comm, 32, f))
		comm[0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
}

int doctor_rows_owner(ClientTable *rows, uint32_t uid, uint32_t pid)
{
	_cleanup_free_ char *sentence = NULL;
	char comm[32] = "";

	if (pid != 0)
		read_comm(pid, comm);
	if (uid == 0 && (!*comm || streq(comm, SERVICE_COMM)))
		return 0;
	(void)refuse(&sentence, 0, BECAUSE(NAME_OTHER), CS_BUS_NAME, pid, *comm ? comm : "unknown", uid);
	return sentence ? doctor_rows_add_sentence(rows, DOCTOR_NAME, "fail", sentence) : -ENOMEM;
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
			      "programs, links, bus and polkit files");
	return r;
}
