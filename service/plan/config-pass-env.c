/* SPDX-License-Identifier: MIT */
#include "service/plan/config.h"

#define NAME_MOST 255u

/*
 * What would replace a value that the jail itself sets, run code in a shell or loader before the agent does,
 * or steer git: the closed list. The three families are prefixes.
 */
const char *config_pass_env_refusal(const char *name)
{
	static const char *const names[] = {
		"PATH",
		"HOME",
		"USER",
		"LOGNAME",
		"SHELL",
		"IS_SANDBOX",
		"IS_SANDBOX_AGENT",
		"CODEX_HOME",
		"CLAUDE_CONFIG_DIR",
	};
	static const char *const code[] = {
		"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "GLIBC_TUNABLES", "GCONV_PATH",
	};

	if (strlen(name) > NAME_MOST)
		return "is too long for the name of a variable; remove it";
	if (!name[0] || (name[0] >= '0' && name[0] <= '9'))
		return "is not the name of a variable; write letters, digits and '_' alone, not beginning "
		       "with a digit";
	for (const char *c = name; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
		      *c == '_'))
			return "is not the name of a variable; write letters, digits and '_' alone, not "
			       "beginning "
			       "with a digit";
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (streq(name, names[i]))
			return "is set by the jail itself and cannot be passed; remove it";
	for (size_t i = 0; i < ELEMENTSOF(code); i++)
		if (streq(name, code[i]))
			return "makes shells or the loader run or read other code and cannot be passed; "
			       "remove it";
	if (starts_with(name, "LD_"))
		return "steers the loader and cannot be passed; remove it";
	if (starts_with(name, "GIT_"))
		return "steers git, whose configuration is the jail's, and cannot be passed; remove it";
	if (starts_with(name, "CLAUDE_SANDBOX_"))
		return "is a setting of the jail itself and cannot be passed; remove it";
	return NULL;
}
