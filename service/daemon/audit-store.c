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
	       (query->everybody || event->uid == query->uid) &&
	       (query->kinds == 0 || query->kinds & 1u << event->kind);
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

/*
 * The newest first, until there are enough. Lines that cannot be read are nobody's. first: the text begins with a
 * line; else what stands before the first end of a line is left. Return: 0 or -ENOMEM; *size is what is left.
 */
static int read_lines(const char *text, size_t *size, bool first, const AuditQuery *query,
		      AuditEvents *events)
{
	while (*size > 0 && events->n < query->max) {
		_cleanup_(audit_event_done) AuditEvent event = { 0 };
		const char *end = memrchr(text, '\n', *size), *begin;
		size_t length;
		int r;

		if (!end)
			break;
		begin = memrchr(text, '\n', (size_t)(end - text));
		if (!begin && !first)
			break;
		begin = begin ? begin + 1 : text;
		length = (size_t)(end - begin);
		/* The last byte of the line before. */
		*size = (size_t)(begin - text);
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
	uid_t uid;

	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		r = -errno;
		close_fd(fd);
		return r;
	}
	while (r >= 0 && (entry = readdir(directory)))
		if (name_is_users(entry->d_name, &uid))
			r = each(userdata, uid);
	closedir(directory);
	return r;
}

#define FILES_OF_USER 2u

struct AuditReading {
	AuditQuery query;
	char session[CS_ID_LENGTH + 1];
	int directory_fd;
	uid_t *uids; /* whose files are to be read */
	size_t n_uids, user;
	unsigned file;   /* of the user: the newer one, then the older */
	int older_fd;    /* opened with the newer one: that may take its place meanwhile */
	int fd;          /* of the file that is being read, or FD_NONE */
	uint64_t offset; /* what stands before it was not read yet */
	/* The bytes at offset: the end of a line whose beginning was not read yet. */
	char text[AUDIT_LINE_MAX + AUDIT_STEP_BYTES];
	size_t n_text;
	AuditEvents of_user, all;
};

AuditReading *audit_reading_free(AuditReading *reading)
{
	if (!reading)
		return NULL;
	audit_events_done(&reading->of_user);
	audit_events_done(&reading->all);
	close_fd(reading->directory_fd);
	close_fd(reading->fd);
	close_fd(reading->older_fd);
	free(reading->uids);
	free(reading);
	return NULL;
}

static int reading_add_user(void *userdata, uid_t uid)
{
	AuditReading *reading = userdata;
	uid_t *larger = reallocarray(reading->uids, reading->n_uids + 1, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	reading->uids = larger;
	larger[reading->n_uids++] = uid;
	return 0;
}

int audit_reading_new(const AuditQuery *query, AuditReading **ret)
{
	_cleanup_(audit_reading_freep) AuditReading *reading = calloc(1, sizeof(*reading));
	int r;

	if (!reading)
		return -ENOMEM;
	reading->directory_fd = reading->fd = reading->older_fd = FD_NONE;
	reading->query = *query;
	if (query->session) {
		(void)snprintf(reading->session, sizeof(reading->session), "%s", query->session);
		reading->query.session = reading->session;
	}
	r = run_dir_open_log(false, NULL);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r >= 0) {
		reading->directory_fd = r;
		r = query->everybody ? each_user(reading->directory_fd, reading_add_user, reading)
				     : reading_add_user(reading, query->uid);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(reading);
	return 0;
}

/* Of a user all is read. Return: 0 or -ENOMEM. */
static int reading_next_user(AuditReading *reading)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < reading->of_user.n; i++)
		r = events_take(&reading->all, &reading->of_user.events[i]);
	audit_events_done(&reading->of_user);
	/* The memory of as many users as there are is not ours to take. */
	events_settle(&reading->all, reading->query.max);
	reading->older_fd = close_fd(reading->older_fd);
	reading->user++;
	reading->file = 0;
	return r;
}

static int open_log(const AuditReading *reading, const char *suffix)
{
	FileName name;
	struct stat st;
	int r;

	(void)snprintf(name, sizeof(name), NAME_FORMAT "%s", reading->uids[reading->user], suffix);
	r = open_file(reading->directory_fd, name, O_RDONLY, &st);
	return r == -ENOENT || r == -EPERM ? FD_NONE : r;
}

/* The next file. Return: 1; 0 where there is none any more; negative errnos. */
static int reading_open(AuditReading *reading)
{
	struct stat st;

	if (reading->user == reading->n_uids)
		return 0;
	if (reading->file == FILES_OF_USER || reading->of_user.n >= reading->query.max)
		return reading_next_user(reading) < 0 ? -ENOMEM : 1;
	if (reading->file++ == 0) {
		reading->fd = open_log(reading, "");
		reading->older_fd = open_log(reading, OLDER);
	} else {
		reading->fd = TAKE_FD(reading->older_fd);
	}
	reading->n_text = 0;
	if (reading->fd == FD_NONE)
		return 1;
	if (reading->fd < 0 || fstat(reading->fd, &st) < 0)
		return reading->fd < 0 ? reading->fd : -errno;
	reading->offset = (uint64_t)MIN_OF(st.st_size, (off_t)AUDIT_FILE_MAX);
	return 1;
}

/* The piece of the file that stands before what was read. Return: 0 or a negative errno. */
static int reading_read(AuditReading *reading)
{
	size_t size = (size_t)MIN_OF(reading->offset, (uint64_t)AUDIT_STEP_BYTES), done = 0, left;
	int r;

	/* Longer than any line of ours: what it is the end of is no line. */
	if (reading->n_text > AUDIT_LINE_MAX)
		reading->n_text = 0;
	memmove(reading->text + size, reading->text, reading->n_text);
	while (done < size) {
		ssize_t n = pread(reading->fd, reading->text + done, size - done,
				  (off_t)(reading->offset - size + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	reading->offset -= size;
	left = reading->n_text + size;
	r = read_lines(reading->text, &left, reading->offset == 0, &reading->query, &reading->of_user);
	reading->n_text = left;
	return r;
}

int audit_reading_step(AuditReading *reading, AuditEvents *ret)
{
	int r;

	if (reading->fd < 0) {
		r = reading_open(reading);
		if (r != 0)
			return r;
		*ret = reading->all;
		reading->all = (AuditEvents){ 0 };
		return 0;
	}
	r = reading_read(reading);
	if (r < 0)
		return r;
	if (reading->offset == 0 || reading->of_user.n >= reading->query.max)
		reading->fd = close_fd(reading->fd);
	return 1;
}

int audit_store_read(const AuditQuery *query, AuditEvents *ret)
{
	_cleanup_(audit_reading_freep) AuditReading *reading = NULL;
	int r;

	r = audit_reading_new(query, &reading);
	if (r < 0)
		return r;
	do
		r = audit_reading_step(reading, ret);
	while (r > 0);
	return r;
}

typedef struct Unended {
	void (*each)(void *userdata, const AuditEvent *launch);
	void *userdata;
} Unended;

static int unended_one(void *userdata, uid_t uid)
{
	const AuditQuery query = { .uid = uid,
				   .kinds = 1u << AUDIT_LAUNCH | 1u << AUDIT_EXIT,
				   .max = SIZE_MAX };
	_cleanup_(audit_events_done) AuditEvents events = { 0 };
	const Unended *unended = userdata;
	int r = audit_store_read(&query, &events);

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
	return each_user(directory_fd, unended_one, &(Unended){ .each = each, .userdata = userdata });
}
