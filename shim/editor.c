/* SPDX-License-Identifier: MIT */
#include "shim/editor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define TEXT_MAX (256u * 1024)
#define FILE_NAME "allow-ip"

static const char *const places[] = { "/usr/local/bin", "/usr/bin", "/bin" };
/* editor: Debian's alternative for whatever there is. */
static const char *const fallbacks[] = { "editor", "sensible-editor", "nano", "vim", "vi" };
/* What editors need of the caller's: by value, and none of them names a program. */
static const char *const passed[] = { "TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "HOME" };

static const char *variable(char *const *environment, const char *name)
{
	for (size_t i = 0; environment && environment[i]; i++) {
		const char *value = starts_with(environment[i], name);

		if (value && *value == '=')
			return value + 1;
	}
	return NULL;
}

/* name: n bytes; a path counts by its last component. Return: 0, -ENOENT or -ENOMEM. */
static int find(const char *name, size_t n, char **ret)
{
	for (size_t i = n; i > 0; i--)
		if (name[i - 1] == '/') {
			name += i;
			n -= i;
			break;
		}
	for (size_t i = 0; n > 0 && i < ELEMENTSOF(places); i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%.*s", places[i], (int)n, name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		if (access(path, X_OK) == 0) {
			*ret = TAKE_PTR(path);
			return 0;
		}
	}
	return -ENOENT;
}

static int choose(char *const *environment, char **ret, char **reterr)
{
	const char *wanted = variable(environment, "VISUAL");
	int r;

	if (!wanted || !*wanted)
		wanted = variable(environment, "EDITOR");
	if (wanted && *wanted) {
		r = find(wanted, strcspn(wanted, " \t"), ret);
		return r == 0 ? 0
			      : refuse(reterr, r,
				       "the editor '%s' is in none of /usr/local/bin, /usr/bin and /bin; set "
				       "VISUAL "
				       "to one that is, or use 'allow-ip add' and 'remove'",
				       wanted);
	}
	for (size_t i = 0; i < ELEMENTSOF(fallbacks); i++) {
		r = find(fallbacks[i], strlen(fallbacks[i]), ret);
		if (r != -ENOENT)
			return r;
	}
	return refuse(reterr, -ENOENT, "there is no editor; install one, or use 'allow-ip add' and 'remove'");
}

/* "+LINE" before the file: POSIX vi, and what people have in its place. */
static bool takes_line(const char *program)
{
	static const char *const names[] = { "vi",    "vim",    "vim.basic", "vim.tiny", "nvim",
					     "nano",  "pico",   "emacs",     "jed",      "joe",
					     "jmacs", "mcedit", "micro",     "mg",       "ne" };
	_cleanup_free_ char *target = realpath(program, NULL);
	const char *slash = target ? strrchr(target, '/') : NULL;

	for (size_t i = 0; slash && i < ELEMENTSOF(names); i++)
		if (streq(slash + 1, names[i]))
			return true;
	return false;
}

static _noreturn_ void become(const char *program, size_t line, const char *file, char *const *environment)
{
	char number[32], *arguments[4] = { (char *)program };
	size_t n_arguments = 1;
	char *variables[ELEMENTSOF(passed) + 2] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin" };
	size_t n = 1;

	for (size_t i = 0; i < ELEMENTSOF(passed); i++) {
		const char *value = variable(environment, passed[i]);

		if (value && asprintf(&variables[n], "%s=%s", passed[i], value) > 0)
			n++;
	}
	variables[n] = NULL;
	if (line > 0 && takes_line(program)) {
		(void)snprintf(number, sizeof(number), "+%zu", line);
		arguments[n_arguments++] = number;
	}
	arguments[n_arguments] = (char *)file;
	execve(program, arguments, variables);
	_exit(127);
}

/* The terminal's signals are the editor's while it runs. */
static int run(const char *program, size_t line, const char *file, char *const *environment)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
	int status = 0;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become(program, line, file, environment);
	(void)sigaction(SIGINT, &ignore, &interrupt);
	(void)sigaction(SIGQUIT, &ignore, &quit);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	(void)sigaction(SIGINT, &interrupt, NULL);
	(void)sigaction(SIGQUIT, &quit, NULL);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED;
}

static int put(const char *file, const char *text)
{
	_cleanup_close_ int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t size = strlen(text);

	if (fd < 0)
		return -errno;
	for (ssize_t n; size > 0; text += n, size -= (size_t)n) {
		n = write(fd, text, size);
		if (n < 0)
			return -errno;
	}
	return 0;
}

static int get(const char *file, char **ret)
{
	_cleanup_close_ int fd = open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *text = malloc(TEXT_MAX + 1);
	size_t size = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + size, TEXT_MAX + 1 - size)) > 0)
		size += (size_t)n;
	if (n < 0)
		return -errno;
	if (size > TEXT_MAX)
		return -E2BIG;
	text[size] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

int editor_run(const char *text, size_t line, char *const *environment, char **ret_text, char **reterr)
{
	char directory[] = "/tmp/claude-sandbox-edit.XXXXXX";
	_cleanup_free_ char *program = NULL, *file = NULL;
	int r;

	r = choose(environment, &program, reterr);
	if (r < 0)
		return r;
	if (!mkdtemp(directory))
		return refuse(reterr, -errno, "/tmp: no private directory can be made there: %s",
			      strerror(errno));
	if (asprintf(&file, "%s/" FILE_NAME, directory) < 0) {
		file = NULL;
		(void)rmdir(directory);
		return -ENOMEM;
	}
	r = put(file, text);
	if (r == 0)
		r = run(program, line, file, environment);
	if (r == 0)
		r = get(file, ret_text);
	(void)unlink(file);
	/* An editor may leave a copy of its own: it stays, in a directory that nobody else may read. */
	(void)rmdir(directory);
	if (r < 0)
		return refuse(reterr, r, "%s did not edit the list (%s); nothing was changed", program,
			      strerror(-r));
	return 0;
}
