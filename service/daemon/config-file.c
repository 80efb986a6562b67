/* SPDX-License-Identifier: MIT */
#include "service/daemon/config-file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "dbus/causes.h"

static int check_file(const char *path, int fd, char **ret_problem)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(ret_problem, -errno, "%s: cannot be examined: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(ret_problem, -EINVAL, BECAUSE(CONFIG_IRREGULAR), path);
	if (st.st_uid != 0)
		return refuse(ret_problem, -EINVAL, BECAUSE(CONFIG_OWNER), path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(ret_problem, -EINVAL, BECAUSE(CONFIG_MODE), path);
	if (st.st_size > (off_t)CONFIG_BYTES_MAX)
		return refuse(ret_problem, -EINVAL, "%s: is longer than %u bytes; shorten it", path,
			      CONFIG_BYTES_MAX);
	return 0;
}

static int read_all(const char *path, int fd, char *text, size_t *ret_size, char **ret_problem)
{
	size_t size = 0;

	for (;;) {
		ssize_t n = read(fd, text + size, CONFIG_BYTES_MAX + 1 - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse(ret_problem, -errno, "%s: cannot be read: %s", path, strerror(errno));
		size += (size_t)n;
		if (size > CONFIG_BYTES_MAX)
			return refuse(ret_problem, -EINVAL, "%s: is longer than %u bytes; shorten it", path,
				      CONFIG_BYTES_MAX);
		if (n == 0)
			break;
	}
	*ret_size = size;
	return 0;
}

int config_file_open(const char *path, int *ret_fd, struct stat *ret_st, char **ret_text, size_t *ret_size,
		     char **ret_problem)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && errno == ELOOP)
		return refuse(ret_problem, -EINVAL, BECAUSE(CONFIG_LINK), path);
	if (fd < 0)
		return refuse(ret_problem, -errno, "%s: cannot be opened: %s", path, strerror(errno));
	r = check_file(path, fd, ret_problem);
	if (r < 0)
		return r;
	text = malloc(CONFIG_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	r = read_all(path, fd, text, &size, ret_problem);
	if (r == 0 && fstat(fd, ret_st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	*ret_text = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

int config_file_read(const char *path, Config *ret, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t size = 0;
	int r;

	r = config_file_open(path, &fd, &st, &text, &size, ret_problem);
	if (r == -ENOENT)
		return config_parse(path, "", 0, ret, ret_problem);
	if (r < 0)
		return r;
	return config_parse(path, text, size, ret, ret_problem);
}

/* Times of files are counted in ticks; within one a file may change without a trace. */
#define TICK_NSEC INT64_C(50000000)

/* The service has one configuration, and looks at it all the time. */
static struct {
	char *path, *problem;
	struct stat st; /* zeros where there is none */
	bool young;     /* what is in it may have been replaced within the tick */
	int result;
	Config config;
	char *text; /* NULL where it cannot be read */
	size_t size;
} last;

static int64_t nsec_of(struct timespec t)
{
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool is_last(const char *path, const struct stat *st)
{
	return last.path && streq(last.path, path) && !last.young && last.st.st_dev == st->st_dev &&
	       last.st.st_ino == st->st_ino && last.st.st_size == st->st_size &&
	       last.st.st_mode == st->st_mode && last.st.st_uid == st->st_uid &&
	       nsec_of(last.st.st_ctim) == nsec_of(st->st_ctim);
}

/* Takes text, which is NULL for one that cannot be read, and problem. */
static void remember(const char *path, const struct stat *st, bool young, char *text, size_t size, int result,
		     char *problem)
{
	config_done(&last.config);
	free(last.text);
	free(last.problem);
	last.config = CONFIG_INIT;
	last.text = text;
	last.size = size;
	last.problem = problem;
	last.st = *st;
	last.young = young;
	last.result = text ? config_parse(path, text, size, &last.config, &last.problem) : result;
	if (!last.path || !streq(last.path, path)) {
		free(last.path);
		last.path = strdup(path);
	}
}

static void look(const char *path)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st = { 0 }, read_st;
	char *text = NULL, *problem = NULL;
	struct timespec now;
	size_t size = 0;
	int r;

	if (lstat(path, &st) < 0)
		st = (struct stat){ 0 };
	if (is_last(path, &st))
		return;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	r = config_file_open(path, &fd, &read_st, &text, &size, &problem);
	if (r == -ENOENT)
		text = strdup("");
	remember(path, &st, nsec_of(now) - nsec_of(st.st_ctim) < TICK_NSEC, text, size, r, problem);
}

int config_file_last(const char *path, const Config **ret, char **ret_problem)
{
	look(path);
	if (last.result < 0)
		return refuse(ret_problem, last.result, "%s", last.problem ?: strerror(-last.result));
	*ret = &last.config;
	return 0;
}

int config_file_last_text(const char *path, const char **ret, size_t *ret_size, char **ret_problem)
{
	look(path);
	if (!last.text)
		return refuse(ret_problem, last.result, "%s", last.problem ?: strerror(-last.result));
	*ret = last.text;
	*ret_size = last.size;
	return 0;
}

void config_file_written(const char *path, const char *text, size_t size)
{
	char *copy = malloc(size + 1);
	struct stat st;

	if (!copy || lstat(path, &st) < 0) {
		free(copy);
		return;
	}
	memcpy(copy, text, size);
	remember(path, &st, false, copy, size, 0, NULL);
}

int config_file_read_checked(const char *path, Users *users, Config *ret, char **ret_problem)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	const ConfigValue *value;
	size_t index = 0;
	int r;

	r = config_file_read(path, &config, ret_problem);
	if (r < 0)
		return r;
	while ((value = config_next(&config, CONFIG_DENY_GROUP, &index))) {
		gid_t gid;

		if (users_group(users, value->text, &gid) == -ENOENT)
			return refuse(ret_problem, -EINVAL,
				      "%s: deny-group: there is no such group; correct the name or remove "
				      "the line",
				      value->origin);
	}
	*ret = config;
	config = CONFIG_INIT;
	return 0;
}
