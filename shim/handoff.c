/* SPDX-License-Identifier: MIT */
#include "shim/handoff.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "dbus/causes.h"
#include "dbus/names.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* linux/memfd.h, since 6.3; older kernels answer EINVAL */
#endif

#define PARTS_MAX 256

/* A file above the limit is answered by SIGXFSZ (setrlimit(2)), which would end this process without a word.
 */
static int limit_check(char *const *environment)
{
	struct rlimit limit;
	size_t size = 0;

	for (size_t i = 0; environment && environment[i]; i++)
		size += strlen(environment[i]) + 1;
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return -errno;
	return limit.rlim_cur < size ? -EFBIG : 0;
}

static int write_all(int fd, struct iovec *parts, int n)
{
	while (n > 0) {
		ssize_t written = writev(fd, parts, n);

		if (written < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		while (n > 0 && (size_t)written >= parts->iov_len) {
			written -= (ssize_t)parts->iov_len;
			parts++;
			n--;
		}
		if (n > 0) {
			parts->iov_base = (char *)parts->iov_base + written;
			parts->iov_len -= (size_t)written;
		}
	}
	return 0;
}

static int environment_write(int fd, char *const *environment)
{
	struct iovec parts[PARTS_MAX];
	int n = 0, r;

	for (size_t i = 0; environment && environment[i]; i++) {
		parts[n++] =
			(struct iovec){ .iov_base = environment[i], .iov_len = strlen(environment[i]) + 1 };
		if (n == PARTS_MAX) {
			r = write_all(fd, parts, n);
			if (r < 0)
				return r;
			n = 0;
		}
	}
	return write_all(fd, parts, n);
}

/* Above 2, whatever of the caller's first three descriptors is closed: launch tells the agent which were
 * open. */
static int environment_seal(char *const *environment, int *ret_fd)
{
	_cleanup_close_ int fd = FD_NONE, high_fd = FD_NONE;
	int r;

	fd = memfd_create("environment", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("environment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	high_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high_fd < 0)
		return -errno;

	r = environment_write(high_fd, environment);
	if (r < 0)
		return r;
	if (fcntl(high_fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;

	*ret_fd = TAKE_FD(high_fd);
	return 0;
}

static char *decimal(int number, char buffer[static 12])
{
	char *p = buffer + 11;

	*p = '\0';
	do
		*--p = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	return p;
}

int handoff_exec(const char *agent, char *const *arguments, char *const *environment)
{
	char *const nothing[] = { NULL };
	_cleanup_close_ int fd = FD_NONE;
	_cleanup_free_ char **argv = NULL;
	char number[12];
	size_t n = 0;
	int r;

	while (arguments && arguments[n])
		n++;
	argv = calloc(n + 4, sizeof(char *));
	if (!argv)
		return -ENOMEM;

	r = limit_check(environment);
	if (r == 0)
		r = environment_seal(environment, &fd);
	if (r < 0)
		return r;

	/* What ps(1) and a terminal's title show is the program that the person started. */
	argv[0] = streq(agent, "shell") ? (char *)"claude-sandbox" : (char *)agent;
	argv[1] = (char *)agent;
	argv[2] = decimal(fd, number);
	if (n > 0)
		memcpy(argv + 3, arguments, n * sizeof(char *));

	/* The one descriptor that is meant to be inherited, and only now. */
	if (fcntl(fd, F_SETFD, 0) < 0)
		return -errno;
	execve(CS_LAUNCH_PATH, argv, nothing);
	return -errno;
}

static const char *fix_of(int error)
{
	switch (error) {
	case -ENOENT:
	case -EACCES:
	case -ENOEXEC:
		return "; install claude-sandbox again (sudo ./quickstart)";
	case -E2BIG:
		return "; shorten the arguments or the environment";
	case -EFBIG:
		return "; " FIX_LIMIT_FILE_SIZE;
	case -EMFILE:
		return "; raise the limit of open files (ulimit -n)";
	case -ENFILE:
	case -ENOMEM:
	case -EAGAIN:
		return "; end other programs";
	default:
		return "; see what forbids it here (a security module, a container)";
	}
}

void handoff_complain(int error)
{
	const char *what = strerrordesc_np(-error);
	const char *parts[] = { "claude-sandbox: ",     CS_LAUNCH_PATH,
				" cannot be started: ", what ? what : "unknown error",
				fix_of(error),          "\n" };
	struct iovec line[ELEMENTSOF(parts)];

	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		line[i] = (struct iovec){ .iov_base = (char *)parts[i], .iov_len = strlen(parts[i]) };
	(void)!writev(STDERR_FILENO, line, ELEMENTSOF(line));
}
