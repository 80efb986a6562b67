/* SPDX-License-Identifier: MIT */
#include "shim/caller-environment.h"

#include <sys/stat.h>

#include "dbus/names.h"
#include "service/link/pack.h"

static int number_parse(const char *text)
{
	int number = 0;

	if (!*text)
		return -EINVAL;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || number > 100000000)
			return -EINVAL;
		number = number * 10 + (*p - '0');
	}
	return number > STDERR_FILENO ? number : -EINVAL;
}

static int block_read(int fd, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *block = NULL;
	struct stat status;
	size_t size = 0, n = 0;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -EINVAL;
	if (status.st_size > (off_t)CS_REQUEST_BYTES_MAX)
		return -E2BIG;

	size = (size_t)status.st_size;
	block = malloc(size + 1);
	if (!block)
		return -ENOMEM;
	while (n < size) {
		ssize_t got = pread(fd, block + n, size - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EINVAL;
		n += (size_t)got;
	}
	if (size > 0 && block[size - 1] != '\0')
		return -EINVAL;
	*ret = TAKE_PTR(block);
	*ret_size = size;
	return 0;
}

static int block_split(const char *block, size_t size, char ***ret)
{
	_cleanup_(strings_freep) char **strings = NULL;
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += block[i] == '\0';
	if (n > CS_REQUEST_STRINGS_MAX)
		return -E2BIG;
	strings = calloc(n + 1, sizeof(char *));
	if (!strings)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		strings[i] = strdup(block);
		if (!strings[i])
			return -ENOMEM;
		block += strlen(block) + 1;
	}
	*ret = TAKE_PTR(strings);
	return 0;
}

int caller_environment_read(const char *text, char ***ret)
{
	_cleanup_free_ char *block = NULL;
	_cleanup_close_ int fd = FD_NONE;
	size_t size = 0;
	int r;

	r = number_parse(text);
	if (r < 0)
		return r;
	fd = r;
	r = block_read(fd, &block, &size);
	if (r < 0)
		return r;
	return block_split(block, size, ret);
}
