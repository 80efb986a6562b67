/* SPDX-License-Identifier: MIT */
#include "tests/lab/mutation.h"

#include <fcntl.h>
#include <stdarg.h>

#define VARIABLE "LAB_MUTATION="

Mutation mutation;

void mutation_read(char *const *environment)
{
	const char *text = NULL, *colon, *second;

	for (size_t i = 0; environment && environment[i]; i++)
		if (starts_with(environment[i], VARIABLE))
			text = environment[i] + strlen(VARIABLE);
	if (!text)
		return;
	if (starts_with(text, "list:")) {
		mutation.list = strdup(text + strlen("list:"));
		return;
	}
	colon = strchr(text, ':');
	second = colon ? strchr(colon + 1, ':') : NULL;
	if (!second)
		abort();
	mutation.group = strndup(text, (size_t)(colon - text));
	mutation.index = strtoul(colon + 1, NULL, 10);
	mutation.how = strdup(second + 1);
	if (!mutation.group || !mutation.how)
		abort();
}

bool mutation_is(const char *group)
{
	return mutation.group && streq(mutation.group, group);
}

bool mutation_how(const char *how)
{
	return mutation.how && streq(mutation.how, how);
}

bool mutation_hits(const char *group, size_t index, const char *how)
{
	return mutation_is(group) && mutation.index == index && mutation_how(how);
}

void mutation_offer(const char *group, size_t index, const char *how, const char *format, ...)
{
	_cleanup_free_ char *what = NULL, *line = NULL;
	va_list arguments;
	int fd;

	if (!mutation.list)
		return;
	va_start(arguments, format);
	if (vasprintf(&what, format, arguments) < 0)
		abort();
	va_end(arguments);
	for (char *c = what; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (asprintf(&line, "%s\t%zu\t%s\t%s\n", group, index, how, what) < 0)
		abort();
	/* Opened anew for each, as the list is written by several processes. */
	fd = open(mutation.list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		abort();
	(void)close(fd);
}
