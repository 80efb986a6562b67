/* SPDX-License-Identifier: MIT */
#include "service/session/git-identity.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "service/session/program.h"

#define GIT_KILL_MSEC 1000
#define GIT_READ_BYTES 4096u
#define GIT_PLACES_BARE 2u /* lines: without a work tree there is no top level */
/* Its answer to "no such key" (git-config(1)) and to "no repository", or "no work tree" (git-rev-parse(1)).
 */
#define GIT_EXIT_NO_KEY 1
#define GIT_EXIT_NO_PLACE 128

void git_identity_done(GitIdentity *identity)
{
	free(identity->name);
	free(identity->email);
	free(identity->directory);
	free(identity->common_directory);
	free(identity->top_level);
	free(identity->worktree);
	free(identity->default_branch);
	free(identity->shared);
	free(identity->problem);
	*identity = (GitIdentity){ 0 };
}

/* ---- what git says ---- */

static int replace_string(char **string, const char *start, size_t n)
{
	char *copy = strndup(start, n);

	if (!copy)
		return -ENOMEM;
	free(*string);
	*string = copy;
	return 0;
}

/* Of the repository itself: config and config.worktree in its own directory. */
static bool is_own_scope(const char *scope)
{
	return streq(scope, "local") || streq(scope, "worktree");
}

int git_identity_parse_config(const char *output, size_t size, GitIdentity *identity)
{
	const struct {
		const char *key; /* with the newline that ends it */
		char **value;
		bool own;
	} wanted[] = {
		{ "user.name\n", &identity->name, false },
		{ "user.email\n", &identity->email, false },
		{ "init.defaultbranch\n", &identity->default_branch, false },
		{ "core.sharedrepository\n", &identity->shared, false },
		{ "core.worktree\n", &identity->worktree, true },
	};

	for (const char *scope = output, *end = output + size; scope < end;) {
		const char *item = memchr(scope, 0, (size_t)(end - scope));
		const char *stop = item ? memchr(item + 1, 0, (size_t)(end - item - 1)) : NULL;

		if (!stop)
			return 0;
		item++;
		for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
			const char *value = starts_with(item, wanted[i].key);
			int r;

			if (!value || value == stop || (wanted[i].own && !is_own_scope(scope)))
				continue;
			r = replace_string(wanted[i].value, value, (size_t)(stop - value));
			if (r < 0)
				return r;
		}
		scope = stop + 1;
	}
	return 0;
}

int git_identity_parse_places(const char *output, size_t size, GitIdentity *identity)
{
	char **const places[] = { &identity->directory, &identity->common_directory, &identity->top_level };
	const char *line = output, *end = output + size, *starts[ELEMENTSOF(places)];
	size_t sizes[ELEMENTSOF(places)], n = 0;

	if (memchr(output, 0, size))
		return 0;
	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		if (!stop || *line != '/' || n == ELEMENTSOF(places))
			return 0;
		starts[n] = line;
		sizes[n++] = (size_t)(stop - line);
		line = stop + 1;
	}
	if (n < GIT_PLACES_BARE)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int r = replace_string(places[i], starts[i], sizes[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- asking it ---- */

typedef struct GitChild {
	GitQuery *query;
	int pidfd, out_fd;
	char *output;
	size_t size;
	int usual_failure; /* the exit status that is an answer as well */
	bool failed;       /* with that status */
	char *problem;     /* any other way not to answer */
	sd_event_source *pid_source, *out_source;
} GitChild;

struct GitQuery {
	GitChild children[2];
	sd_event_source *deadline;
	GitAnswered answered;
	void *userdata;
};

static char *const git_config_arguments[] = {
	(char *)"git",
	(char *)"-c",
	(char *)"core.fsmonitor=false",
	(char *)"config",
	(char *)"--null",
	(char *)"--show-scope",
	(char *)"--get-regexp",
	(char *)"^(user\\.(name|email)|core\\.(worktree|sharedrepository)|init\\.defaultbranch)$",
	NULL,
};

static char *const git_places_arguments[] = {
	(char *)"git",
	(char *)"-c",
	(char *)"core.fsmonitor=false",
	(char *)"rev-parse",
	(char *)"--path-format=absolute",
	(char *)"--git-dir",
	(char *)"--git-common-dir",
	(char *)"--show-toplevel",
	NULL,
};

static void git_child_done(GitChild *child)
{
	child->pid_source = sd_event_source_disable_unref(child->pid_source);
	child->out_source = sd_event_source_disable_unref(child->out_source);
	program_destroy(&child->pidfd, GIT_KILL_MSEC);
	close_fdp(&child->out_fd);
	freep(&child->output);
	freep(&child->problem);
}

/* The first cause is the one to be told; the rest follows from it. */
static _printf_(2, 3) void git_child_blame(GitChild *child, const char *format, ...)
{
	va_list arguments;

	if (child->problem)
		return;
	va_start(arguments, format);
	if (vasprintf(&child->problem, format, arguments) < 0)
		child->problem = NULL;
	va_end(arguments);
}

GitQuery *git_query_free(GitQuery *query)
{
	if (!query)
		return NULL;
	for (size_t i = 0; i < ELEMENTSOF(query->children); i++)
		git_child_done(&query->children[i]);
	(void)sd_event_source_disable_unref(query->deadline);
	free(query);
	return NULL;
}

static void git_query_answer(GitQuery *query)
{
	_cleanup_(git_identity_done) GitIdentity identity = { 0 };
	GitChild *config = &query->children[0], *places = &query->children[1];

	(void)sd_event_source_set_enabled(query->deadline, SD_EVENT_OFF);
	if (!config->failed && !config->problem)
		(void)git_identity_parse_config(config->output, config->size, &identity);
	/* Of a bare repository the first two lines are said before the failure. */
	if (!places->problem)
		(void)git_identity_parse_places(places->output, places->size, &identity);
	identity.no_repository = places->failed && !places->problem && places->size == 0;
	identity.problem = config->problem ? TAKE_PTR(config->problem) : TAKE_PTR(places->problem);
	/* May free query. */
	query->answered(query->userdata, &identity);
}

static void git_child_settle(GitChild *child)
{
	GitQuery *query = child->query;

	for (size_t i = 0; i < ELEMENTSOF(query->children); i++)
		if (query->children[i].pidfd >= 0 || query->children[i].out_fd >= 0)
			return;
	git_query_answer(query);
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	GitChild *child = userdata;
	ssize_t n;

	if (child->size + GIT_READ_BYTES > GIT_OUTPUT_MAX) {
		git_child_blame(child, "said more than %u bytes", GIT_OUTPUT_MAX);
		n = -1;
	} else {
		n = read(fd, child->output + child->size, GIT_READ_BYTES);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
	}
	if (n > 0) {
		child->size += (size_t)n;
		return 0;
	}
	if (n < 0)
		git_child_blame(child, "could not be read (%s)", strerror(errno));
	child->out_source = sd_event_source_disable_unref(child->out_source);
	close_fdp(&child->out_fd);
	git_child_settle(child);
	return 0;
}

static int on_child_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	GitChild *child = userdata;
	int status = 0, r = program_reap(child->pidfd, &status);

	if (r == 0)
		return 0;
	if (r < 0)
		git_child_blame(child, "could not be waited for (%s)", strerror(-r));
	else if (WIFSIGNALED(status))
		git_child_blame(child, "was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == child->usual_failure)
		child->failed = true;
	else if (WEXITSTATUS(status) != 0)
		git_child_blame(child, "ended with status %d", WEXITSTATUS(status));
	child->pid_source = sd_event_source_disable_unref(child->pid_source);
	close_fdp(&child->pidfd);
	git_child_settle(child);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	GitQuery *query = userdata;

	for (size_t i = 0; i < ELEMENTSOF(query->children); i++) {
		GitChild *child = &query->children[i];

		if (child->pidfd >= 0 || child->out_fd >= 0)
			git_child_blame(child, "did not answer within %u seconds",
					(unsigned)(GIT_DEADLINE_USEC / USEC_PER_SEC));
		child->pid_source = sd_event_source_disable_unref(child->pid_source);
		child->out_source = sd_event_source_disable_unref(child->out_source);
		program_destroy(&child->pidfd, GIT_KILL_MSEC);
		close_fdp(&child->out_fd);
	}
	git_query_answer(query);
	return 0;
}

static _noreturn_ void git_child_run(const GitOptions *options, char *const *arguments, int out_fd,
				     pid_t parent)
{
	_cleanup_free_ char *home = NULL;
	char *environment[] = { NULL, NULL };

	if (asprintf(&home, "HOME=%s", options->home) < 0)
		_exit(127);
	environment[0] = home;
	if (fchdir(options->workspace_fd) < 0 ||
	    setns(options->holder_pidfd, CLONE_NEWUSER | (options->network ? CLONE_NEWNET : 0)) < 0)
		_exit(127);
	program_child_reset(parent);
	program_execute(options->path, arguments, environment, FD_NONE, out_fd, FD_NONE);
}

static int git_child_start(sd_event *event, const GitOptions *options, char *const *arguments,
			   GitChild *child)
{
	_cleanup_close_ int out_fd = FD_NONE;
	pid_t parent = getpid(), pid;
	int fds[2], r;

	child->output = malloc(GIT_OUTPUT_MAX);
	if (!child->output)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child->out_fd = fds[0];
	out_fd = fds[1];
	if (fcntl(child->out_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		git_child_run(options, arguments, out_fd, parent);
	child->pidfd = program_pidfd(pid);
	if (child->pidfd < 0) {
		r = child->pidfd;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	r = sd_event_add_io(event, &child->pid_source, child->pidfd, EPOLLIN, on_child_ended, child);
	if (r == 0)
		r = sd_event_add_io(event, &child->out_source, child->out_fd, EPOLLIN, on_output, child);
	return r;
}

int git_query_start(sd_event *event, const GitOptions *options, GitAnswered answered, void *userdata,
		    GitQuery **ret)
{
	_cleanup_(git_query_freep) GitQuery *query = NULL;
	int r;

	query = malloc(sizeof(*query));
	if (!query)
		return -ENOMEM;
	*query = (GitQuery){ .answered = answered, .userdata = userdata };
	for (size_t i = 0; i < ELEMENTSOF(query->children); i++)
		query->children[i] = (GitChild){ .query = query, .pidfd = FD_NONE, .out_fd = FD_NONE };
	query->children[0].usual_failure = GIT_EXIT_NO_KEY;
	query->children[1].usual_failure = GIT_EXIT_NO_PLACE;
	r = git_child_start(event, options, git_config_arguments, &query->children[0]);
	if (r == 0)
		r = git_child_start(event, options, git_places_arguments, &query->children[1]);
	if (r == 0)
		r = sd_event_add_time_relative(event, &query->deadline, CLOCK_MONOTONIC, GIT_DEADLINE_USEC, 0,
					       on_deadline, query);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(query);
	return 0;
}
