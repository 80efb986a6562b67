/* SPDX-License-Identifier: MIT */

/*
 * Writes down what a session would tell bwrap and pasta, so that floor.c can tell them the same. Runs as the
 * user whose session is meant, in the workspace, with no terminal; the service has run once for that user.
 *
 *     plan-dump AGENT >FILE
 *
 * FILE: records that end with a NUL, each a letter and a text:
 *     B path of bwrap   A one word of its --args   S path of a source   F bytes of a file
 *     W path of pasta   P one word of its arguments (the last is the pid of the namespace's process)
 * The S and F records together are bwrap's descriptors from JAIL_FD_SOURCES on, in this order.
 */

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/plan/bwrap-args.h"
#include "service/plan/profile.h"
#include "service/session/jail-exec.h"
#include "service/session/network.h"
#include "service/session/pasta.h"
#include "service/session/preparation.h"
#include "service/session/program.h"

_noreturn_ static void die(const char *what, const char *problem, int error)
{
	(void)fprintf(stderr, "plan-dump: %s: %s\n", what, problem ?: strerror(-error));
	exit(1);
}

static void record(char letter, const char *text, size_t size)
{
	(void)putchar(letter);
	(void)fwrite(text, 1, size, stdout);
	(void)putchar('\0');
}

static void record_source(int fd)
{
	char link[32], path[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n < 0 || n == sizeof(path))
		die("source", NULL, n < 0 ? -errno : -ENAMETOOLONG);
	record('S', path, (size_t)n);
}

static void record_plan(const Plan *plan)
{
	_cleanup_(bwrap_arguments_done) BwrapArguments arguments = { 0 };
	int r = bwrap_arguments_make(plan, JAIL_FD_SOURCES, &arguments);

	if (r < 0)
		die("arguments", NULL, r);
	for (size_t at = 0; at < arguments.size; at += strlen(arguments.text + at) + 1)
		record('A', arguments.text + at, strlen(arguments.text + at));
	for (size_t i = 0; i < arguments.n_fds; i++)
		if (arguments.fds[i] >= 0)
			record_source(arguments.fds[i]);
		else
			record('F', arguments.entries[i]->data, arguments.entries[i]->data_size);
}

static void record_pasta(const PastaOptions *options)
{
	_cleanup_(strings_freep) char **arguments = pasta_arguments(options);

	if (!arguments)
		die("pasta", NULL, -ENOMEM);
	for (size_t i = 0; arguments[i]; i++)
		record('P', arguments[i], strlen(arguments[i]));
}

static void find(const char *name, char letter, char **ret_path)
{
	char *problem = NULL;
	int r = program_find(name, name, ret_path, &problem);

	if (r < 0)
		die(name, problem, r);
	record(letter, *ret_path, strlen(*ret_path));
}

/* Can a private /proc be mounted? As the session asks. */
static bool private_proc(const Network *network, const char *bwrap)
{
	_cleanup_(jail_sockets_close) JailSockets sockets = JAIL_SOCKETS_INIT;
	_cleanup_(holder_done) Holder holder = HOLDER_INIT;
	_cleanup_close_ int proc_fd = FD_NONE;
	char *problem = NULL;
	HolderOptions options = { .uid = getuid(),
				  .gid = getgid(),
				  .jailed = true,
				  .routes = &network->routes,
				  .bwrap = bwrap,
				  .arguments = jail_exec_arguments() };
	int r;

	r = getrlimit(RLIMIT_NOFILE, &options.descriptors) < 0 ? -errno : 0;
	if (r == 0)
		r = holder_start(&holder, &options, &sockets, &problem);
	if (r < 0)
		die("holder", problem, r);
	r = holder_try_proc(&holder, &proc_fd, &problem);
	return r == 0 && holder_proc_outcome(proc_fd) == 0;
}

static void fill_request(SessionRequest *request, const char *agent)
{
	static char *arguments[] = { NULL };
	static char *environment[] = {
		(char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		(char *)"TERM=xterm-256color", (char *)"LANG=C.UTF-8", NULL
	};
	const struct passwd *user = getpwuid(getuid());
	char *problem = NULL;
	int r;

	if (!user)
		die("user", NULL, -ENOENT);
	*request = (SessionRequest){ .id = (char *)"aaaabbbbccccdddd",
				     .agent = (char *)agent,
				     .uid = user->pw_uid,
				     .gid = user->pw_gid,
				     .user = user->pw_name,
				     .home = user->pw_dir,
				     .login_shell = user->pw_shell,
				     .argv = arguments,
				     .environment = environment,
				     .cwd = getcwd(NULL, 0),
				     .descriptors = 7,
				     .file_mode_mask = 022,
				     .started_usec = 1 };
	r = request->cwd ? config_parse("none", "", 0, &request->config, &problem) : -errno;
	if (r < 0)
		die("request", problem, r);
}

int main(int argc, char **argv)
{
	_cleanup_(preparation_done) Preparation preparation = PREPARATION_INIT;
	_cleanup_(network_done) Network network = NETWORK_INIT;
	_cleanup_free_ char *bwrap = NULL, *pasta = NULL;
	_cleanup_(plan_done) Plan plan = { 0 };
	TerminalKeys keys = TERMINAL_KEYS_INIT;
	const Profile *profile = argc == 2 ? profile_find(argv[1]) : NULL;
	const char *error = NULL;
	char *problem = NULL;
	SessionRequest request;
	int r;

	if (!profile)
		die("usage", "plan-dump AGENT", 0);
	fill_request(&request, argv[1]);
	r = network_prepare(&network, &request.config, &error, &problem);
	if (r < 0)
		die("network", problem, r);
	find("bwrap", 'B', &bwrap);
	find("pasta", 'W', &pasta);
	record_pasta(&(PastaOptions){ .path = pasta,
				      .uid = request.uid,
				      .gid = request.gid,
				      .way = PASTA_BY_PROCESS,
				      .forwarder = network.routes.forwarder });
	/* A lock of our own: nothing here counts with the user's sessions. */
	r = preparation_init(&preparation, &request, profile, memfd_create("guard", MFD_CLOEXEC), NULL);
	if (r == 0)
		r = preparation_plan(&preparation,
				     &(PreparationNetwork){ .jailed = true,
							    .forwarder = network.routes.forwarder,
							    .private_proc = private_proc(&network, bwrap) },
				     &keys, &plan, &error, &problem);
	if (r < 0)
		die("plan", problem, r);
	record_plan(&plan);
	return fflush(stdout) != 0;
}
