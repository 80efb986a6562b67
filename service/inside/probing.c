/* SPDX-License-Identifier: MIT */
#include "service/inside/probing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/inside/measure.h"
#include "service/inside/probe-socket.h"

#define DEPTH_MAX 8u

const int probing_refusals[] = { EPERM, EACCES, ENOSYS, EROFS, 0 };

const char *probing_error(int error)
{
	const char *name = strerrorname_np(error < 0 ? -error : error);

	return name ? name : "an unknown error";
}

_printf_(3, 0) static void add(char *text, unsigned *count, const char *format, va_list arguments)
{
	size_t n = strlen(text);
	int length;

	(*count)++;
	if (n > 0 && n + 2 < PROBING_TEXT_MAX) {
		memcpy(text + n, "; ", 3);
		n += 2;
	}
	length = vsnprintf(text + n, PROBING_TEXT_MAX - n, format, arguments);
	/* What does not fit as a whole is only counted. */
	if (length < 0 || (size_t)length >= PROBING_TEXT_MAX - n)
		text[n >= 2 ? n - 2 : 0] = '\0';
}

void probing_blocked(Probing *p, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(p->blocked, &p->n_blocked, format, arguments);
	va_end(arguments);
}

void probing_escaped(Probing *p, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(p->escaped, &p->n_escaped, format, arguments);
	va_end(arguments);
}

void probing_unclear(Probing *p, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(p->unclear, &p->n_unclear, format, arguments);
	va_end(arguments);
}

bool probing_is_starved(int error)
{
	/* Processes, namespaces, room, time. */
	return measure_is_starved(error) || error == ETIME || error == EAGAIN || error == EUSERS ||
	       error == ENOSPC || error == EDQUOT;
}

_printf_(4, 0) static void judge(Probing *p, bool refused, int error, const char *format, va_list arguments)
{
	char way[200];

	(void)vsnprintf(way, sizeof(way), format, arguments);
	if (probing_is_starved(error))
		probing_unclear(p, "%s: %s", way, probing_error(error));
	else if (refused)
		probing_blocked(p, "%s: %s", way, probing_error(error));
	else if (error)
		probing_escaped(p, "%s was not refused, but failed later (%s)", way, probing_error(error));
	else
		probing_escaped(p, "%s succeeded", way);
}

void probing_refused(Probing *p, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	judge(p, true, error < 0 ? -error : error, format, arguments);
	va_end(arguments);
}

long probing_result(Probing *p, long result, const char *format, ...)
{
	int error = result < 0 ? errno : 0;
	va_list arguments;

	va_start(arguments, format);
	judge(p, result < 0, error, format, arguments);
	va_end(arguments);
	return result;
}

long probing_rights(Probing *p, long result, const int *refusals, const char *format, ...)
{
	int error = result < 0 ? errno : 0;
	bool refused = false;
	va_list arguments;

	for (size_t i = 0; error && refusals[i]; i++)
		refused = refused || refusals[i] == error;
	va_start(arguments, format);
	judge(p, refused, error, format, arguments);
	va_end(arguments);
	return result;
}

static bool is_everybodys(const ProbeCall *call)
{
	long value;

	return call->setting && probe_number(call->setting, &value) == 0 && value <= 0;
}

void probing_calls(Probing *p, const ProbeCall *calls, const char *how)
{
	for (const ProbeCall *call = calls; call->name; call++) {
		const long *a = call->arguments;
		bool everybodys = is_everybodys(call);
		long r = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);

		if (r >= 0 && everybodys)
			probing_unclear(p, "%s%s, which this machine lets everybody do", how, call->name);
		else if (call->refusals)
			probing_rights(p, r, call->refusals, "%s%s", how, call->name);
		else
			probing_result(p, r, "%s%s", how, call->name);
	}
}

void probing_files(Probing *p, const char *const *paths)
{
	unsigned refused = 0, absent = 0, n = 0;
	int error = 0;

	for (; paths[n]; n++) {
		/* Opening changes nothing. */
		int fd = open(paths[n], O_WRONLY | O_CLOEXEC);

		if (fd >= 0) {
			probing_escaped(p, "%s can be written", paths[n]);
			(void)close(fd);
		} else if (errno == ENOENT || errno == ENOTDIR) {
			absent++;
		} else if (probing_is_starved(errno)) {
			probing_unclear(p, "%s: %s", paths[n], probing_error(errno));
		} else {
			refused++;
			error = errno;
		}
	}
	if (refused > 0)
		probing_blocked(p, "%u files: %s", refused, probing_error(error));
	if (absent == n)
		probing_blocked(p, "none of %u is there", absent);
}

void probing_attempt(Probing *p, const Probe *probe)
{
	if (probe->calls)
		probing_calls(p, probe->calls, "");
	if (probe->files)
		probing_files(p, probe->files);
	if (probe->sockets)
		probing_connect_each(p, probe->sockets);
	if (probe->attempt)
		probe->attempt(p);
}

ProbeOutcome probing_outcome(const Probing *p)
{
	if (p->n_escaped > 0)
		return PROBE_ESCAPED;
	return p->n_blocked > 0 ? PROBE_BLOCKED : PROBE_INCONCLUSIVE;
}

const char *probing_text(const Probing *p, char *text, size_t size)
{
	switch (probing_outcome(p)) {
	case PROBE_ESCAPED:
		(void)snprintf(text, size, "escaped: %s%s", p->n_escaped > 1 ? "several ways: " : "",
			       p->escaped);
		break;
	case PROBE_BLOCKED:
		if (p->n_blocked > 1)
			(void)snprintf(text, size, "blocked: %u ways: %s%s%s", p->n_blocked, p->blocked,
				       p->n_unclear ? "; not tried: " : "", p->unclear);
		else
			(void)snprintf(text, size, "blocked: %s%s%s", p->blocked,
				       p->n_unclear ? "; not tried: " : "", p->unclear);
		break;
	default:
		(void)snprintf(text, size, "inconclusive: %s",
			       p->n_unclear ? p->unclear : "there was nothing to try");
	}
	return text;
}

int probe_place_make(char path[static PROBE_PLACE_MAX])
{
	static const char template[] = "/tmp/.probe-XXXXXX";

	memcpy(path, template, sizeof(template));
	return mkdtemp(path) ? 0 : -errno;
}

static void remove_below(int directory_fd, unsigned depth)
{
	DIR *d = fdopendir(directory_fd);
	const struct dirent *entry;

	if (!d) {
		(void)close_fd(directory_fd);
		return;
	}
	while ((entry = readdir(d))) {
		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), entry->d_name, 0) == 0)
			continue;
		if (depth < DEPTH_MAX) {
			int fd = openat(dirfd(d), entry->d_name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (fd >= 0)
				remove_below(fd, depth + 1);
		}
		(void)unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(d);
}

void probe_place_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		remove_below(fd, 0);
	(void)rmdir(path);
}

int probe_write(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int probe_number(const char *path, long *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64], *end;
	ssize_t n;
	long value;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	text[n] = '\0';
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text)
		return -EINVAL;
	*ret = value;
	return 0;
}

bool probe_has_file_system(const char *type)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/filesystems", "re");
	char line[128];

	/* "nodev\ttmpfs", or "\text4". */
	while (file && fgets(line, sizeof(line), file)) {
		const char *name = strchr(line, '\t');

		line[strcspn(line, "\n")] = '\0';
		if (name && streq(name + 1, type))
			return true;
	}
	return false;
}

const ExpectedBait *probing_bait(const Probing *p, BaitKind kind)
{
	const Expectations *e = p->expectations;

	for (size_t i = 0; e && e->bait_token && i < e->n_baits; i++)
		if (e->baits[i].kind == kind)
			return &e->baits[i];
	return NULL;
}

const ExpectedEntry *probing_covering(const Probing *p, const char *path)
{
	return p->expectations ? expectations_covering(p->expectations, path) : NULL;
}
