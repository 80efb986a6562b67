/* SPDX-License-Identifier: MIT */
#include "shim/ahead-warn.h"

#include "dbus/ahead.h"
#include "dbus/causes.h"
#include "dbus/names.h"
#include "dbus/shell-names.h"
#include "shim/install-agent.h"

void ahead_warn(const SandboxContext *context)
{
	const char *path = ahead_path(context->environment);

	if (context->host || access(CS_MARKER_PATH, F_OK) == 0 || access(CS_ENTRY_PATH, F_OK) < 0)
		return;
	for (size_t i = 0; install_agent_at(i); i++) {
		const char *name = install_agent_at(i)->name;
		_cleanup_free_ char *program = NULL, *sentence = NULL;

		if (shell_name_find(context->environment, name, &sentence) == 0) {
			if (ahead_find(path, name, &program) < 0 || !program)
				continue;
			(void)refuse(&sentence, 0, BECAUSE(ENTRY_BEHIND), name, program);
		}
		if (!sentence)
			continue;
		print_complaint(context->err, sentence);
	}
}
