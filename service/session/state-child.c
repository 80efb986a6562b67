/* SPDX-License-Identifier: MIT */
#include "service/session/state-child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "service/link/pack.h"
#include "service/session/program.h"
#include "service/session/state-take.h"

#define WARNINGS_BYTES_MAX 4096u /* fits into a pipe, pipe(7) */
#define EXIT_AGAIN 75            /* sysexits.h: EX_TEMPFAIL */
#define EXIT_DELETION 2
#define KILL_MSEC 2000

struct StateChild {
	sd_event *event;
	StateChildEnded ended;
	void *userdata;
	int lock_fd; /* borrowed */
	int pidfd, warnings_fd;
	uint64_t started_usec;
	sd_event_source *source, *deadline;
};

/* ---- the child ---- */

/* A copy of a pipe or terminal of the agent's would keep it from ending. */
static void keep_only(int a, int b, int c)
{
	int kept[] = { a, b, c };
	unsigned first = STDERR_FILENO + 1;

	for (size_t i = 0; i < ELEMENTSOF(kept); i++)
		for (size_t j = i + 1; j < ELEMENTSOF(kept); j++)
			if (kept[j] < kept[i]) {
				int other = kept[i];

				kept[i] = kept[j];
				kept[j] = other;
			}
	for (size_t i = 0; i < ELEMENTSOF(kept); i++) {
		if (kept[i] < (int)first)
			continue;
		if ((unsigned)kept[i] > first)
			(void)close_range(first, (unsigned)kept[i] - 1, 0);
		first = (unsigned)kept[i] + 1;
	}
	(void)close_range(first, ~0U, 0);
}

static void say(int fd, char *const *warnings)
{
	size_t left = WARNINGS_BYTES_MAX;

	for (size_t i = 0; warnings && warnings[i]; i++) {
		size_t n = strlen(warnings[i]);

		if (n + 1 > left || write(fd, warnings[i], n) != (ssize_t)n || write(fd, "", 1) != 1)
			return;
		left -= n + 1;
	}
}

static _noreturn_ void child_run(const StateChildOptions *options, int warnings_fd, pid_t parent)
{
	_cleanup_(strings_freep) char **warnings = NULL;
	int r = 0, taken = 0;

	program_child_reset(parent);
	keep_only(options->files->lock_fd, options->home_fd, warnings_fd);
	if (options->home_fd >= 0)
		taken = state_take(options->files, options->home_fd, &warnings);
	r = state_sync(options->files, &options->sync, &warnings);
	say(warnings_fd, warnings);
	_exit(r == -EAGAIN || taken == -EAGAIN ? EXIT_AGAIN
	      : r < 0                          ? EXIT_FAILURE
	      : r > 0                          ? EXIT_DELETION
					       : EXIT_SUCCESS);
}

/* ---- the session's side ---- */

static uint64_t now(const StateChild *child)
{
	uint64_t usec = 0;

	(void)sd_event_now(child->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

static char **read_warnings(const StateChild *child)
{
	char text[WARNINGS_BYTES_MAX + 1];
	char **warnings = NULL;
	ssize_t n = read(child->warnings_fd, text, WARNINGS_BYTES_MAX);

	if (n <= 0)
		return NULL;
	text[n] = 0;
	for (char *p = text; p < text + n; p += strlen(p) + 1)
		(void)strings_append(&warnings, p);
	return warnings;
}

static void finish(StateChild *child, int result)
{
	uint64_t took_usec = now(child) - child->started_usec;

	/* The lock belongs to the open file, which is the session's too: its death alone frees nothing. */
	(void)flock(child->lock_fd, LOCK_UN);
	child->ended(child->userdata, result, read_warnings(child), took_usec);
}

static int on_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	StateChild *child = userdata;
	int status = 0, r = program_reap(child->pidfd, &status);

	if (r == 0)
		return 0;
	child->source = sd_event_source_disable_unref(child->source);
	close_fdp(&child->pidfd);
	finish(child, r < 0 || !WIFEXITED(status)            ? -EIO
		      : WEXITSTATUS(status) == EXIT_AGAIN    ? -EAGAIN
		      : WEXITSTATUS(status) == EXIT_DELETION ? 1
		      : WEXITSTATUS(status) != 0             ? -EIO
							     : 0);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	StateChild *child = userdata;

	child->source = sd_event_source_disable_unref(child->source);
	program_destroy(&child->pidfd, KILL_MSEC);
	finish(child, -ETIMEDOUT);
	return 0;
}

static int child_fork(StateChild *child, const StateChildOptions *options)
{
	_cleanup_close_ int write_fd = FD_NONE;
	pid_t parent = getpid(), pid;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	child->warnings_fd = fds[0];
	write_fd = fds[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_run(options, write_fd, parent);
	child->pidfd = program_pidfd(pid);
	if (child->pidfd < 0) {
		r = child->pidfd;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	return 0;
}

int state_child_start(sd_event *event, const StateChildOptions *options, StateChildEnded ended,
		      void *userdata, StateChild **ret)
{
	_cleanup_(state_child_freep) StateChild *child = malloc(sizeof(*child));
	int r;

	if (!child)
		return -ENOMEM;
	*child = (StateChild){ .event = sd_event_ref(event),
			       .ended = ended,
			       .userdata = userdata,
			       .lock_fd = options->files->lock_fd,
			       .pidfd = FD_NONE,
			       .warnings_fd = FD_NONE };
	child->started_usec = now(child);
	r = child_fork(child, options);
	if (r == 0)
		r = sd_event_add_io(event, &child->source, child->pidfd, EPOLLIN, on_ended, child);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &child->deadline, CLOCK_MONOTONIC, STATE_CHILD_USEC, 0,
					       on_deadline, child);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(child);
	return 0;
}

StateChild *state_child_free(StateChild *child)
{
	if (!child)
		return NULL;
	(void)sd_event_source_disable_unref(child->source);
	(void)sd_event_source_disable_unref(child->deadline);
	if (child->pidfd >= 0) {
		program_destroy(&child->pidfd, KILL_MSEC);
		(void)flock(child->lock_fd, LOCK_UN);
	}
	close_fdp(&child->warnings_fd);
	(void)sd_event_unref(child->event);
	free(child);
	return NULL;
}
