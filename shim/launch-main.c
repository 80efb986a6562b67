/* SPDX-License-Identifier: MIT */

/* What handoff executes: argv[1] the agent, argv[2] the environment's descriptor, then the agent's arguments.
 */

#include <sys/prctl.h>

#include "dbus/names.h"
#include "service/link/pack.h"
#include "shim/caller-environment.h"
#include "shim/complain.h"
#include "shim/launch.h"
#include "shim/nested.h"
#include "shim/signals.h"

static int refused(const char *sentence)
{
	complain(sentence);
	return CS_EXIT_REFUSED;
}

int main(int argc, char **argv)
{
	_cleanup_(strings_freep) char **environment = NULL;
	_cleanup_free_ char *problem = NULL;
	LaunchEnd end;
	int r;

	if (argc < 3)
		return refused(
			"launch is started by claude, codex, pi and 'claude-sandbox shell', not by hand");
	/* pkill(1) and ps(1) find the agent by its name, as they would without a jail. */
	(void)prctl(PR_SET_NAME, argv[0], 0, 0, 0);
	r = caller_environment_read(argv[2], &environment);
	if (r == -E2BIG)
		return refused("the environment is larger than 2 MiB; unset what is not needed");
	if (r < 0)
		return refused(
			"launch was started without an environment; start claude, codex or pi instead");
	r = nested_exec(argv[1], argv + 3, environment, &problem);
	if (r < 0)
		return refused(problem ? problem : "not enough memory");

	end = launch_run(argv[1], argv + 3, environment);
	if (end.signal)
		signals_die_by(end.signal);
	return end.status;
}
