/* SPDX-License-Identifier: MIT */
#include "service/session/verify-run.h"

#include <sys/epoll.h>
#include <sys/wait.h>

#include "service/link/link.h"
#include "service/link/process-state.h"
#include "service/session/program.h"
#include "service/session/sealed.h"
#include "service/session/verify-rows.h"

/* A process that was sent SIGKILL ends. */
#define KILL_MSEC 1000

struct VerifyRun {
	sd_event *event;
	VerifyRunCalls calls;
	void *userdata;
	VerifyRows *rows;
	int joiner_fd, word_fd, verify_fd; /* pidfds, and what both processes say until verify runs */
	pid_t pid;                         /* of the process behind verify_fd */
	sd_event_source *joiner, *word, *verify;
};

/* The first process may have made the second, and nobody have read so yet. */
static void find_verify(VerifyRun *run)
{
	JoinWord word;

	while (run->verify_fd < 0 && run->word_fd >= 0 &&
	       read(run->word_fd, &word, sizeof(word)) == (ssize_t)sizeof(word))
		if (word.stage == JOIN_STARTED && word.number > 1)
			run->verify_fd = program_pidfd(word.number);
}

VerifyRun *verify_run_free(VerifyRun *run)
{
	if (!run)
		return NULL;
	(void)sd_event_source_disable_unref(run->joiner);
	(void)sd_event_source_disable_unref(run->word);
	(void)sd_event_source_disable_unref(run->verify);
	program_destroy(&run->joiner_fd, KILL_MSEC);
	find_verify(run);
	program_destroy(&run->verify_fd, KILL_MSEC);
	(void)close_fd(run->word_fd);
	(void)verify_rows_free(run->rows);
	(void)sd_event_unref(run->event);
	free(run);
	return NULL;
}

static void run_done(VerifyRun *run, int result, const char *why)
{
	run->calls.done(run->userdata, result, why);
}

static void on_row(void *userdata, const Row *row)
{
	const VerifyRun *run = userdata;

	run->calls.row(run->userdata, row);
}

static bool verify_is_stopped(void *userdata)
{
	const VerifyRun *run = userdata;

	return process_is_stopped(run->pid);
}

static void on_spoilt(void *userdata, const char *why)
{
	run_done(userdata, -ETIME, why);
}

static int on_verify_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_free_ char *why = NULL;
	VerifyRun *run = userdata;
	int status = 0;

	if (program_reap(fd, &status) == 0)
		return 0;
	run->verify = sd_event_source_disable_unref(run->verify);
	run->verify_fd = close_fd(run->verify_fd);
	if (verify_rows_drain(run->rows) < 0)
		(void)refuse(&why, 0, "%s", VERIFY_ROWS_STRANGE);
	else if (WIFSIGNALED(status))
		(void)refuse(&why, 0, "what checks was killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) > 1)
		(void)refuse(&why, 0, "what checks could not do its work, and ended with status %d",
			     WEXITSTATUS(status));
	if (why)
		run_done(run, -ECHILD, why);
	else
		run_done(run, WEXITSTATUS(status) == 0 ? 0 : LINK_CHECK_FAILED, NULL);
	return 0;
}

/* It is a child of ours, and not reaped: the pid is its own. */
static int watch_verify(VerifyRun *run, pid_t pid)
{
	int r;

	if (run->verify_fd >= 0 || pid <= 1)
		return -EBADMSG;
	run->pid = pid;
	r = run->verify_fd = program_pidfd(pid);
	if (r >= 0)
		r = sd_event_add_io(run->event, &run->verify, run->verify_fd, EPOLLIN, on_verify_ended, run);
	return r < 0 ? r : 0;
}

static int on_word(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_free_ char *why = NULL;
	VerifyRun *run = userdata;
	JoinWord word;
	ssize_t n = read(fd, &word, sizeof(word));
	int r = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != (ssize_t)sizeof(word)) {
		/* Verify runs, or nothing does, and then its pidfd or the silence says so. */
		run->word = sd_event_source_disable_unref(run->word);
		return 0;
	}
	if (word.stage == JOIN_STARTED)
		r = watch_verify(run, word.number);
	else if (word.number != 0)
		r = refuse(&why, -ECHILD, "%s: %s", join_stage_to_string(word.stage), strerror(word.number));
	else
		r = refuse(&why, -ECHILD, "%s", join_stage_to_string(word.stage));
	if (r < 0)
		run_done(run, r, why);
	return 0;
}

static int on_joiner_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	VerifyRun *run = userdata;
	int status = 0;

	if (program_reap(fd, &status) == 0)
		return 0;
	run->joiner = sd_event_source_disable_unref(run->joiner);
	run->joiner_fd = close_fd(run->joiner_fd);
	/* Its last word comes first: word has the higher priority. */
	if (status != 0)
		run_done(run, -ECHILD, "what joins the jail ended before its time");
	return 0;
}

static int run_watch(VerifyRun *run)
{
	int r;

	r = sd_event_add_io(run->event, &run->word, run->word_fd, EPOLLIN, on_word, run);
	if (r >= 0)
		r = sd_event_source_set_priority(run->word, SD_EVENT_PRIORITY_NORMAL - 10);
	if (r >= 0)
		r = sd_event_add_io(run->event, &run->joiner, run->joiner_fd, EPOLLIN, on_joiner_ended, run);
	return r < 0 ? r : verify_rows_begin(run->rows);
}

int verify_run_new(sd_event *event, const VerifySource *source, const VerifyJoin *join,
		   const VerifyRunCalls *calls, void *userdata, VerifyRun **ret, char **ret_problem)
{
	static const VerifyRowsCalls rows_calls = { .row = on_row,
						    .is_stopped = verify_is_stopped,
						    .spoilt = on_spoilt };
	_cleanup_close_ int expectations_fd = FD_NONE, rows_fd = FD_NONE;
	_cleanup_(verify_run_freep) VerifyRun *run = malloc(sizeof(*run));
	_cleanup_free_ uint8_t *data = NULL;
	VerifyJoin given = *join;
	size_t size = 0;
	int r;

	if (!run)
		return -ENOMEM;
	*run = (VerifyRun){ .event = sd_event_ref(event),
			    .calls = *calls,
			    .userdata = userdata,
			    .joiner_fd = FD_NONE,
			    .word_fd = FD_NONE,
			    .verify_fd = FD_NONE };
	r = verify_facts_encode(source, &data, &size, ret_problem);
	if (r == 0)
		r = sealed_make("expectations", data, size, &expectations_fd);
	if (r == 0)
		r = verify_rows_new(event, &rows_calls, run, &run->rows, &rows_fd);
	if (r == 0) {
		given.expectations_fd = expectations_fd;
		given.rows_fd = rows_fd;
		r = verify_join(&given, &run->joiner_fd, &run->word_fd, ret_problem);
	}
	if (r == 0)
		r = run_watch(run);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(run);
	return 0;
}
