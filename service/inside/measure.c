/* SPDX-License-Identifier: MIT */
#include "service/inside/measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"

char *measure_text(const char *path, size_t max, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	size_t size = 0, room = 0;

	if (fd < 0)
		return NULL;
	for (;;) {
		ssize_t n;

		if (room - size < 4096) {
			char *grown = size <= max ? realloc(text, (room += 16384) + 1) : NULL;

			if (!grown) {
				errno = size <= max ? ENOMEM : EFBIG;
				return NULL;
			}
			text = grown;
		}
		n = read(fd, text + size, room - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return NULL;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	text[size] = '\0';
	if (ret_size)
		*ret_size = size;
	return TAKE_PTR(text);
}

const char *measure_field(const char *status, const char *name, size_t *ret_n)
{
	size_t n = strlen(name);

	for (const char *line = status; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, n) == 0 && line[n] == ':') {
			const char *value = line + n + 1;

			value += strspn(value, " \t");
			*ret_n = strcspn(value, "\n");
			return value;
		}
	return NULL;
}

bool measure_number(const char *status, const char *name, int base, uint64_t *ret)
{
	size_t n;
	const char *value = measure_field(status, name, &n);
	char *end;

	if (!value || n == 0)
		return false;
	errno = 0;
	*ret = strtoull(value, &end, base);
	return errno == 0 && end > value;
}

uint64_t measure_namespace(const char *process, NamespaceKind kind)
{
	char path[96];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, namespace_kind_to_string(kind));
	return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

static ObjectIdentity identity_of(const char *path, int flags)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, flags) < 0)
		return (ObjectIdentity){ 0 };
	return (ObjectIdentity){ .known = true,
				 .device = st.st_dev,
				 .inode = st.st_ino,
				 .node = st.st_rdev,
				 .mode = st.st_mode,
				 .uid = st.st_uid };
}

ObjectIdentity measure_object(const char *path)
{
	return identity_of(path, AT_SYMLINK_NOFOLLOW);
}

ObjectIdentity measure_target(const char *path)
{
	return identity_of(path, 0);
}

const char *measure_variable(const char *name)
{
	return getenv(name);
}

#define LOOK_MSEC 100

int measure_wait(pid_t pid, int pid_fd, int64_t deadline_msec)
{
	for (;;) {
		struct pollfd end = { .fd = pid_fd, .events = POLLIN };
		int64_t left = deadline_msec - clock_msec(CLOCK_MONOTONIC);
		siginfo_t info = { 0 };

		/* A stop makes no descriptor ready: it is looked for between two waits. */
		if (poll(&end, 1, left > 0 ? (int)MIN_OF(left, (int64_t)LOOK_MSEC) : 0) > 0)
			return 0;
		if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
			return -ECANCELED;
		if (left <= 0)
			return -ETIME;
	}
}

int measure_list(const char *directory, int (*each)(void *userdata, const char *name), void *userdata)
{
	DIR *d = opendir(directory);
	struct dirent *entry;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && (errno = 0, entry = readdir(d)))
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			r = each(userdata, entry->d_name);
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(d);
	return r;
}

char *measure_real_path(const char *path)
{
	return realpath(path, NULL);
}
