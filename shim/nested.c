/* SPDX-License-Identifier: MIT */
#include "shim/nested.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/names.h"

#define MARKER_BYTES_MAX (CS_PATH_BYTES_MAX + 64u)
#define UID_OVERFLOW 65534 /* user_namespaces(7): owners that have no number inside */

int nested_parse(const char *text, size_t size, char **ret_profile, char **ret_program)
{
	_cleanup_free_ char *profile = NULL, *program = NULL;
	const char *newline = memchr(text, '\n', size);
	size_t n_profile, n_program;

	if (!newline || memchr(text, '\0', size) || text[size - 1] != '\n')
		return -EBADMSG;
	n_profile = (size_t)(newline - text);
	if (n_profile == 0 || n_profile + 1 >= size)
		return -EBADMSG;
	n_program = size - n_profile - 2;
	if (n_program == 0 || newline[1] != '/')
		return -EBADMSG;

	profile = strndup(text, n_profile);
	program = strndup(newline + 1, n_program);
	if (!profile || !program)
		return -ENOMEM;
	*ret_profile = TAKE_PTR(profile);
	*ret_program = TAKE_PTR(program);
	return 0;
}

/* Return: 1 with the text, 0 without a marker, a negative errno for something else in its place. */
static int marker_read(char *text, size_t max, size_t *ret_size)
{
	_cleanup_close_ int fd =
		open(CS_MARKER_PATH, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;
	ssize_t n;

	/* Outside, only root can put anything into that directory; most people cannot look into it either. */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	if (fstat(fd, &status) < 0)
		return -errno;
	/* The plan's files belong to the jail's own user as bwrap makes them, or to one who has no number
	 * there. */
	if (!S_ISREG(status.st_mode) ||
	    (status.st_uid != 0 && status.st_uid != UID_OVERFLOW && status.st_uid != geteuid()))
		return -EPERM;
	n = pread(fd, text, max, 0);
	if (n < 0)
		return -errno;
	if (n == 0 || (size_t)n == max)
		return -EBADMSG;
	*ret_size = (size_t)n;
	return 1;
}

int nested_depth(const char *value, pid_t pid)
{
	unsigned long caller, depth;
	char *end;

	if (!value || *value < '0' || *value > '9')
		return 1;
	caller = strtoul(value, &end, 10);
	if (*end != ' ' || end[1] < '0' || end[1] > '9')
		return 1;
	depth = strtoul(end + 1, &end, 10);
	if (*end != '\0')
		return 1;
	return caller == (unsigned long)pid || depth >= NESTED_DEPTH_MAX ? -ELOOP : (int)depth + 1;
}

/* The environment with our variable in it: an array to be freed, whose first string is to be freed too. */
static char **add_depth(char *const *environment, int depth)
{
	size_t n = 0;
	char **added;

	while (environment[n])
		n++;
	added = calloc(n + 2, sizeof(char *));
	if (!added || asprintf(&added[0], NESTED_VARIABLE "=%d %d", getpid(), depth) < 0) {
		free(added);
		return NULL;
	}
	n = 1;
	for (char *const *variable = environment; *variable; variable++)
		if (!starts_with(*variable, NESTED_VARIABLE "="))
			added[n++] = *variable;
	return added;
}

static const char *find_value(char *const *environment)
{
	const char *value = NULL;

	for (; !value && *environment; environment++)
		value = starts_with(*environment, NESTED_VARIABLE "=");
	return value;
}

int nested_exec(const char *agent, char *const *arguments, char *const *environment, char **reterr)
{
	_cleanup_free_ char *text = malloc(MARKER_BYTES_MAX), *profile = NULL, *program = NULL;
	_cleanup_free_ char **argv = NULL, **added = NULL;
	size_t size = 0, n = 0;
	int r, depth;

	if (!text)
		return refuse(reterr, -ENOMEM, "not enough memory");
	r = marker_read(text, MARKER_BYTES_MAX, &size);
	if (r == 0)
		return 0;
	if (r > 0)
		r = nested_parse(text, size, &profile, &program);
	if (r < 0)
		return refuse(reterr, r, "%s is not a session's marker (%s)", CS_MARKER_PATH,
			      strerrordesc_np(-r));
	if (!streq(agent, profile))
		return refuse(reterr, -EPERM,
			      "this is a session of %s: it has neither the program nor the files of %s; "
			      "start %s outside",
			      profile, agent, agent);

	depth = nested_depth(find_value(environment), getpid());
	if (depth < 0)
		return refuse(reterr, depth,
			      "%s is no agent: it starts %s again; put the agent's own program there, or run "
			      "'sudo claude-sandbox install %s' outside",
			      program, agent, agent);

	while (arguments[n])
		n++;
	argv = calloc(n + 2, sizeof(char *));
	added = add_depth(environment, depth);
	if (!argv || !added)
		return refuse(reterr, -ENOMEM, "not enough memory");
	argv[0] = program;
	memcpy(argv + 1, arguments, n * sizeof(char *));
	execve(program, argv, added);
	r = -errno;
	free(added[0]);
	return refuse(reterr, r, "%s cannot be started: %s", program, strerrordesc_np(-r));
}
