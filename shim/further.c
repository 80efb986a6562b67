/* SPDX-License-Identifier: MIT */
#include "shim/further.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "shim/complain.h"

#define COPY_BYTES_MAX (16u << 20)
#define CHUNK_BYTES (1u << 20)

/*
 * /proc/self/fd opens a file anew with all that its owner may do. For one that the caller opened for reading,
 * the agent's is a sealed copy, then, at the same place: it gives what the caller passed, and nothing else.
 */
static bool gives_more(int fd, const struct stat *st, int flags)
{
	char link[32];

	if ((flags & O_ACCMODE) != O_RDONLY)
		return false;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return st->st_uid == geteuid() || access(link, W_OK) == 0;
}

/* Return: a descriptor or a negative errno. */
static int file_copy(int fd, const struct stat *st)
{
	_cleanup_close_ int copy_fd = FD_NONE;
	struct rlimit limit;
	off_t at = lseek(fd, 0, SEEK_CUR), from = 0;

	if (at < 0)
		return -errno;
	/* Above that limit a signal ends whoever writes (setrlimit(2)). */
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return -errno;
	if ((uint64_t)st->st_size > COPY_BYTES_MAX || (uint64_t)st->st_size > limit.rlim_cur)
		return -EFBIG;
	copy_fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy_fd < 0)
		return -errno;
	while (from < st->st_size) {
		ssize_t n = sendfile(copy_fd, fd, &from, MIN_OF(CHUNK_BYTES, (size_t)(st->st_size - from)));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
	}
	if (lseek(copy_fd, at, SEEK_SET) < 0 ||
	    fcntl(copy_fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return TAKE_FD(copy_fd);
}

/* Return: a descriptor for the agent; FD_NONE for nothing that goes along; another negative errno. */
static int further_take(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_PATH || fstat(fd, &st) < 0)
		return FD_NONE;
	if (S_ISFIFO(st.st_mode))
		return fd;
	if (!S_ISREG(st.st_mode) || descriptor_is_of_kernel(fd))
		return FD_NONE;
	return gives_more(fd, &st, flags) ? file_copy(fd, &st) : fd;
}

void further_find(Further *ret)
{
	Further further = { .n = 0 };
	bool open[SLOTS_NUMBER_MAX + 1] = { false };
	unsigned left_out = 0;

	/* Before a copy takes one of the numbers that are free. */
	for (int number = SLOTS_FIRST_FURTHER; number <= (int)SLOTS_NUMBER_MAX; number++)
		open[number] = fcntl(number, F_SETFD, FD_CLOEXEC) == 0;
	for (int number = SLOTS_FIRST_FURTHER; number <= (int)SLOTS_NUMBER_MAX; number++) {
		int fd = open[number] ? further_take(number) : FD_NONE;

		if (fd == FD_NONE)
			continue;
		if (fd < 0) {
			_cleanup_free_ char *sentence = NULL;

			(void)refuse(
				&sentence, fd,
				"descriptor %d, a file opened for reading, does not go to the agent: %s; "
				"pass it through a pipe",
				number, strerrordesc_np(-fd));
			complain(sentence ?: "not enough memory");
		} else if (further.n == SLOTS_FURTHER_MAX) {
			left_out++;
			if (fd != number)
				(void)close(fd);
		} else {
			further.fds[further.n] = fd;
			further.numbers[further.n++] = (uint8_t)number;
		}
	}
	if (left_out > 0) {
		_cleanup_free_ char *sentence = NULL;

		(void)refuse(
			&sentence, -E2BIG,
			"%u open files and pipes do not go to the agent: %u go along beside standard input, "
			"output and error; close what it does not need",
			left_out, SLOTS_FURTHER_MAX);
		complain(sentence ?: "not enough memory");
	}
	*ret = further;
}

void further_close(Further *further)
{
	for (size_t i = 0; i < further->n; i++)
		(void)close(further->fds[i]);
	further->n = 0;
}
