/* SPDX-License-Identifier: MIT */
#include "service/session/sealed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int sealed_open(const char *name, int *ret_fd)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int sealed_fill(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const uint8_t *)data + done, size - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return 0;
}

int sealed_make(const char *name, const void *data, size_t size, int *ret_fd)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	r = sealed_open(name, &fd);
	if (r == 0)
		r = sealed_fill(fd, data, size);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int sealed_read(int fd, size_t max, uint8_t **ret_data, size_t *ret_size)
{
	const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
	_cleanup_free_ uint8_t *data = NULL;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	size_t size;

	if (seals < 0)
		return errno == EINVAL ? -EPERM : -errno;
	if ((seals & wanted) != wanted)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -EBADMSG;
	if ((uint64_t)st.st_size > max)
		return -E2BIG;
	size = (size_t)st.st_size;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, data + done, size - done, (off_t)done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		if (n > 0)
			done += (size_t)n;
	}
	*ret_data = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}
