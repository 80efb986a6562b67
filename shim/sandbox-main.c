/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "dbus/client-remote.h"
#include "shim/handoff.h"
#include "shim/sandbox.h"

static int open_bus(const char *host, sd_bus **ret, sd_bus_error *reterr)
{
	return host ? client_open_remote(host, ret, reterr) : client_open(ret, reterr);
}

int main(int argc, char **argv)
{
	SandboxContext context = {
		.out = stdout,
		.err = stderr,
		.style = print_style(stdout),
		.interactive = isatty(STDIN_FILENO),
		.environment = environ,
		.read_link = sandbox_read_link,
		.open_bus = open_bus,
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
