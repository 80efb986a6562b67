/* SPDX-License-Identifier: MIT */
#include "service/session/git-identity.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/link/pack.h"
#include "service/session/program.h"

#define GIT_KILL_MSEC 1000
#define GIT_READ_BYTES 4096u
#define GIT_EXIT_NO_KEY 1 /* its answer to "no such key" (git-config(1)) */

void git_identity_done(GitIdentity *identity)
{
	free(identity->name);
	free(identity->email);
	free(identity->default_branch);
	free(identity->shared);
	strings_free(identity->safe_directories);
	git_carry_done(&identity->carry);
	free(identity->problem);
	*identity = (GitIdentity){ 0 };
}

/* ---- what git says ---- */

static int replace_string(char **string, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*string);
	*string = copy;
	return 0;
}

static int add_safe_directory(GitIdentity *identity, const char *value, const char *home)
{
	const char *rest = starts_with(value, "~/");

	return rest ? strings_appendf(&identity->safe_directories, "%s/%s", home, rest)
		    : strings_append(&identity->safe_directories, value);
}

int git_identity_parse(const char *output, size_t size, const char *home, GitIdentity *identity)
{
	const struct {
		const char *key; /* with the newline that ends it */
		char **value;
	} wanted[] = {
		{ "user.name\n", &identity->name },
		{ "user.email\n", &identity->email },
		{ "init.defaultbranch\n", &identity->default_branch },
		{ "core.sharedrepository\n", &identity->shared },
	};

	for (const char *item = output, *end = output + size; item < end; item += strlen(item) + 1) {
		_cleanup_free_ char *key = NULL;
		const char *safe, *line_end;
		int r = 0;

		if (!memchr(item, 0, (size_t)(end - item)))
			return 0;
		for (size_t i = 0; i < ELEMENTSOF(wanted) && r == 0; i++) {
			const char *value = starts_with(item, wanted[i].key);

			if (value && *value)
				r = replace_string(wanted[i].value, value);
		}
		safe = starts_with(item, "safe.directory\n");
		if (safe && r == 0)
			r = add_safe_directory(identity, safe, home);
		line_end = strchrnul(item, '\n');
		key = r == 0 ? strndup(item, (size_t)(line_end - item)) : NULL;
		if (r == 0)
			r = key ? git_carry_add(&identity->carry, key, *line_end ? line_end + 1 : NULL, home)
				: -ENOMEM;
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- asking it ---- */

struct GitQuery {
	int pidfd, out_fd;
	char *home;
	char *output;
	size_t size;
	bool no_key;   /* it knows none of what was asked */
	char *problem; /* any other way not to answer */
	sd_event_source *pid_source, *out_source, *deadline;
	GitAnswered answered;
	void *userdata;
};

static char *const git_arguments[] = {
	(char *)"git",
	(char *)"-c",
	(char *)"core.fsmonitor=false",
	(char *)"config",
	(char *)"--null",
	(char *)"--get-regexp",
	(char *)".", /* the table of git-carry.c chooses */
	NULL,
};

static void git_query_stop(GitQuery *query)
{
	query->pid_source = sd_event_source_disable_unref(query->pid_source);
	query->out_source = sd_event_source_disable_unref(query->out_source);
	program_destroy(&query->pidfd, GIT_KILL_MSEC);
	close_fdp(&query->out_fd);
}

/* The first cause is the one to be told; the rest follows from it. */
static _printf_(2, 3) void git_query_blame(GitQuery *query, const char *format, ...)
{
	va_list arguments;

	if (query->problem)
		return;
	va_start(arguments, format);
	if (vasprintf(&query->problem, format, arguments) < 0)
		query->problem = NULL;
	va_end(arguments);
}

GitQuery *git_query_free(GitQuery *query)
{
	if (!query)
		return NULL;
	git_query_stop(query);
	(void)sd_event_source_disable_unref(query->deadline);
	free(query->output);
	free(query->home);
	free(query->problem);
	free(query);
	return NULL;
}

static void git_query_answer(GitQuery *query)
{
	_cleanup_(git_identity_done) GitIdentity identity = { 0 };

	if (query->pidfd >= 0 || query->out_fd >= 0)
		return;
	(void)sd_event_source_set_enabled(query->deadline, SD_EVENT_OFF);
	if (!query->no_key && !query->problem)
		(void)git_identity_parse(query->output, query->size, query->home, &identity);
	identity.problem = TAKE_PTR(query->problem);
	/* May free query. */
	query->answered(query->userdata, &identity);
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	GitQuery *query = userdata;
	ssize_t n;

	if (query->size + GIT_READ_BYTES > GIT_OUTPUT_MAX) {
		git_query_blame(query, "said more than %u bytes", GIT_OUTPUT_MAX);
		n = -1;
	} else {
		n = read(fd, query->output + query->size, GIT_READ_BYTES);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
	}
	if (n > 0) {
		query->size += (size_t)n;
		return 0;
	}
	if (n < 0)
		git_query_blame(query, "could not be read (%s)", strerror(errno));
	query->out_source = sd_event_source_disable_unref(query->out_source);
	close_fdp(&query->out_fd);
	git_query_answer(query);
	return 0;
}

static int on_child_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	GitQuery *query = userdata;
	int status = 0, r = program_reap(query->pidfd, &status);

	if (r == 0)
		return 0;
	if (r < 0)
		git_query_blame(query, "could not be waited for (%s)", strerror(-r));
	else if (WIFSIGNALED(status))
		git_query_blame(query, "was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == GIT_EXIT_NO_KEY)
		query->no_key = true;
	else if (WEXITSTATUS(status) != 0)
		git_query_blame(query, "ended with status %d", WEXITSTATUS(status));
	query->pid_source = sd_event_source_disable_unref(query->pid_source);
	close_fdp(&query->pidfd);
	git_query_answer(query);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	GitQuery *query = userdata;

	git_query_blame(query, "did not answer within %u seconds",
			(unsigned)(GIT_DEADLINE_USEC / USEC_PER_SEC));
	git_query_stop(query);
	git_query_answer(query);
	return 0;
}

/* ---- the stand-in for the repository ---- */

static int put_file(int directory_fd, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* An empty file system with what git needs to take it for a repository. */
static int make_stand_in(const GitPlaces *places)
{
	_cleanup_close_ int fs_fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), fd = FD_NONE;

	if (fs_fd < 0 || syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, "mode", "0700", 0) < 0 ||
	    syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	fd = (int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, MS_NOSUID | MS_NODEV | MS_NOEXEC);
	if (fd < 0 || mkdirat(fd, "objects", 0700) < 0 || mkdirat(fd, "refs", 0700) < 0 ||
	    put_file(fd, "HEAD", places->head) < 0 || put_file(fd, "config", places->settings ?: "") < 0)
		return -1;
	return TAKE_FD(fd);
}

/*
 * In a child, which has the rights for it in the holder's user namespace. The held directory belongs to the
 * mount namespace that is left, so it is opened by its path again; what is not the same is not covered.
 */
static int enter_stand_in(const GitPlaces *places)
{
	_cleanup_close_ int place_fd = FD_NONE, fd = FD_NONE;
	struct stat held, here;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -1;
	place_fd = open(places->directory.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place_fd < 0 || fstat(place_fd, &here) < 0 || fstat(places->directory.fd, &held) < 0 ||
	    here.st_dev != held.st_dev || here.st_ino != held.st_ino)
		return -1;
	fd = make_stand_in(places);
	if (fd < 0 || syscall(SYS_move_mount, fd, "", place_fd, "",
			      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -1;
	return fchdir(fd);
}

/* ---- asking it ---- */

static _noreturn_ void git_run(const GitOptions *options, int out_fd, pid_t parent)
{
	_cleanup_free_ char *home = NULL;
	/* An absolute one that is none: git then looks for no repository in the current directory. */
	char *environment[] = { NULL, (char *)"GIT_DIR=/dev/null", NULL };

	if (asprintf(&home, "HOME=%s", options->home) < 0)
		_exit(127);
	environment[0] = home;
	if (chdir("/") < 0 ||
	    setns(options->holder_pidfd, CLONE_NEWUSER | (options->network ? CLONE_NEWNET : 0)) < 0)
		_exit(127);
	if (options->places->directory.path) {
		if (enter_stand_in(options->places) < 0)
			_exit(127);
		environment[1] = (char *)"GIT_DIR=.";
	}
	program_child_reset(parent);
	program_execute(options->path, git_arguments, environment, FD_NONE, out_fd, FD_NONE);
}

static int git_start(sd_event *event, const GitOptions *options, GitQuery *query)
{
	_cleanup_close_ int out_fd = FD_NONE;
	pid_t parent = getpid(), pid;
	int fds[2], r;

	query->output = malloc(GIT_OUTPUT_MAX);
	query->home = strdup(options->home);
	if (!query->output || !query->home)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	query->out_fd = fds[0];
	out_fd = fds[1];
	if (fcntl(query->out_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		git_run(options, out_fd, parent);
	query->pidfd = program_pidfd(pid);
	if (query->pidfd < 0) {
		r = query->pidfd;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	r = sd_event_add_io(event, &query->pid_source, query->pidfd, EPOLLIN, on_child_ended, query);
	if (r == 0)
		r = sd_event_add_io(event, &query->out_source, query->out_fd, EPOLLIN, on_output, query);
	return r;
}

int git_query_start(sd_event *event, const GitOptions *options, GitAnswered answered, void *userdata,
		    GitQuery **ret)
{
	_cleanup_(git_query_freep) GitQuery *query = malloc(sizeof(*query));
	int r;

	if (!query)
		return -ENOMEM;
	*query =
		(GitQuery){ .answered = answered, .userdata = userdata, .pidfd = FD_NONE, .out_fd = FD_NONE };
	r = git_start(event, options, query);
	if (r == 0)
		r = sd_event_add_time_relative(event, &query->deadline, CLOCK_MONOTONIC, GIT_DEADLINE_USEC, 0,
					       on_deadline, query);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(query);
	return 0;
}
