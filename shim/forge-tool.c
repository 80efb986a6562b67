/* SPDX-License-Identifier: MIT */
#include "shim/forge-tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shim/install-npm.h"
#include "shim/install-tree.h"

#define WORDS_MOST 4096u
#define LINE_MOST 300u
#define PLACE "/tmp/claude-sandbox-forge.XXXXXX"

/*
 * Files and options: the manuals gh-auth-login(1), gh-environment(1), glab-auth-login(1). gh's version 1 of
 * its settings is that in which hosts.yml holds several accounts: without it, gh would go and turn other
 * hosts' entries into that form, for which it needs a keyring that is not there.
 */
const ForgeTool forge_tool_gh = {
	.name = "gh",
	.forge = "GitHub",
	.directory = "gh",
	.file = "hosts.yml",
	.host = "github.com",
	.input = "--with-token",
	.variable = "GH_CONFIG_DIR",
	.settings = "version: \"1\"\n",
	.settings_file = "config.yml",
};

const ForgeTool forge_tool_glab = {
	.name = "glab",
	.forge = "GitLab",
	.directory = "glab-cli",
	.file = "config.yml",
	.host = "gitlab.com",
	.input = "--stdin",
	.variable = "GLAB_CONFIG_DIR",
};

static const char *const directories[] = { "/usr/bin", "/usr/local/bin" };

/* No questions, no news, no keyring: an address of the session bus that leads nowhere also keeps the tool
 * from starting one. */
static const char *const fixed[] = {
	"PATH=/usr/bin:/bin",
	"LANG=C.UTF-8",
	"NO_COLOR=1",
	"NO_PROMPT=1",
	"GH_PROMPT_DISABLED=1",
	"GH_NO_UPDATE_NOTIFIER=1",
	"GLAB_CHECK_UPDATE=false",
	"GLAB_SEND_TELEMETRY=false",
	"DBUS_SESSION_BUS_ADDRESS=disabled:",
};

static const char *const proxies[] = { "http_proxy=", "https_proxy=", "no_proxy=", "all_proxy=" };

int forge_tool_find(const ForgeTool *tool, char **ret, char **reterr)
{
	for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
		_cleanup_free_ char *path = NULL;
		int r;

		if (asprintf(&path, "%s/%s", directories[i], tool->name) < 0) {
			path = NULL;
			return refuse(reterr, -ENOMEM, "not enough memory");
		}
		r = install_npm_check_place(path);
		if (r == -ENOENT)
			continue;
		if (r == 0 && access(path, X_OK) < 0)
			r = -errno;
		if (r < 0)
			return refuse(
				reterr, r == -ENOMEM ? r : -EPERM,
				"%s is not a program that root alone can change; install the package %s anew",
				path, tool->name);
		*ret = TAKE_PTR(path);
		return 0;
	}
	return refuse(reterr, -ENOENT,
		      "%s is in neither /usr/bin nor /usr/local/bin, and sessions would not have it either; "
		      "install "
		      "the package %s",
		      tool->name, tool->name);
}

static bool is_proxy(const char *variable)
{
	for (size_t i = 0; i < ELEMENTSOF(proxies); i++)
		if (strncasecmp(variable, proxies[i], strlen(proxies[i])) == 0)
			return true;
	return false;
}

typedef struct Variables {
	char **items;
	size_t n;
} Variables;

static void variables_done(Variables *variables)
{
	for (size_t i = 0; variables->items && i < variables->n; i++)
		free(variables->items[i]);
	free(variables->items);
}

static int add(Variables *variables, const char *name, const char *value)
{
	char **to = &variables->items[variables->n];

	if (asprintf(to, "%s%s%s", name, value ? "=" : "", value ?: "") < 0) {
		*to = NULL;
		return -ENOMEM;
	}
	variables->n++;
	return 0;
}

static int variables_make(const ForgeTool *tool, const char *place, char *const *environment, Variables *ret)
{
	const char *const places[] = { "HOME",          "XDG_CONFIG_HOME", "XDG_STATE_HOME",
				       "XDG_DATA_HOME", "XDG_CACHE_HOME",  tool->variable };
	size_t n = 0;
	int r = 0;

	while (environment && environment[n])
		n++;
	ret->items = calloc(n + ELEMENTSOF(fixed) + ELEMENTSOF(places) + 1, sizeof(char *));
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(fixed); i++)
		r = add(ret, fixed[i], NULL);
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(places); i++)
		r = add(ret, places[i], place);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_proxy(environment[i]))
			r = add(ret, environment[i], NULL);
	return r;
}

typedef struct Login {
	const char *program;
	const char *const *arguments;
	const Variables *variables;
	int token_fd, words_fd;
} Login;

static _noreturn_ void become(const Login *login, pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)umask(077);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && dup2(login->token_fd, STDIN_FILENO) >= 0 &&
	    dup2(login->words_fd, STDOUT_FILENO) >= 0 && dup2(login->words_fd, STDERR_FILENO) >= 0 &&
	    chdir("/") == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execve(login->program, (char *const *)login->arguments, login->variables->items);
	dprintf(login->words_fd, "it cannot be started: %s\n", strerrordesc_np(errno));
	_exit(126);
}

/* Until it has ended, and no longer: what it left behind could hold the pipe open. Return: 0, -EINTR with
 * *ret_signal, another errno. */
static int wait_for(int pid_fd, int words_fd, int signal_fd, char *words, size_t *n, int *ret_signal)
{
	struct pollfd polls[] = { { .fd = pid_fd, .events = POLLIN },
				  { .fd = signal_fd, .events = POLLIN },
				  { .fd = words_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	char dropped[1024];

	for (;;) {
		if (poll(polls, ELEMENTSOF(polls), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (polls[1].revents && read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
			*ret_signal = (int)info.ssi_signo;
			return -EINTR;
		}
		if (polls[2].revents) {
			bool full = *n >= WORDS_MOST;
			ssize_t got = read(words_fd, full ? dropped : words + *n,
					   full ? sizeof(dropped) : WORDS_MOST - *n);

			if (got > 0)
				*n += full ? 0 : (size_t)got;
			else if (got == 0 || errno != EINTR)
				polls[2].fd = -1;
		} else if (polls[0].revents) {
			return 0;
		}
	}
}

/* Return: the exit status of the tool with its words; -EINTR, another errno. */
static int run(Login *login, const char *token, int signal_fd, char *words, size_t *n, int *ret_signal)
{
	_cleanup_close_ int token_fd = FD_NONE, fill_fd = FD_NONE, words_fd = FD_NONE, end_fd = FD_NONE;
	_cleanup_close_ int pid_fd = FD_NONE;
	pid_t parent = getpid(), pid;
	siginfo_t end = { 0 };
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	token_fd = ends[0], fill_fd = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	words_fd = ends[0], end_fd = ends[1];
	/* A token fits into any pipe (SECRET_MOST, PIPE_BUF): nobody has to wait, and nobody is written to
	 * who has gone. */
	if (dprintf(fill_fd, "%s\n", token) < 0)
		return -errno;
	close_fdp(&fill_fd);
	login->token_fd = token_fd;
	login->words_fd = end_fd;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become(login, parent);
	close_fdp(&end_fd);
	close_fdp(&token_fd);
	pid_fd = pidfd_open(pid, 0);
	r = pid_fd < 0 ? -errno : wait_for(pid_fd, words_fd, signal_fd, words, n, ret_signal);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitid(P_PID, (id_t)pid, &end, WEXITED) < 0 && errno == EINTR)
		;
	return r < 0 ? r : end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
}

/* Its first line that says something. */
static char *first_line(const char *words)
{
	words += strspn(words, " \t\r\n");
	return *words ? strndup(words, MIN_OF(strcspn(words, "\r\n"), (size_t)LINE_MOST))
		      : strdup("it says nothing");
}

static int run_held(const ForgeTool *tool, Login *login, const char *token, int *ret_signal, char **reterr)
{
	_cleanup_free_ char *words = calloc(1, WORDS_MOST + 1), *line = NULL;
	_cleanup_close_ int signal_fd = FD_NONE;
	sigset_t held, before;
	size_t n = 0;
	int r;

	if (!words)
		return refuse(reterr, -ENOMEM, "not enough memory");
	(void)sigemptyset(&held);
	(void)sigaddset(&held, SIGINT);
	(void)sigaddset(&held, SIGQUIT);
	(void)sigaddset(&held, SIGTERM);
	(void)sigaddset(&held, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &held, &before);
	signal_fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
	r = signal_fd < 0 ? -errno : run(login, token, signal_fd, words, &n, ret_signal);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		return 0;
	if (r == -EINTR)
		return refuse(reterr, r, "interrupted; nothing was stored");
	if (r < 0)
		return refuse(reterr, r, "%s cannot be started: %s; try again", login->program,
			      strerrordesc_np(-r));
	line = first_line(words);
	return refuse(reterr, -EREMOTEIO,
		      "%s did not take the token (%s); look at the token, its scopes and the way to %s",
		      tool->name, line ?: "not enough memory", tool->forge);
}

static int login_in(const ForgeTool *tool, const char *path, const char *host, const char *token,
		    const ForgeText *before, char *const *environment, const char *place, int place_fd,
		    ForgeText *ret, int *ret_signal, char **reterr)
{
	const char *const arguments[] = {
		tool->name, "auth", "login", "--hostname", host, tool->input, NULL
	};
	_cleanup_(variables_done) Variables variables = { 0 };
	Login login = { .program = path, .arguments = arguments, .variables = &variables };
	_cleanup_(forge_text_done) ForgeText after = { 0 };
	int r = 0;

	if (variables_make(tool, place, environment, &variables) < 0)
		return refuse(reterr, -ENOMEM, "not enough memory");
	if (before->n > 0)
		r = forge_store_write(place_fd, tool->file, place, before, reterr);
	if (r == 0 && tool->settings)
		r = forge_store_write(place_fd, tool->settings_file, place,
				      &(ForgeText){ (char *)tool->settings, strlen(tool->settings) }, reterr);
	if (r == 0)
		r = run_held(tool, &login, token, ret_signal, reterr);
	if (r == 0)
		r = forge_store_read(place_fd, tool->file, place, &after, reterr);
	if (r < 0)
		return r;
	if (after.n == 0 || !memmem(after.bytes, after.n, token, strlen(token)))
		return refuse(
			reterr, -EREMOTEIO,
			"%s took the token, but not into its file %s, where sessions could read it; nothing "
			"was stored",
			tool->name, tool->file);
	*ret = after;
	after = (ForgeText){ 0 };
	return 0;
}

int forge_tool_login(const ForgeTool *tool, const char *path, const char *host, const char *token,
		     const ForgeText *before, char *const *environment, ForgeText *ret, int *ret_signal,
		     char **reterr)
{
	char place[] = PLACE;
	_cleanup_close_ int place_fd = FD_NONE;
	int r;

	if (!mkdtemp(place))
		return refuse(reterr, -errno, "/tmp: no private directory can be made there (%s); look at it",
			      strerrordesc_np(errno));
	place_fd = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = place_fd < 0 ? refuse(reterr, -errno, "%s cannot be opened (%s); look at it", place,
				  strerrordesc_np(errno))
			 : login_in(tool, path, host, token, before, environment, place, place_fd, ret,
				    ret_signal, reterr);
	(void)install_tree_remove(AT_FDCWD, place);
	return r;
}
