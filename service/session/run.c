/* SPDX-License-Identifier: MIT */
#include "service/session/run.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "service/link/spawn.h"
#include "service/session/program.h"
#include "service/session/sealed.h"
#include "service/session/session.h"

/* Arguments and environment are bounded by CS_REQUEST_BYTES_MAX; the rest is the configuration and paths. */
#define REQUEST_PACKED_MAX (2u * CS_REQUEST_BYTES_MAX)
#define DESCRIPTORS_WANTED 1024u
#define PRIVATE_FILES 0077

/* Nothing is open but what spawn.h names, and none of it survives an execve(2) by oversight. */
static int descriptors_settle(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int null_fd;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		null_fd = open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (null_fd != fd)
			return null_fd < 0 ? -errno : -EBADF;
	}
	if (close_range(SPAWN_FD_MAX, ~0U, 0) < 0 ||
	    close_range(STDERR_FILENO + 1, SPAWN_FD_MAX - 1, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	return 0;
}

/* The agent gets the limits that its caller had; the session itself holds a descriptor for each mount. */
static int limits_settle(struct rlimit *ret_original)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	*ret_original = limit;
	if (limit.rlim_cur >= DESCRIPTORS_WANTED)
		return 0;
	limit.rlim_cur = MIN_OF(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED);
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int process_settle(void)
{
	sigset_t mask;

	/* No program that this one starts may gain anything by a set-id bit; orphans of the jail come here to
	 * be reaped. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	(void)umask(PRIVATE_FILES);
	(void)signal(SIGPIPE, SIG_IGN);
	/* sd_event_add_signal(3) wants them blocked. */
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGHUP);
	return sigprocmask(SIG_BLOCK, &mask, NULL) < 0 ? -errno : 0;
}

static int request_read(SessionRequest *ret, char **ret_problem)
{
	_cleanup_(session_request_done) SessionRequest request = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	int r;

	r = sealed_read(SPAWN_FD_REQUEST, REQUEST_PACKED_MAX, &data, &size);
	if (r < 0)
		return refuse(ret_problem, r, "the request is no sealed memfd of a sensible size: %s",
			      strerror(-r));
	r = session_request_decode(data, size, &request);
	if (r < 0)
		return refuse(ret_problem, r,
			      "the request cannot be read: %s; is the installation of one version?",
			      strerror(-r));
	if (request.uid != getuid() || request.uid != geteuid() || request.gid != getgid() ||
	    request.gid != getegid())
		return refuse(ret_problem, -EPERM,
			      "the request is for user %u, and this process is of user %u",
			      (unsigned)request.uid, (unsigned)getuid());
	*ret = request;
	request = (SessionRequest){ 0 };
	return 0;
}

static int fd_if_open(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? FD_NONE : fd;
}

/* Nobody listens on the link yet: the pipe is the only way to say why. */
static int cannot_begin(int error)
{
	const SpawnFailure failure = { .stage = SPAWN_STAGE_PROGRAM, .error = -error };

	(void)!write(SPAWN_FD_LISTENING, &failure, sizeof(failure));
	return EXIT_FAILURE;
}

int session_run(void)
{
	SessionInput input = {
		.fds = SLOTS_NONE, .guard_fd = FD_NONE, .state_fd = FD_NONE, .memory_fd = FD_NONE
	};
	_cleanup_(session_freep) Session *session = NULL;
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_free_ char *problem = NULL;
	int r;

	r = descriptors_settle();
	if (r < 0)
		return cannot_begin(r);
	/* Before anything is opened: a key that the caller had closed leaves its number free. */
	for (unsigned i = 0; i < KEYS_MAX; i++)
		input.fds[i] = fd_if_open(SPAWN_FD_OF(i));
	input.guard_fd = fd_if_open(SPAWN_FD_GUARD);
	input.state_fd = fd_if_open(SPAWN_FD_STATE);
	input.memory_fd = fd_if_open(SPAWN_FD_MEMORY);
	r = process_settle();
	if (r >= 0)
		r = limits_settle(&input.descriptors);
	if (r >= 0)
		r = sd_event_new(&event);
	if (r >= 0)
		r = session_new(event, SPAWN_FD_LINK, SPAWN_FD_LIFELINE, &session);
	if (r < 0)
		return cannot_begin(r);
	(void)close(SPAWN_FD_LISTENING);
	if (request_read(&input.request, &problem) < 0 ||
	    inherited_apply(&input.request.inherited, &input.request.warnings) < 0)
		session_refuse(session, CS_ERROR_BAD_REQUEST, problem ?: "out of memory");
	else
		session_begin(session, &input);
	(void)close(SPAWN_FD_REQUEST);
	return sd_event_loop(event) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
