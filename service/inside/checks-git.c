/* SPDX-License-Identifier: MIT */

/* 16: git reads the session's own configuration, and no other of the machine or the person. */

#include "service/inside/checks.h"

#include "dbus/names.h"
#include "service/inside/measure.h"
#include "service/inside/mounts.h"

#define FILE_MAX (1024u * 1024)

static void expect(Battery *b, const char *name, const char *value)
{
	const char *found = measure_variable(name);

	if (!found || !streq(found, value))
		battery_fail(b, "%s is %s and has to be %s", name, found ?: "not set", value);
}

/* One entry for all directories would let a planted repository run its hooks as the person's. */
static bool trusts_everything(const char *text)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *p = line + strspn(line, " \t");
		size_t n = strcspn(p, "\n");

		if (strncasecmp(p, "directory", 9) == 0 && memchr(p, '*', n))
			return true;
	}
	return false;
}

void check_git(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *text = NULL;
	bool planned = false;

	for (size_t i = 0; e && i < e->n_entries; i++)
		planned = planned || streq(e->entries[i].path, CS_GITCONFIG_PATH);
	expect(b, "GIT_CONFIG_GLOBAL", CS_GITCONFIG_PATH);
	expect(b, "GIT_CONFIG_SYSTEM", "/dev/null");
	text = measure_text(CS_GITCONFIG_PATH, FILE_MAX, NULL);
	if (!text)
		battery_fail(b, CS_GITCONFIG_PATH " cannot be read: %s", strerror(errno));
	else if (trusts_everything(text))
		battery_fail(b, CS_GITCONFIG_PATH " trusts every directory (safe.directory)");
	if (e && !planned)
		battery_fail(b, "the session has no git configuration of its own");
	battery_pass(b, CS_GITCONFIG_PATH " is in force");
	mounts_judge(b, "16");
}
