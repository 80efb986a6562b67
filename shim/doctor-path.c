/* SPDX-License-Identifier: MIT */
#include "shim/doctor-path.h"

#include "dbus/causes.h"
#include "dbus/doctor-rows.h"
#include "dbus/doctor.h"
#include "dbus/names.h"
#include "shim/ahead.h"

static const char *path_of(char *const *environment)
{
	for (; environment && *environment; environment++) {
		const char *value = starts_with(*environment, "PATH=");

		if (value)
			return value;
	}
	return "";
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

int doctor_rows_path(ClientTable *rows, const SandboxContext *context)
{
	const char *const names[] = { "claude", "codex", "pi" }, *path = path_of(context->environment);
	int r;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_free_ char *program = NULL, *sentence = NULL;

		r = ahead_find(path, names[i], &program);
		if (r < 0)
			return r;
		if (!program)
			continue;
		(void)refuse(&sentence, 0, BECAUSE(ENTRY_BEHIND), names[i], program);
		return sentence ? doctor_rows_add_sentence(rows, DOCTOR_ENTRY_PATH, "fail", sentence)
				: -ENOMEM;
	}
	if (!path_has(path, CS_BIN_DIR))
		return doctor_rows_add_sentence(rows, DOCTOR_ENTRY_PATH, "fail", BECAUSE(ENTRY_OFF_PATH));
	return doctor_rows_add(rows, DOCTOR_ENTRY_PATH, "ok", "claude, codex and pi start in their jails",
			       NULL);
}
