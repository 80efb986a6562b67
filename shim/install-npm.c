/* SPDX-License-Identifier: MIT */
#include "shim/install-npm.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* So much of npm's words is kept; the rest is read and dropped. */
#define WORDS_MAX (64u * 1024)
#define LINKS_MAX 16u

/* The system's own first: /usr/local/bin is where a site or npm itself puts a newer one. */
static const char *const directories[] = { "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin" };

/* What npm is told whatever the machine's configuration says (npm's manual, config). */
static const char *const settings[] = {
	"--ignore-scripts",
	"--no-audit",
	"--no-fund",
	"--no-update-notifier",
	"--no-bin-links",
	"--no-global",
	"--no-engine-strict",
	"--no-progress",
	"--no-color",
	"--omit=dev",
	"--git=/bin/false", /* npm would clone what a package calls a dependency, before anybody has looked */
	"--install-strategy=hoisted",
	"--lockfile-version=3",
	"--package-lock",
	"--loglevel=error",
	"--logs-max=0",
	"--fetch-retries=2",
	"--fetch-retry-mintimeout=1000",
	"--fetch-retry-maxtimeout=5000",
	"--fetch-timeout=60000",
};

/*
 * Node.js believes only the authorities that it brings. The machine's own are root's to choose as npm is, and
 * a network that answers for everybody is known to them alone.
 */
#define AUTHORITIES "/etc/ssl/certs/ca-certificates.crt"
#define AUTHORITIES_VARIABLE "NODE_EXTRA_CA_CERTS="

void install_npm_done(InstallNpm *npm)
{
	free(npm->program);
	free(npm->path);
	*npm = (InstallNpm){ 0 };
}

static int check_path(const char *path, bool directory, unsigned links);

/* Where the link at path leads, by its text. */
static int check_link(const char *path, bool directory, unsigned links)
{
	_cleanup_free_ char *text = calloc(1, PATH_MAX), *target = NULL;
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = readlink(path, text, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	if (text[0] == '/')
		target = strdup(text);
	else if (asprintf(&target, "%.*s/%s", (int)(strrchr(path, '/') - path), path, text) < 0)
		target = NULL;
	return target ? check_path(target, directory, links + 1) : -ENOMEM;
}

/* Every directory on the way, then the object itself; ".." is the file system's, and was looked at as a
 * directory. */
static int check_path(const char *path, bool directory, unsigned links)
{
	const char *end = path + strlen(path);
	struct stat st;

	if (links > LINKS_MAX)
		return -ELOOP;
	while (end > path && end[-1] == '/')
		end--;
	for (const char *p = path; p < end;) {
		_cleanup_free_ char *prefix = NULL;
		bool last;
		int r = 0;

		p += strspn(p, "/");
		p += strcspn(p, "/");
		last = p >= end;
		prefix = strndup(path, (size_t)(p - path));
		if (!prefix)
			return -ENOMEM;
		if (lstat(prefix, &st) < 0)
			return -errno;
		if (st.st_uid != 0)
			return -EPERM;
		if (S_ISLNK(st.st_mode)) {
			r = check_link(prefix, directory || !last, links);
		} else {
			if (st.st_mode & (S_IWGRP | S_IWOTH))
				r = -EPERM;
			else if (last && !directory && !S_ISREG(st.st_mode))
				r = -EACCES;
			else if ((!last || directory) && !S_ISDIR(st.st_mode))
				r = -ENOTDIR;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int install_npm_check_place(const char *path)
{
	return check_path(path, false, 0);
}

/* Return: 0 with *ret, -ENOENT, -EPERM with *reterr, -ENOMEM. */
static int find_program(const char *name, char **ret, char **reterr)
{
	int result = -ENOENT;

	for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
		_cleanup_free_ char *path = NULL;
		int r;

		if (asprintf(&path, "%s/%s", directories[i], name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		r = install_npm_check_place(path);
		if (r == 0 && access(path, X_OK) == 0) {
			*ret = TAKE_PTR(path);
			return 0;
		}
		if (r == -EPERM && result == -ENOENT)
			result = refuse(reterr, -EPERM,
					"%s, or something on the way to it, can be changed by others than "
					"root; use 'apt-get install --no-install-recommends npm'",
					path);
	}
	return result;
}

static char *trusted_path(void)
{
	char *path = strdup("");

	for (size_t i = 0; path && i < ELEMENTSOF(directories); i++) {
		char *longer;

		if (check_path(directories[i], true, 0) < 0)
			continue;
		if (asprintf(&longer, "%s%s%s", path, *path ? ":" : "", directories[i]) < 0)
			longer = NULL;
		free(path);
		path = longer;
	}
	return path;
}

int install_npm_find(InstallNpm *ret, char **reterr)
{
	_cleanup_(install_npm_done) InstallNpm npm = { 0 };
	_cleanup_free_ char *node = NULL;
	int r;

	r = find_program("npm", &npm.program, reterr);
	if (r == -ENOENT)
		return refuse(reterr, r,
			      "npm is not installed; run 'apt-get install --no-install-recommends npm'");
	if (r == 0)
		r = find_program("node", &node, reterr);
	if (r == -ENOENT)
		return refuse(reterr, r, "%s is there but no node; run 'apt-get install nodejs'",
			      npm.program);
	if (r == 0 && !(npm.path = trusted_path()))
		r = -ENOMEM;
	if (r < 0)
		return r == -ENOMEM ? refuse(reterr, r, "not enough memory") : r;
	*ret = npm;
	npm = (InstallNpm){ 0 };
	return 0;
}

bool install_npm_keeps(const char *variable)
{
	static const char *const names[] = {
		"http_proxy=",
		"https_proxy=",
		"no_proxy=",
		"all_proxy=",
		"NODE_EXTRA_CA_CERTS=",
		"SSL_CERT_FILE=",
		"SSL_CERT_DIR=",
		"npm_config_registry=",
		"npm_config_proxy=",
		"npm_config_https_proxy=",
		"npm_config_noproxy=",
		"npm_config_cafile=",
	};

	/* npm and the programs that know proxies read these in either case. */
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (strncasecmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

char *install_npm_last_line(const char *text)
{
	/* npm 9 and before, npm 10 and later */
	static const char *const prefixes[] = { "npm ERR! ", "npm error " };
	/* Facts for machines, and the place of a log that is gone with its directory. */
	static const char *const dull[] = {
		"code ",  "errno ", "syscall ", "path ",    "A complete log ",
		"cause ", "dest ",  "signal ",  "command ", "Log files were not "
	};
	_cleanup_free_ char *last = strdup("it says nothing");

	for (const char *p = text; last && *p;) {
		const char *line = p, *rest = NULL;
		size_t n = strcspn(p, "\n");
		bool skip = false;

		p += n + (p[n] == '\n');
		for (size_t i = 0; !rest && i < ELEMENTSOF(prefixes); i++)
			rest = strncmp(line, prefixes[i], strlen(prefixes[i])) == 0
				       ? line + strlen(prefixes[i])
				       : NULL;
		for (size_t i = 0; rest && i < ELEMENTSOF(dull); i++)
			skip = skip || strncmp(rest, dull[i], strlen(dull[i])) == 0;
		n = rest ? n - (size_t)(rest - line) : n;
		line = rest ? rest : line;
		if (skip || strspn(line, " \t") >= n)
			continue;
		free(last);
		last = strndup(line, n);
		/* What follows npm's first sentence is advice in several lines. */
		if (rest)
			break;
	}
	return TAKE_PTR(last);
}

bool install_npm_is_network(const char *line)
{
	/* Node.js' manual, common system errors and DNS error codes; OpenSSL's sentences on certificates. */
	static const char *const words[] = { "ENOTFOUND",    "EAI_AGAIN",   "ECONNREFUSED",
					     "ECONNRESET",   "ETIMEDOUT",   "ENETUNREACH",
					     "EHOSTUNREACH", "certificate", "EPROTO" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strstr(line, words[i]))
			return true;
	return false;
}

typedef struct Words {
	char *text;
	size_t n;
} Words;

/* Return: 1 when more may come, 0 at the end. */
static int words_read(Words *words, int fd)
{
	char dropped[4096];
	bool full = words->n >= WORDS_MAX;
	ssize_t n = full ? read(fd, dropped, sizeof(dropped))
			 : read(fd, words->text + words->n, WORDS_MAX - words->n);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (!full)
		words->n += (size_t)n;
	return n > 0;
}

typedef struct Command {
	const char **argv;
	const char **environment;
	char *allocated[7];
} Command;

static void command_done(Command *command)
{
	free(command->argv);
	free(command->environment);
	for (size_t i = 0; i < ELEMENTSOF(command->allocated); i++)
		free(command->allocated[i]);
}

static int command_make(const InstallNpm *npm, const char *project, const char *home,
			const char *const *arguments, char *const *environment, Command *ret)
{
	static const char *const formats[] = { "--prefix=%s",      "--userconfig=%s/npmrc",
					       "--cache=%s/cache", "HOME=%s",
					       "TMPDIR=%s",        "PATH=%s" };
	const char *const values[] = { project, home, home, home, home, npm->path };
	size_t n = 0, n_arguments = 0, n_environment = 0;
	bool authorities = false;

	while (arguments[n_arguments])
		n_arguments++;
	while (environment && environment[n_environment])
		n_environment++;
	ret->argv = calloc(n_arguments + ELEMENTSOF(settings) + 5, sizeof(char *));
	ret->environment = calloc(n_environment + 5, sizeof(char *));
	if (!ret->argv || !ret->environment)
		return -ENOMEM;
	for (size_t i = 0; i < ELEMENTSOF(formats); i++) {
		if (asprintf(&ret->allocated[i], formats[i], values[i]) < 0) {
			ret->allocated[i] = NULL;
			return -ENOMEM;
		}
	}

	ret->argv[n++] = npm->program;
	memcpy(ret->argv + n, arguments, n_arguments * sizeof(char *));
	n += n_arguments;
	memcpy(ret->argv + n, settings, sizeof(settings));
	n += ELEMENTSOF(settings);
	memcpy(ret->argv + n, ret->allocated, 3 * sizeof(char *));

	n = 0;
	memcpy(ret->environment, ret->allocated + 3, 3 * sizeof(char *));
	n += 3;
	for (size_t i = 0; i < n_environment; i++)
		if (install_npm_keeps(environment[i])) {
			authorities = authorities || starts_with(environment[i], AUTHORITIES_VARIABLE);
			ret->environment[n++] = environment[i];
		}
	if (!authorities && check_path(AUTHORITIES, false, 0) == 0) {
		ret->allocated[6] = strdup(AUTHORITIES_VARIABLE AUTHORITIES);
		if (!ret->allocated[6])
			return -ENOMEM;
		ret->environment[n++] = ret->allocated[6];
	}
	return 0;
}

/* In the child. */
static _noreturn_ void become_npm(const InstallNpm *npm, const char *project, const Command *command,
				  int null_fd, int words_fd, pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)umask(022);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && dup2(null_fd, STDIN_FILENO) >= 0 &&
	    dup2(null_fd, STDOUT_FILENO) >= 0 && dup2(words_fd, STDERR_FILENO) >= 0 && chdir(project) == 0 &&
	    sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execve(npm->program, (char *const *)command->argv, (char *const *)command->environment);
	dprintf(words_fd, "it cannot be started: %s\n", strerrordesc_np(errno));
	_exit(126);
}

/* Read until npm has ended, and no longer: what it left behind could hold the pipe open. */
static int wait_for_npm(int pid_fd, int words_fd, int signal_fd, Words *words)
{
	struct pollfd polls[] = { { .fd = pid_fd, .events = POLLIN },
				  { .fd = signal_fd, .events = POLLIN },
				  { .fd = words_fd, .events = POLLIN } };

	for (;;) {
		if (poll(polls, ELEMENTSOF(polls), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (polls[1].revents)
			return -EINTR;
		if (polls[2].revents && words_read(words, words_fd) == 0)
			polls[2].fd = -1;
		if (polls[0].revents && !polls[2].revents)
			return 0;
	}
}

static int run(const InstallNpm *npm, const char *project, const Command *command, int signal_fd,
	       Words *words, int *ret_status)
{
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int read_fd = FD_NONE, write_fd = FD_NONE, pid_fd = FD_NONE;
	pid_t parent = getpid(), pid;
	siginfo_t end = { 0 };
	int ends[2], r;

	if (null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	read_fd = ends[0];
	write_fd = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_npm(npm, project, command, null_fd, write_fd, parent);
	close_fdp(&write_fd);
	pid_fd = pidfd_open(pid, 0);
	r = pid_fd < 0 ? -errno : wait_for_npm(pid_fd, read_fd, signal_fd, words);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitid(P_PID, (id_t)pid, &end, WEXITED) < 0 && errno == EINTR)
		;
	*ret_status = end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
	return r;
}

int install_npm_run(const InstallNpm *npm, const char *project, const char *home,
		    const char *const *arguments, char *const *environment, char **reterr)
{
	_cleanup_(command_done) Command command = { 0 };
	_cleanup_free_ char *text = calloc(1, WORDS_MAX + 1), *line = NULL;
	_cleanup_close_ int signal_fd = FD_NONE;
	Words words = { .text = text };
	sigset_t mask, before;
	int r, status = 0;

	if (!text || command_make(npm, project, home, arguments, environment, &command) < 0)
		return refuse(reterr, -ENOMEM, "not enough memory");
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &mask, &before);
	signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	r = signal_fd < 0 ? -errno : run(npm, project, &command, signal_fd, &words, &status);
	if (r == -EINTR) {
		struct signalfd_siginfo taken;

		(void)!read(signal_fd, &taken, sizeof(taken));
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == -EINTR)
		return refuse(reterr, r, "interrupted; nothing was changed");
	if (r < 0)
		return refuse(reterr, r, "npm cannot be started: %s", strerrordesc_np(-r));
	if (status == 0)
		return 0;
	line = install_npm_last_line(text);
	if (line && install_npm_is_network(line))
		return refuse(
			reterr, -EREMOTEIO,
			"the registry cannot be reached; if the way there is a proxy, set https_proxy or "
			"NODE_EXTRA_CA_CERTS, which sudo leaves out: sudo env https_proxy=... claude-sandbox "
			"install ... npm failed (%d): %s",
			status, line);
	return refuse(reterr, -EREMOTEIO, "npm failed (%d): %s", status, line ? line : "not enough memory");
}
