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
		.read_link = sandbox_read_link,
		.open = client_open,
		.agent = text_agent_start,
		.handoff = handoff_exec,
	};
	_cleanup_free_ char *directory = getcwd(NULL, 0);
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) >= 0)
		context.now_usec =
			(uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
	if (directory && directory[0] == '/')
		context.directory = directory;
	return sandbox_run(argc, argv, &context);
}
