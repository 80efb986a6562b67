/* SPDX-License-Identifier: MIT */
#include "service/daemon/audit-store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "service/daemon/run-dir.h"

#define NAME_FORMAT "%u.log"
#define OLDER ".1"

typedef char FileName[sizeof("4294967295.log.1")];

void audit_events_done(AuditEvents *events)
{
	for (size_t i = 0; i < events->n; i++)
		audit_event_done(&events->events[i]);
	free(events->events);
	*events = (AuditEvents){ 0 };
}

/* Return: a descriptor; -EPERM for what is not root's own file; other negative errnos. */
static int open_file(int directory_fd, const char *name, int flags, struct stat *st)
{
	_cleanup_close_ int fd =
		openat(directory_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

	if (fd < 0 || fstat(fd, st) < 0)
		return errno == ELOOP || errno == ENXIO ? -EPERM : -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != 0 || st->st_nlink != 1)
		return -EPERM;
	return TAKE_FD(fd);
}

/* What is behind the last whole line is no event, and cut off. size: of the file. Return: 0 or a negative errno. */
static int cut_torn(int fd, uint64_t *size)
{
	size_t n = MIN_OF(*size, (uint64_t)AUDIT_LINE_MAX);
	_cleanup_free_ char *tail = NULL;
	const char *end;
	char last;

	if (n == 0)
		return 0;
	if (pread(fd, &last, 1, (off_t)*size - 1) != 1)
		return -EIO;
	if (last == '\n')
		return 0;
	tail = malloc(n);
	if (!tail)
		return -ENOMEM;
	if (pread(fd, tail, n, (off_t)(*size - n)) != (ssize_t)n)
		return -EIO;
	end = memrchr(tail, '\n', n);
	/* Longer than any line of ours: from the start, or of somebody who wrote there. */
	*size -= end ? n - (size_t)(end + 1 - tail) : n;
	return ftruncate(fd, (off_t)*size) < 0 ? -errno : 0;
}

/* Whole or not at all: room is taken first, where the file system can, and a write that ends early is undone. */
static int write_line(int fd, uint64_t size, const char *line)
{
	size_t n = strlen(line);
	int r = cut_torn(fd, &size);

	if (r < 0)
		return r;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)size, (off_t)n) < 0 &&
	    (errno == ENOSPC || errno == EDQUOT))
		return -errno;
	for (size_t done = 0; done < n;) {
		ssize_t written = write(fd, line + done, n - done);

		r = -errno;
		if (written < 0 && r == -EINTR)
			continue;
		if (written < 0) {
			(void)!ftruncate(fd, (off_t)size);
			return r;
		}
		done += (size_t)written;
	}
	return 0;
}

static int append(int directory_fd, uid_t uid, const char *line)
{
	_cleanup_close_ int fd = FD_NONE;
	FileName name, older;
	struct stat st;
	int r;

	(void)snprintf(name, sizeof(name), NAME_FORMAT, uid);
	(void)snprintf(older, sizeof(older), NAME_FORMAT OLDER, uid);
	r = open_file(directory_fd, name, O_RDWR | O_APPEND | O_CREAT, &st);
	if (r < 0)
		return r;
	fd = r;
	if ((uint64_t)st.st_size + strlen(line) + 1 > AUDIT_FILE_MAX) {
		if (renameat(directory_fd, name, directory_fd, older) < 0)
			return -errno;
		close_fdp(&fd);
		r = open_file(directory_fd, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL, &st);
		if (r < 0)
			return r;
		fd = r;
	}
	return write_line(fd, (uint64_t)st.st_size, line);
}

int audit_store_append(uid_t uid, const char *line, char **ret_problem)
{
	_cleanup_close_ int directory_fd = FD_NONE;
	int r;

	r = run_dir_open_log(true, ret_problem);
	if (r < 0)
		return r;
	directory_fd = r;
	r = append(directory_fd, uid, line);
	if (r < 0)
		return refuse(ret_problem, r, "the file of uid %u in %s cannot be written: %s", uid,
			      CS_LOG_DIR,
			      r == -EPERM ? "it is not a file of root's alone; remove it" : strerror(-r));
	return 0;
}

static bool query_wants(const AuditQuery *query, const AuditEvent *event)
{
	return (!query->session || streq(event->session, query->session)) &&
	       (query->before == 0 || event->usec < query->before) && event->usec > query->after &&
	       (query->everybody || event->uid == query->uid);
}

static int events_take(AuditEvents *events, AuditEvent *event)
{
	AuditEvent *grown = events->events;

	if ((events->n & (events->n - 1)) == 0)
		grown = reallocarray(events->events, events->n > 0 ? events->n * 2 : 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	events->events = grown;
	grown[events->n++] = *event;
	*event = (AuditEvent){ 0 };
	return 0;
}

/* Whole, as far as it may be long. Return: 0 with *ret to be freed, -ENOENT, other negative errnos. */
static int read_file(int directory_fd, const char *name, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = FD_NONE;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	struct stat st;

	fd = open_file(directory_fd, name, O_RDONLY, &st);
	if (fd < 0)
		return TAKE_FD(fd);
	text = malloc(AUDIT_FILE_MAX);
	if (!text)
		return -ENOMEM;
	while (size < AUDIT_FILE_MAX) {
		ssize_t n = read(fd, text + size, AUDIT_FILE_MAX - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

/* The newest first, until there are enough. Lines that cannot be read are nobody's. */
static int read_lines(const char *text, size_t size, const AuditQuery *query, size_t max, AuditEvents *events)
{
	while (text && size > 0 && events->n < max) {
		_cleanup_(audit_event_done) AuditEvent event = { 0 };
		const char *end = memrchr(text, '\n', size), *begin;
		size_t length;
		int r;

		if (!end)
			break;
		begin = memrchr(text, '\n', (size_t)(end - text));
		begin = begin ? begin + 1 : text;
		length = (size_t)(end - begin);
		/* The last byte of the line before. */
		size = (size_t)(begin - text);
		if (query->session && !memmem(begin, length, query->session, strlen(query->session)))
			continue;
		r = audit_line_decode(begin, length, &event);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || !query_wants(query, &event))
			continue;
		r = events_take(events, &event);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The oldest first. */
static void events_reverse(AuditEvents *events)
{
	for (size_t i = 0, j = events->n; i + 1 < j; i++) {
		AuditEvent event = events->events[i];

		events->events[i] = events->events[--j];
		events->events[j] = event;
	}
}

static int read_user(int directory_fd, uid_t uid, const AuditQuery *query, AuditEvents *events)
{
	for (int i = 0; i < 2 && events->n < query->max; i++) {
		_cleanup_free_ char *text = NULL;
		FileName name;
		size_t size = 0;
		int r;

		(void)snprintf(name, sizeof(name), i == 0 ? NAME_FORMAT : NAME_FORMAT OLDER, uid);
		r = read_file(directory_fd, name, &text, &size);
		if (r == -ENOENT || r == -EPERM)
			continue;
		if (r >= 0)
			r = read_lines(text, size, query, query->max, events);
		if (r < 0)
			return r;
	}
	events_reverse(events);
	return 0;
}

static int compare_events(const void *a, const void *b)
{
	const AuditEvent *x = a, *y = b;

	return x->usec < y->usec ? -1 : x->usec > y->usec;
}

/* In order of time; of too many, the oldest go. */
static void events_settle(AuditEvents *events, size_t max)
{
	size_t surplus = events->n > max ? events->n - max : 0;

	if (events->n > 1)
		qsort(events->events, events->n, sizeof(*events->events), compare_events);
	for (size_t i = 0; i < surplus; i++)
		audit_event_done(&events->events[i]);
	events->n -= surplus;
	if (surplus > 0)
		memmove(events->events, events->events + surplus, events->n * sizeof(*events->events));
}

static bool name_is_users(const char *name, uid_t *ret)
{
	FileName written;
	char *end;
	unsigned long uid = strtoul(name, &end, 10);

	*ret = (uid_t)uid;
	(void)snprintf(written, sizeof(written), NAME_FORMAT, *ret);
	return streq(name, written);
}

/* Return: 0 or a negative errno, the first that each has returned. */
static int each_user(int directory_fd, int (*each)(void *userdata, uid_t uid), void *userdata)
{
	int fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 3), r = 0;
	struct dirent *entry;
	DIR *directory;

	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		r = -errno;
		close_fd(fd);
		return r;
	}
	while (r >= 0 && (entry = readdir(directory))) {
		uid_t uid;

		if (name_is_users(entry->d_name, &uid))
			r = each(userdata, uid);
	}
	closedir(directory);
	return r;
}

typedef struct Reading {
	int directory_fd;
	const AuditQuery *query;
	AuditEvents *events;
} Reading;

static int read_one(void *userdata, uid_t uid)
{
	Reading *reading = userdata;
	AuditEvents of_user = { 0 };
	int r = read_user(reading->directory_fd, uid, reading->query, &of_user);

	/* The memory of as many users as there are is not ours to take. */
	for (size_t i = 0; r >= 0 && i < of_user.n; i++)
		r = events_take(reading->events, &of_user.events[i]);
	audit_events_done(&of_user);
	events_settle(reading->events, reading->query->max);
	return r;
}

static int read_everybody(int directory_fd, const AuditQuery *query, AuditEvents *events)
{
	return each_user(directory_fd, read_one,
			 &(Reading){ .directory_fd = directory_fd, .query = query, .events = events });
}

typedef struct Unended {
	int directory_fd;
	void (*each)(void *userdata, const AuditEvent *launch);
	void *userdata;
} Unended;

static int unended_one(void *userdata, uid_t uid)
{
	const Unended *unended = userdata;
	const AuditQuery query = { .uid = uid, .max = SIZE_MAX };
	_cleanup_(audit_events_done) AuditEvents events = { 0 };
	int r = read_user(unended->directory_fd, uid, &query, &events);

	for (size_t i = 0; r >= 0 && i < events.n; i++) {
		const AuditEvent *launch = &events.events[i];
		size_t end = i;

		if (launch->kind != AUDIT_LAUNCH)
			continue;
		while (end < events.n && (events.events[end].kind != AUDIT_EXIT ||
					  !streq(events.events[end].session, launch->session)))
			end++;
		if (end == events.n)
			unended->each(unended->userdata, launch);
	}
	return r;
}

int audit_store_each_unended(void (*each)(void *userdata, const AuditEvent *launch), void *userdata)
{
	_cleanup_close_ int directory_fd = run_dir_open_log(false, NULL);

	if (directory_fd < 0)
		return directory_fd == -ENOENT ? 0 : directory_fd;
	return each_user(directory_fd, unended_one,
			 &(Unended){ .directory_fd = directory_fd, .each = each, .userdata = userdata });
}

int audit_store_read(const AuditQuery *query, AuditEvents *ret)
{
	_cleanup_(audit_events_done) AuditEvents events = { 0 };
	_cleanup_close_ int directory_fd = FD_NONE;
	int r;

	r = run_dir_open_log(false, NULL);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r >= 0) {
		directory_fd = r;
		r = query->everybody ? read_everybody(directory_fd, query, &events)
				     : read_user(directory_fd, query->uid, query, &events);
		if (r < 0)
			return r;
		events_settle(&events, query->max);
	}
	*ret = events;
	events = (AuditEvents){ 0 };
	return 0;
}
