/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "dbus/client.h"
#include "shim/handoff.h"
#include "shim/sandbox.h"

int main(int argc, char **argv)
{
	SandboxContext context = {
		.out = stdout,
		.err = stderr,
		.style = print_style(stdout),
		.interactive = isatty(STDIN_FILENO),
		.environment = environ,
		.open = client_open,
		.handoff = handoff_exec,
	};
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) >= 0)
		context.now_usec =
			(uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
	return sandbox_run(argc, argv, &context);
}
