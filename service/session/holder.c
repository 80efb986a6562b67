/* SPDX-License-Identifier: MIT */
#include "service/session/holder.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "dbus/causes.h"
#include "service/link/spawn.h"
#include "service/net/self-test.h"
#include "service/session/anchors.h"
#include "service/session/channel.h"
#include "service/session/device-modes.h"
#include "service/session/program.h"
#include "service/session/sealed.h"
#include "service/session/user-namespace.h"

#define ANCHORS_BYTES_MAX (2u << 20) /* far above what a plan of PLAN_MOUNTS_MAX entries can say */
STATIC_ASSERT(SPAWN_FILES_NEEDED == 2 * HOLDER_PLACE_MAX);

/* ---- inside the fork ---- */

typedef struct Inside {
	const HolderOptions *options;
	int channel_fd;
	int tap_fd;
	int fds[HOLDER_PLACE_MAX]; /* by place; all of them at HOLDER_PLACE_MAX and above until the end */
} Inside;

/* errno, or 0, to whoever asked. */
static _noreturn_ void inside_say_proc(int answer_fd, int error)
{
	_exit(write(answer_fd, &error, sizeof(error)) == sizeof(error) ? 0 : EXIT_FAILURE);
}

/*
 * What bwrap does for --unshare-user --unshare-pid --proc /proc, up to the mount. What is mounted there reaches
 * nobody: a namespace of another user gets the host's mounts as slaves (mount_namespaces(7)).
 */
static _noreturn_ void inside_try_proc_child(const HolderOptions *options, int answer_fd)
{
	pid_t pid;

	answer_fd = dup2(answer_fd, STDERR_FILENO + 1);
	if (answer_fd < 0 || close_range((unsigned)answer_fd + 1, ~0U, 0) < 0)
		_exit(EXIT_FAILURE);
	if (unshare(CLONE_NEWUSER) < 0 || user_namespace_map(options->uid, options->gid) < 0 ||
	    unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
		inside_say_proc(answer_fd, errno ?: EPERM);
	/* unshare(2): only a child is in the new pid namespace. */
	pid = fork();
	if (pid < 0)
		inside_say_proc(answer_fd, errno);
	if (pid == 0)
		inside_say_proc(answer_fd,
				mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) < 0
					? errno
					: 0);
	(void)close(answer_fd);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

/* The end of the namespaces takes longer than the attempt: nobody waits for it, and bwrap reaps what it finds. */
static void inside_try_proc(Inside *inside, ChannelMessage *m, int answer_fd)
{
	pid_t pid = answer_fd < 0 ? -1 : fork();

	if (pid < 0)
		channel_fail(m, answer_fd < 0 ? -EBADMSG : -errno, "a child could not be made");
	if (pid == 0)
		inside_try_proc_child(inside->options, answer_fd);
}

static void inside_self_test(Inside *inside, ChannelMessage *m)
{
	_cleanup_free_ char *problem = NULL;
	int r = self_test_run(inside->tap_fd, inside->options->routes, &problem);

	if (r < 0)
		channel_fail(m, r, problem);
}

/* Keep what came out of the way of every number that a descriptor will get. */
static void inside_place(Inside *inside, ChannelMessage *m, int fds[static CHANNEL_FDS_MAX])
{
	for (size_t i = 0; i < m->n_fds; i++) {
		int place = m->places[i], fd;

		assert(place >= STDERR_FILENO && place < HOLDER_PLACE_MAX && inside->fds[place] < 0);
		fd = fcntl(fds[i], F_DUPFD_CLOEXEC, HOLDER_PLACE_MAX);
		if (fd < 0) {
			channel_fail(m, -errno, "descriptors run out; raise RLIMIT_NOFILE to 1024");
			return;
		}
		inside->fds[place] = fd;
	}
}

static void inside_anchor(Inside *inside, ChannelMessage *m)
{
	_cleanup_free_ char *problem = NULL;
	_cleanup_free_ uint8_t *text = NULL;
	size_t size;
	int r;

	r = sealed_read(inside->fds[HOLDER_PLACE_ANCHORS], ANCHORS_BYTES_MAX, &text, &size);
	if (r == 0)
		r = anchors_make((const char *)text, size, inside->fds, ELEMENTSOF(inside->fds), &problem);
	if (r < 0)
		channel_fail(m, r, problem);
	close_fdp(&inside->fds[HOLDER_PLACE_ANCHORS]);
}

/*
 * A mount namespace that is told of none which the host makes from now on: bwrap's is a copy of it, and what
 * came in while the agent runs would be as the host has it, writable, and in no plan. What the host unmounts
 * stays, for the same reason.
 */
static int inside_part_mounts(char **ret_problem)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return refuse(ret_problem, -errno, "no mount namespace can be made: %s", strerror(errno));
	return 0;
}

static void inside_execute(Inside *inside, ChannelMessage *m)
{
	char *const environment[] = { NULL };
	_cleanup_close_ int null_fd = program_open_null();
	_cleanup_free_ char *problem = NULL;
	int r = inside->options->uid == 0 ? device_modes_keep(&problem) : 0;

	if (r == 0)
		r = inside_part_mounts(&problem);
	if (r < 0) {
		channel_fail(m, r, problem);
		return;
	}
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0) {
		channel_fail(m, -errno, NULL);
		return;
	}
	for (int place = STDERR_FILENO; place < HOLDER_PLACE_MAX; place++) {
		if (inside->fds[place] < 0)
			(void)close(place);
		else if (dup2(inside->fds[place], place) < 0) {
			channel_fail(m, -errno, NULL);
			return;
		}
	}
	null_fd = FD_NONE; /* it lay below HOLDER_PLACE_MAX */
	/* Everything above is O_CLOEXEC already, the channel too: its end tells the session that this
	 * succeeded. */
	(void)setrlimit(RLIMIT_NOFILE, &inside->options->descriptors);
	(void)setsid();
	(void)execve(inside->options->bwrap, inside->options->arguments, environment);
	channel_fail(m, -errno, NULL);
}

static _noreturn_ void inside_run(const HolderOptions *options, int channel_fd, pid_t parent)
{
	Inside inside = { .options = options, .channel_fd = channel_fd, .tap_fd = FD_NONE };
	_cleanup_free_ char *problem = NULL;
	ChannelMessage m = { .kind = CHANNEL_OPEN };
	JailSockets sockets = JAIL_SOCKETS_INIT;
	int fds[CHANNEL_FDS_MAX], r;
	bool entered;

	for (size_t i = 0; i < ELEMENTSOF(inside.fds); i++)
		inside.fds[i] = FD_NONE;
	r = user_namespace_enter(options->uid, options->gid, options->jailed, &problem);
	program_child_reset(parent);
	entered = r == 0;
	if (r == 0 && options->jailed)
		r = jail_sockets_open(&sockets, &problem);
	if (r < 0) {
		m.number = entered;
		channel_fail(&m, r, problem);
	} else if (options->jailed) {
		int out[] = { sockets.route_fd, sockets.watch_fd, sockets.diag_fd, sockets.tap_fd,
			      sockets.ledger_fd };

		/* Last, since it may be missing; the text says why. */
		m.n_fds = ELEMENTSOF(out) - (sockets.ledger_fd < 0);
		m.number = sockets.ipv6_off;
		if (problem)
			channel_fail(&m, 0, problem);
		memcpy(fds, out, sizeof(out));
	}
	if (channel_send(channel_fd, &m, fds) < 0 || r < 0)
		_exit(1);
	inside.tap_fd = TAKE_FD(sockets.tap_fd);
	jail_sockets_close(&sockets);

	while (channel_receive(channel_fd, -1, &m, fds) == 0) {
		switch (m.kind) {
		case CHANNEL_SELF_TEST:
			inside_self_test(&inside, &m);
			break;
		case CHANNEL_CLOSE_TAP:
			close_fdp(&inside.tap_fd);
			break;
		case CHANNEL_TRY_PROC:
			inside_try_proc(&inside, &m, fds[0]);
			break;
		case CHANNEL_PLACE:
			inside_place(&inside, &m, fds);
			break;
		case CHANNEL_ANCHOR:
			inside_anchor(&inside, &m);
			break;
		case CHANNEL_EXECUTE:
			inside_execute(&inside, &m);
			break;
		case CHANNEL_OPEN:
		case CHANNEL_LISTEN:
		case CHANNEL_SOCKET:
		case CHANNEL_KIND_MAX:
			_exit(1);
		}
		for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
			close_fdp(&fds[i]);
		m.n_fds = 0;
		if (channel_send(channel_fd, &m, NULL) < 0)
			break;
	}
	_exit(1);
}

/* ---- the session's side ---- */

int holder_start(Holder *holder, const HolderOptions *options, JailSockets *ret_sockets, char **ret_problem)
{
	_cleanup_(holder_done) Holder new = HOLDER_INIT;
	int pair[2], fds[CHANNEL_FDS_MAX], r;
	struct rlimit limit = { 0 };
	ChannelMessage m;
	pid_t parent = getpid();

	/* What the jail is given lies above all numbers that it will have there. */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < SPAWN_FILES_NEEDED)
		return refuse(ret_problem, -EMFILE, BECAUSE(LIMIT_LOW), "open files",
			      (unsigned long long)limit.rlim_cur, "", (unsigned long long)SPAWN_FILES_NEEDED,
			      "", "-Hn");
	r = channel_make(pair);
	if (r < 0)
		return refuse(ret_problem, r, "no pair of sockets for the holder: %s", strerror(-r));
	new.pid = fork();
	if (new.pid < 0) {
		r = -errno;
		close_fdp(&pair[0]);
		close_fdp(&pair[1]);
		return refuse(ret_problem, r,
			      "no process for the jail (%s); end other processes of this user", strerror(-r));
	}
	if (new.pid == 0) {
		int channel_fd = fcntl(pair[1], F_DUPFD_CLOEXEC, HOLDER_PLACE_MAX);

		/* What the session has open (the link, the lifeline, the terminal) is none of its business.
		 */
		if (channel_fd < 0 || close_range(STDERR_FILENO + 1, (unsigned)channel_fd - 1, 0) < 0 ||
		    close_range((unsigned)channel_fd + 1, ~0U, 0) < 0) {
			_cleanup_free_ char *problem = NULL;

			m = (ChannelMessage){ .kind = CHANNEL_OPEN };
			r = refuse(&problem, -errno,
				   "the holder of the namespaces cannot keep its descriptors apart: %s",
				   strerror(errno));
			channel_fail(&m, r, problem);
			(void)channel_send(channel_fd < 0 ? pair[1] : channel_fd, &m, NULL);
			_exit(1);
		}
		inside_run(options, channel_fd, parent);
	}
	close_fdp(&pair[1]);
	new.channel_fd = pair[0];
	new.pidfd = program_pidfd(new.pid);
	if (new.pidfd < 0) {
		/* Closing the channel ends it; it is our child and gets reaped here. */
		r = new.pidfd;
		close_fdp(&new.channel_fd);
		(void)waitpid(new.pid, NULL, 0);
		return refuse(ret_problem, r, "the holder cannot be watched: %s", strerror(-r));
	}

	r = channel_receive(new.channel_fd, HOLDER_ANSWER_MSEC, &m, fds);
	if (r < 0)
		return refuse(ret_problem, r, "the holder of the namespaces did not answer: %s",
			      strerror(-r));
	holder->entered = m.result == 0 || m.number != 0;
	if (m.result < 0)
		return refuse(ret_problem, m.result, "%s", m.text);
	new.entered = true;
	if (m.kind != CHANNEL_OPEN || (options->jailed ? m.n_fds < 4 || m.n_fds > 5 : m.n_fds != 0)) {
		for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
			close_fdp(&fds[i]);
		return refuse(ret_problem, -EBADMSG, "the holder of the namespaces answered out of order");
	}
	if (options->jailed)
		*ret_sockets = (JailSockets){ .route_fd = fds[0],
					      .watch_fd = fds[1],
					      .diag_fd = fds[2],
					      .tap_fd = fds[3],
					      .ledger_fd = fds[4],
					      .ipv6_off = m.number != 0 };
	if (options->jailed && fds[4] < 0)
		(void)refuse(ret_problem, 0, "%s", m.text);
	*holder = new;
	new = HOLDER_INIT;
	return 0;
}

void holder_done(Holder *holder)
{
	close_fdp(&holder->channel_fd);
	program_destroy(&holder->pidfd, HOLDER_ANSWER_MSEC);
	*holder = HOLDER_INIT;
}

/* One command and its answer, which has the same kind. */
static int holder_ask(Holder *holder, const ChannelMessage *m, const int *fds, char **ret_problem)
{
	int received[CHANNEL_FDS_MAX], r;
	ChannelMessage answer;

	r = channel_send(holder->channel_fd, m, fds);
	if (r == 0)
		r = channel_receive(holder->channel_fd, HOLDER_ANSWER_MSEC, &answer, received);
	if (r == 0)
		for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
			close_fdp(&received[i]);
	if (r == 0 && answer.kind != m->kind)
		r = -EBADMSG;
	if (r < 0)
		return refuse(ret_problem, r, "the holder of the namespaces does not answer: %s",
			      strerror(-r));
	return answer.result < 0 ? refuse(ret_problem, answer.result, "%s", answer.text) : 0;
}

int holder_self_test(Holder *holder, char **ret_problem)
{
	return holder_ask(holder, &(ChannelMessage){ .kind = CHANNEL_SELF_TEST }, NULL, ret_problem);
}

int holder_close_tap(Holder *holder, char **ret_problem)
{
	return holder_ask(holder, &(ChannelMessage){ .kind = CHANNEL_CLOSE_TAP }, NULL, ret_problem);
}

int holder_try_proc(Holder *holder, int *ret_fd, char **ret_problem)
{
	_cleanup_close_ int read_fd = FD_NONE, write_fd = FD_NONE;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return refuse(ret_problem, -errno, "no pipe for the attempt: %s", strerror(errno));
	read_fd = pair[0];
	write_fd = pair[1];
	r = holder_ask(holder, &(ChannelMessage){ .kind = CHANNEL_TRY_PROC, .n_fds = 1 }, &write_fd,
		       ret_problem);
	if (r == 0)
		*ret_fd = TAKE_FD(read_fd);
	return r;
}

int holder_proc_outcome(int fd)
{
	int error;
	ssize_t n = read(fd, &error, sizeof(error));

	if (n < 0)
		return -errno;
	return n != sizeof(error) || error < 0 ? -EIO : -error;
}

int holder_execute(Holder *holder, const int *fds, const int *places, size_t n, char **ret_problem)
{
	_cleanup_free_ char *problem = NULL;
	int r = 0;

	for (size_t done = 0; done < n;) {
		ChannelMessage m = { .kind = CHANNEL_PLACE };

		m.n_fds = MIN_OF(n - done, (size_t)CHANNEL_FDS_MAX);
		memcpy(m.places, places + done, m.n_fds * sizeof(int));
		r = holder_ask(holder, &m, fds + done, ret_problem);
		if (r < 0)
			return r;
		done += m.n_fds;
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		if (places[i] == HOLDER_PLACE_ANCHORS)
			r = holder_ask(holder, &(ChannelMessage){ .kind = CHANNEL_ANCHOR }, NULL,
				       ret_problem);
	if (r < 0)
		return r;
	r = holder_ask(holder, &(ChannelMessage){ .kind = CHANNEL_EXECUTE }, NULL, &problem);
	/* No answer but the end of the channel: execve(2) closed it. */
	if (r == -ECONNRESET) {
		close_fdp(&holder->channel_fd);
		return 0;
	}
	return refuse(ret_problem, r < 0 ? r : -EBADMSG, "bwrap cannot be executed: %s",
		      problem ?: "no reason");
}
