/* SPDX-License-Identifier: MIT */
#include "dbus/shell-names.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/names.h"

static const struct {
	const char *shell, *file; /* below the home */
} files[] = {
	{ "bash", ".bashrc" },       { "bash", ".bash_aliases" },
	{ "bash", ".bash_profile" }, { "bash", ".bash_login" },
	{ "bash", ".profile" },      { "zsh", ".zshenv" },
	{ "zsh", ".zprofile" },      { "zsh", ".zshrc" },
	{ "zsh", ".zlogin" },        { "sh", ".profile" },
	{ "dash", ".profile" },      { "ksh", ".profile" },
	{ "ksh", ".kshrc" },         { "mksh", ".mkshrc" },
	{ "mksh", ".profile" },      { "fish", ".config/fish/config.fish" },
};

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

static bool is_end_of_word(char c)
{
	return c == '\0' || strchr(" \t\n;&|'\"", c);
}

/* Does the text begin with the name, or the entry's path, as a whole word? */
static bool starts_ours(const char *value, const char *name)
{
	const char *rest;

	value += strspn(value, "'\" \t");
	rest = starts_with(value, CS_BIN_DIR "/");
	value = rest ? rest : value;
	rest = starts_with(value, name);
	return rest && is_end_of_word(*rest);
}

/* "alias NAME=VALUE ...", and of fish "alias NAME VALUE". */
static bool alias_names(const char *p, const char *name)
{
	for (; *p && *p != '#'; p += strcspn(p, " \t"), p = skip_blanks(p)) {
		const char *rest = starts_with(p, name);

		if (rest && (*rest == '=' || *rest == ' ' || *rest == '\t'))
			return !starts_ours(skip_blanks(rest + 1), name);
	}
	return false;
}

bool shell_line_names(const char *line, const char *name)
{
	const char *p = skip_blanks(line), *rest;

	rest = starts_with(p, "builtin ");
	p = rest ? skip_blanks(rest) : p;
	rest = starts_with(p, "alias");
	if (rest && (*rest == ' ' || *rest == '\t'))
		return alias_names(skip_blanks(rest), name);
	rest = starts_with(p, "function");
	if (rest && (*rest == ' ' || *rest == '\t')) {
		rest = starts_with(skip_blanks(rest), name);
		return rest && (is_end_of_word(*rest) || *rest == '(' || *rest == '{');
	}
	rest = starts_with(p, name);
	rest = rest ? skip_blanks(rest) : NULL;
	return rest && rest[0] == '(' && *skip_blanks(rest + 1) == ')';
}

/* Return: the number of the line, 0 for none. */
static unsigned file_names(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	_cleanup_free_ char *line = NULL;
	size_t size = 0, read = 0;
	struct stat st;
	unsigned n = 0;
	ssize_t length;

	if (!f) {
		(void)close_fd(fd);
		return 0;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)SHELL_NAMES_BYTES_MAX)
		return 0;
	while (read < SHELL_NAMES_BYTES_MAX && (length = getline(&line, &size, f)) > 0) {
		read += (size_t)length;
		n++;
		if (shell_line_names(line, name))
			return n;
	}
	return 0;
}

const char *shell_variable(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment && *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

static bool is_known(const char *shell)
{
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (streq(files[i].shell, shell))
			return true;
	return false;
}

static int say(const char *path, unsigned line, const char *name, char **ret)
{
	int r = refuse(
		ret, 0,
		"the shell takes '%s' for something else, by line %u of %s: it starts without a jail; remove "
		"that line, and 'unalias %s' or begin a new shell",
		name, line, path, name);

	return r < 0 ? r : 1;
}

int shell_name_find(char *const *environment, const char *name, char **ret)
{
	const char *home = shell_variable(environment, "HOME"), *shell = shell_variable(environment, "SHELL");
	bool any;

	*ret = NULL;
	shell = shell ? shell : "";
	shell = strrchr(shell, '/') ? strrchr(shell, '/') + 1 : shell;
	any = !is_known(shell);
	for (size_t i = 0; home && *home == '/' && i < ELEMENTSOF(files); i++) {
		_cleanup_free_ char *path = NULL;
		unsigned line;

		if (!any && !streq(files[i].shell, shell))
			continue;
		if (asprintf(&path, "%s/%s", home, files[i].file) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		line = file_names(path, name);
		if (line > 0)
			return say(path, line, name, ret);
	}
	return 0;
}
