/* SPDX-License-Identifier: MIT */
/*
 * set-id DIRECTORY: tries to make a set-uid or set-gid file there in every way that the kernel has. One line
 * for each: its name, what the kernel answered ("ok", the name of an error, "signal"), and whether the bit is
 * there
 * ("SET", "clear", "none": no file).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_FCHMODAT2 452 /* asm/unistd_64.h, and the same in 32 bits */
#define NAME "planted"       /* in the current directory */

static int plain(void)
{
	return open(NAME, O_CREAT | O_RDWR | O_CLOEXEC, 0755);
}

static long way_chmod(void)
{
	(void)plain();
	return chmod(NAME, 04755);
}

static long way_chmod_gid(void)
{
	(void)plain();
	return chmod(NAME, 02755);
}

static long way_fchmod(void)
{
	return fchmod(plain(), 04755);
}

static long way_fchmodat(void)
{
	(void)plain();
	return syscall(SYS_fchmodat, AT_FDCWD, NAME, 06755);
}

static long way_fchmodat2(void)
{
	(void)plain();
	return syscall(NUMBER_FCHMODAT2, AT_FDCWD, NAME, 04755, 0);
}

static long way_fchmodat2_by_descriptor(void)
{
	return syscall(NUMBER_FCHMODAT2, plain(), "", 02755, AT_EMPTY_PATH);
}

static long way_chmod_in_proc(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", plain());
	return chmod(path, 04755);
}

static long way_open(void)
{
	return open(NAME, O_CREAT | O_WRONLY | O_CLOEXEC, 04755);
}

static long way_openat(void)
{
	return syscall(SYS_openat, AT_FDCWD, NAME, O_CREAT | O_WRONLY, 02755);
}

static long way_open_without_umask(void)
{
	(void)umask(0);
	return open(NAME, O_CREAT | O_WRONLY | O_CLOEXEC, 07777);
}

static long way_creat(void)
{
	return creat(NAME, 06755);
}

static long way_openat2(void)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 04755 };

	return syscall(SYS_openat2, AT_FDCWD, NAME, &how, sizeof(how));
}

static long way_tmpfile(void)
{
	int fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 04755);
	char path[64];

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, NAME, AT_SYMLINK_FOLLOW);
}

static long way_mknod(void)
{
	return mknod(NAME, S_IFREG | 04755, 0);
}

static long way_mknodat(void)
{
	return mknodat(AT_FDCWD, NAME, S_IFIFO | 02755, 0);
}

/* A socket's file gets the mode of the socket. */
static long way_bind(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = NAME };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long r = fchmod(fd, 04755);
	int error = errno;

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	errno = error;
	return r;
}

/* The mode is in memory, and the call is made by the kernel itself. */
static long way_io_uring(void)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	uint8_t *ring, *done;
	struct io_uring_sqe *entry;

	if (fd < 0)
		return fd;
	ring = mmap(NULL, params.sq_off.array + params.sq_entries * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, IORING_OFF_SQ_RING);
	done = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	entry = mmap(NULL, params.sq_entries * sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		     IORING_OFF_SQES);
	if (ring == MAP_FAILED || done == MAP_FAILED || entry == MAP_FAILED)
		return -1;
	*entry = (struct io_uring_sqe){ .opcode = IORING_OP_OPENAT,
					.fd = AT_FDCWD,
					.addr = (uintptr_t)NAME,
					.len = 04755,
					.open_flags = O_CREAT | O_WRONLY };
	((uint32_t *)(void *)(ring + params.sq_off.array))[0] = 0;
	__atomic_store_n((uint32_t *)(void *)(ring + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

/* mkdir(2) takes neither bit: none may appear, and no error either. */
static long way_mkdir(void)
{
	return mkdir(NAME, 06755);
}

/* A set-gid directory hands its bit to directories, and to no file. */
static long way_inherit(void)
{
	return chdir("set-gid") < 0 ? -1 : plain();
}

#ifdef __x86_64__
static long call_32(long number, const char *path, long b, long c)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long answer;

	if (low == MAP_FAILED)
		return -1;
	strcpy(low, path);
	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(number), "b"((long)low), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	if (answer < 0) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

/* asm/unistd_32.h: open 5, creat 8, mknod 14, chmod 15 */
static long way_32_open(void)
{
	return call_32(5, NAME, O_CREAT | O_WRONLY, 04755);
}

static long way_32_creat(void)
{
	return call_32(8, NAME, 04755, 0);
}

static long way_32_mknod(void)
{
	return call_32(14, NAME, S_IFREG | 02755, 0);
}

static long way_32_chmod(void)
{
	(void)plain();
	return call_32(15, NAME, 04755, 0);
}

static long way_x32_chmod(void)
{
	(void)plain();
	return syscall(0x40000000 | SYS_chmod, NAME, 04755);
}
#endif

static const struct {
	const char *name;
	long (*call)(void);
} ways[] = {
	{ "chmod", way_chmod },
	{ "chmod-gid", way_chmod_gid },
	{ "fchmod", way_fchmod },
	{ "fchmodat", way_fchmodat },
	{ "fchmodat2", way_fchmodat2 },
	{ "fchmodat2-by-descriptor", way_fchmodat2_by_descriptor },
	{ "chmod-in-proc", way_chmod_in_proc },
	{ "open", way_open },
	{ "openat", way_openat },
	{ "open-without-umask", way_open_without_umask },
	{ "creat", way_creat },
	{ "openat2", way_openat2 },
	{ "tmpfile", way_tmpfile },
	{ "mknod", way_mknod },
	{ "mknodat", way_mknodat },
	{ "bind", way_bind },
	{ "io_uring", way_io_uring },
	{ "mkdir", way_mkdir },
	{ "inherit", way_inherit },
#ifdef __x86_64__
	{ "32-open", way_32_open },
	{ "32-creat", way_32_creat },
	{ "32-mknod", way_32_mknod },
	{ "32-chmod", way_32_chmod },
	{ "x32-chmod", way_x32_chmod },
#endif
};

static const char *state(void)
{
	struct stat status;

	if (lstat(NAME, &status) < 0 && lstat("set-gid/" NAME, &status) < 0)
		return "none";
	return status.st_mode & (S_ISUID | S_ISGID) ? "SET" : "clear";
}

static void try_way(size_t i)
{
	const char *answer = "signal";
	int status = 0;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(ways[i].call() < 0 ? errno : 0);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		answer = "nothing";
	else if (WIFEXITED(status))
		answer = WEXITSTATUS(status) == 0 ? "ok" : strerrorname_np(WEXITSTATUS(status));
	printf("%s %s %s\n", ways[i].name, answer, state());
	(void)unlink(NAME);
	(void)rmdir(NAME);
	(void)unlink("set-gid/" NAME);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) < 0) {
		(void)fprintf(stderr, "usage: set-id DIRECTORY\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		try_way(i);
	return 0;
}
