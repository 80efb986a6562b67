/* SPDX-License-Identifier: MIT */
#include "dbus/check-fixes.h"

/* Where no setting of a person's can be the cause. */
#define REPORT "stop this session and report it with this line; until then do not start agents here"
#define REINSTALL "reinstall claude-sandbox: its files must be root's, and writable by root alone"
#define STOP \
	"stop this session and start it anew: 'claude-sandbox stop ID'; if it fails again, report this line"

static const struct {
	const char *id, *fix;
} fixes[] = {
	{ "01", REINSTALL },
	{ "02", REPORT },
	{ "03", "remove the 'allow-write' line that names this path, or " STOP },
	{ "04", "remove the variable from 'pass-env' in /etc/claude-sandbox.conf" },
	{ "05", "remove the variable from 'pass-env' in /etc/claude-sandbox.conf" },
	{ "06", REPORT },
	{ "07", "see 'claude-sandbox doctor' for why this machine gives no /proc of its own; " STOP },
	{ "08", REPORT },
	{ "09", REPORT },
	{ "10", STOP },
	{ "11", STOP },
	{ "12", "remove the 'allow-write' line that names this socket or its directory, or " STOP },
	{ "13", STOP },
	{ "14", STOP },
	{ "15", STOP },
	{ "16",
	  "remove 'GIT_CONFIG_GLOBAL' and its like from 'pass-env' in /etc/claude-sandbox.conf, or " STOP },
	{ "17",
	  "start the agent in a project's own directory, and remove the 'allow-write' line that names this path; a "
	  "file system that was mounted or unmounted during the session is gone with the next one" },
	{ "18", REINSTALL },
	{ "19",
	  "start the session anew after a change of this machine's network; if it fails again, report this line" },
	{ "20",
	  "start the session anew after a change of this machine's network, and look at 'claude-sandbox routes ID'; if "
	  "it fails again, report this line and do not start agents here" },
	{ "21",
	  "remove the 'allow-write' line that names this path; install the agent anew with 'claude-sandbox install'" },
	{ "22",
	  "put /usr/local/bin before every directory on PATH that you can write, and start the session anew" },
};

const char *check_fix(const char *id)
{
	for (size_t i = 0; i < ELEMENTSOF(fixes); i++)
		if (streq(fixes[i].id, id))
			return fixes[i].fix;
	return id[0] == 'p' ? REPORT : "";
}
