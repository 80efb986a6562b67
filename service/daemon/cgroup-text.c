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

char *cgroup_find_slice(const char *path)
{
	const char *rest = starts_with(path, "/user.slice/user-");
	size_t n = rest ? strspn(rest, "0123456789") : 0;
	const char *end = n > 0 ? starts_with(rest + n, ".slice") : NULL;

	return end && (*end == '\0' || *end == '/') ? strndup(path, (size_t)(end - path)) : NULL;
}

/* Behind "N:". Return: NULL for version 2's line, which names no controllers, and for what is none. */
static const char *line_of_v1(const char *line)
{
	size_t n = strspn(line, "0123456789");

	return n > 0 && line[n] == ':' && line[n + 1] != ':' ? line + n + 1 : NULL;
}

char *cgroup_next_v1(const char **text)
{
	while (**text) {
		const char *fields = line_of_v1(*text), *end = strchrnul(*text, '\n');
		size_t n = fields ? strcspn(fields, ":\n") : 0;

		*text = *end ? end + 1 : end;
		if (fields && fields[n] == ':')
			return strndup(fields, n);
	}
	return NULL;
}

char *cgroup_find_v1(const char *cgroup, const char *controllers)
{
	for (const char *line = cgroup; *line;) {
		const char *fields = line_of_v1(line), *end = strchrnul(line, '\n');
		const char *path = fields ? starts_with(fields, controllers) : NULL;

		if (path && path[0] == ':' && path[1] == '/')
			return strndup(path + 1, (size_t)(end - path - 1));
		line = *end ? end + 1 : end;
	}
	return NULL;
}

/* Does "rw,cpu,cpuacct" have all of "cpuacct,cpu"? */
static bool options_have(const char *options, const char *controllers)
{
	while (*controllers) {
		size_t n = strcspn(controllers, ","), m = 0;
		bool found = false;

		for (const char *option = options; !found && *option; option += m + (option[m] == ',')) {
			m = strcspn(option, ",");
			found = m == n && memcmp(option, controllers, n) == 0;
		}
		if (!found)
			return false;
		controllers += n + (controllers[n] == ',');
	}
	return true;
}

char *cgroup_find_v1_directory(const char *mountinfo, const char *controllers, const char *path)
{
	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n'), *below;
		_cleanup_free_ char *copy = strndup(line, (size_t)(end - line));
		char *fields[6], *rest = copy, *type, *directory;

		if (!copy)
			return NULL;
		line = *end ? end + 1 : end;
		type = strstr(copy, " - ");
		if (!type || !starts_with(type + 3, "cgroup ") ||
		    !options_have(strrchr(copy, ' ') + 1, controllers))
			continue;
		/* mount id, parent id, device, root, mount point */
		for (int i = 0; i < 5; i++)
			fields[i] = rest ? strsep(&rest, " ") : NULL;
		if (!fields[3] || !fields[4] || fields[4][0] != '/')
			continue;
		octal_unescape(fields[3]);
		octal_unescape(fields[4]);
		if (!cgroup_is_above(fields[3], path))
			continue;
		below = streq(fields[3], "/") ? path : path + strlen(fields[3]);
		return asprintf(&directory, "%s%s", fields[4], below) < 0 ? NULL : directory;
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
