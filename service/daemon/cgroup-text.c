/* SPDX-License-Identifier: MIT */
#include "service/daemon/cgroup-text.h"

#include "dbus/octal.h"
#include "service/daemon/record.h"

char *cgroup_find_mount(const char *mountinfo)
{
	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n');
		_cleanup_free_ char *copy = strndup(line, (size_t)(end - line));
		char *type, *field, *rest;

		if (!copy)
			return NULL;
		line = *end ? end + 1 : end;
		type = strstr(copy, " - ");
		if (!type || !starts_with(type + 3, "cgroup2 "))
			continue;
		/* mount id, parent id, device, root, mount point */
		rest = copy;
		for (int i = 0; i < 4 && rest; i++)
			(void)strsep(&rest, " ");
		field = rest ? strsep(&rest, " ") : NULL;
		if (!field || field[0] != '/')
			continue;
		octal_unescape(field);
		return strdup(field);
	}
	return NULL;
}

char *cgroup_find_own(const char *cgroup)
{
	for (const char *line = cgroup; *line;) {
		const char *end = strchrnul(line, '\n'), *path = starts_with(line, "0::");

		if (path && path[0] == '/')
			return strndup(path, (size_t)(end - path));
		line = *end ? end + 1 : end;
	}
	return NULL;
}

static const char *suffix_of(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && streq(text + n - m, end) ? text + n - m : NULL;
}

/* "max", "max 100000" (cpu.max), "8:0 rbps=max wiops=120" (io.max), "res_a max" (misc.max), or nothing. */
static bool line_limits(const char *line, size_t size)
{
	while (size > 0) {
		size_t n = strcspn(line, " \n");
		const char *equals;

		n = MIN_OF(n, size);
		equals = memchr(line, '=', n);
		if (equals && (size_t)(line + n - equals) != 4)
			return true;
		if (equals && memcmp(equals + 1, "max", 3) != 0)
			return true;
		/* A number where no "max" stands before it. */
		if (!equals && n > 0 && strspn(line, "0123456789") == n)
			return true;
		if (n == 3 && memcmp(line, "max", 3) == 0)
			return false;
		line += n;
		size -= n;
		while (size > 0 && (*line == ' ' || *line == '\n')) {
			line++;
			size--;
		}
	}
	return false;
}

bool cgroup_text_limits(const char *name, const char *text)
{
	if (streq(name, "cpuset.cpus") || streq(name, "cpuset.mems"))
		return text[strspn(text, " \n")] != '\0';
	if (!suffix_of(name, ".max") && !suffix_of(name, ".high") && !starts_with(name, "cgroup.max."))
		return false;
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (line_limits(text, n))
			return true;
		text += n;
		text += *text == '\n';
	}
	return false;
}

bool cgroup_text_has(const char *controllers, const char *controller)
{
	size_t length = strlen(controller);

	while (*controllers) {
		size_t n = strcspn(controllers, " \n");

		if (n == length && memcmp(controllers, controller, n) == 0)
			return true;
		controllers += n;
		controllers += strspn(controllers, " \n");
	}
	return false;
}

bool cgroup_is_above(const char *above, const char *path)
{
	const char *rest = starts_with(path, above);

	return streq(above, "/") || (rest && (*rest == '\0' || *rest == '/'));
}

bool cgroup_path_is_sessions(const char *path)
{
	_cleanup_free_ char *name = NULL;
	const char *last = strrchr(path, '/'), *id, *scope;

	if (path[0] != '/' || strlen(path) >= CS_PATH_BYTES_MAX)
		return false;
	for (const char *part = path; part; part = strchr(part + 1, '/')) {
		size_t n = strcspn(part + 1, "/");

		if (n == 0 || (n <= 2 && strspn(part + 1, ".") == n))
			return false;
	}
	id = starts_with(last + 1, CGROUP_PREFIX);
	if (!id)
		return false;
	scope = suffix_of(id, CGROUP_SCOPE);
	name = scope ? strndup(id, (size_t)(scope - id)) : strdup(id);
	return name && session_id_valid(name);
}
