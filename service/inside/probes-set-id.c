/* SPDX-License-Identifier: MIT */

/* Set-user-id and set-group-id files, by every call that can make one. */

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#define NUMBER_FCHMODAT2 452 /* asm/unistd_64.h, and the same on every architecture */
#define NAME "file"          /* in a private directory, which is the current one */
#define FILE_FD 9            /* it, where a way changes what is there */

/* A call with its mode, or what needs more than one call. */
typedef struct Way {
	const char *name;
	long (*more)(const long *arguments);
	long number;
	long arguments[4];
} Way;

#define CALL(name, number, ...)     \
	{                           \
		name, NULL, number, \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
#define HERE PROBE_AT(NAME)

static int plain(void)
{
	return open(NAME, O_CREAT | O_RDWR | O_CLOEXEC, 0700);
}

static const Way changes[] = {
	CALL("chmod", SYS_fchmodat, AT_FDCWD, HERE, 04700),
	CALL("chmod for the group", SYS_fchmodat, AT_FDCWD, HERE, 02770),
	CALL("chmod with more bits", SYS_fchmodat, AT_FDCWD, HERE, (long)(0xffffffff00000000ul | 06700)),
	CALL("fchmod", SYS_fchmod, FILE_FD, 04700),
	CALL("fchmodat2", NUMBER_FCHMODAT2, AT_FDCWD, HERE, 04700),
	CALL("fchmodat2 of a descriptor", NUMBER_FCHMODAT2, FILE_FD, PROBE_AT(""), 02770, AT_EMPTY_PATH),
	CALL("chmod through /proc", SYS_fchmodat, AT_FDCWD, PROBE_AT("/proc/self/fd/9"), 04700),
};

static long way_temporary(const long *arguments)
{
	_cleanup_close_ int fd =
		(int)syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 04700);
	char path[64];

	if (fd < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, NAME, AT_SYMLINK_FOLLOW);
}

/* A socket's file gets the mode of the socket. */
static long way_socket(const long *arguments)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = NAME };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long r = syscall(SYS_fchmod, fd, 04700);

	return r < 0 ? r : bind(fd, (struct sockaddr *)&address, sizeof(address));
}

static const Way makings[] = {
	CALL("openat", SYS_openat, AT_FDCWD, HERE, O_CREAT | O_WRONLY | O_CLOEXEC, 04700),
	CALL("mknodat", SYS_mknodat, AT_FDCWD, HERE, S_IFREG | 04700),
	{ "a file without a name", way_temporary },
	{ "a socket", way_socket },
#ifdef SYS_open
	CALL("open", SYS_open, HERE, O_CREAT | O_WRONLY | O_CLOEXEC, 02770),
	CALL("creat", SYS_creat, HERE, 06770),
	CALL("mknod", SYS_mknod, HERE, S_IFIFO | 02770),
#endif
};

static long way_openat2(const long *arguments)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY | O_CLOEXEC, .mode = 04700 };
	_cleanup_close_ int fd = (int)syscall(SYS_openat2, AT_FDCWD, NAME, &how, sizeof(how));

	return fd;
}

/* The kernel makes the call itself (io_uring(7)). */
static long way_ring(const long *arguments)
{
	struct io_uring_params params = { 0 };
	_cleanup_close_ int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	struct io_uring_sqe *entry;
	uint8_t *ring;

	if (fd < 0)
		return -1;
	ring = mmap(NULL, params.sq_off.array + params.sq_entries * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, IORING_OFF_SQ_RING);
	entry = mmap(NULL, params.sq_entries * sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		     IORING_OFF_SQES);
	if (ring == MAP_FAILED || entry == MAP_FAILED)
		return -1;
	*entry = (struct io_uring_sqe){ .opcode = IORING_OP_OPENAT,
					.fd = AT_FDCWD,
					.addr = (uintptr_t)NAME,
					.len = 04700,
					.open_flags = O_CREAT | O_WRONLY };
	*(uint32_t *)(void *)(ring + params.sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(void *)(ring + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static const Way hidden[] = { { "openat2", way_openat2 }, { "io_uring", way_ring } };

#ifdef __x86_64__
/* The numbers of another architecture: asm/unistd_32.h; and of x32, asm/unistd_x32.h. */
static long call_32(const long *arguments)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long answer;

	if (low == MAP_FAILED)
		return -1;
	memcpy(low, NAME, sizeof(NAME));
	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(arguments[0]), "b"((long)(uintptr_t)low), "c"(arguments[1]), "d"(arguments[2])
			 : "memory", "r8", "r9", "r10", "r11");
	if (answer < 0) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

#define CALL_32(name, ...)          \
	{                           \
		name, call_32, 0,   \
		{                   \
			__VA_ARGS__ \
		}                   \
	}

static const Way foreign[] = {
	CALL_32("open of 32 bits", 5, O_CREAT | O_WRONLY, 04700),
	CALL_32("creat of 32 bits", 8, 04700),
	CALL_32("mknod of 32 bits", 14, S_IFREG | 04700),
};
static const Way foreign_changes[] = {
	CALL_32("chmod of 32 bits", 15, 04700),
	CALL("chmod of x32", 0x40000000 | SYS_chmod, HERE, 04700),
};
#endif

typedef struct Trial {
	const Way *way;
	bool change; /* of a file that is there */
} Trial;

static bool is_refusal(int error)
{
	for (size_t i = 0; probing_refusals[i]; i++)
		if (probing_refusals[i] == error)
			return true;
	return false;
}

static void try(Probing *p, void *userdata)
{
	const Trial *trial = userdata;
	const long *a = trial->way->arguments;
	struct stat st;
	long r;
	int error;

	if (trial->change)
		(void)dup2(plain(), FILE_FD);
	(void)umask(0);
	r = trial->way->more ? trial->way->more(a) : syscall(trial->way->number, a[0], a[1], a[2], a[3]);
	error = errno;
	/* What the call answered is one thing, what came of it another. */
	if (lstat(NAME, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
		probing_escaped(p, "%s made a set-id file", trial->way->name);
	else if (r >= 0)
		probing_blocked(p, "%s: without effect", trial->way->name);
	else if (is_refusal(error))
		probing_blocked(p, "%s: %s", trial->way->name, probing_error(error));
	else
		probing_unclear(p, "%s: %s", trial->way->name, probing_error(error));
	(void)unlink(NAME);
}

static void try_all(Probing *p, const Way *ways, size_t n, bool change)
{
	char place[PROBE_PLACE_MAX];
	int r = probe_place_make(place);

	if (r == 0 && chdir(place) < 0) {
		r = -errno;
		probe_place_remove(place);
	}
	if (r < 0) {
		probing_unclear(p, "no private place: %s", probing_error(r));
		return;
	}
	/* Calls of a foreign architecture may be answered with a signal. */
	for (size_t i = 0; i < n; i++)
		probing_apart(p, try, &(Trial){ .way = &ways[i], .change = change });
	(void)!chdir("/");
	probe_place_remove(place);
}

static void attempt_change(Probing *p)
{
	try_all(p, changes, ELEMENTSOF(changes), true);
}

static void attempt_make(Probing *p)
{
	try_all(p, makings, ELEMENTSOF(makings), false);
}

static void attempt_hidden(Probing *p)
{
	try_all(p, hidden, ELEMENTSOF(hidden), false);
}

static void attempt_foreign(Probing *p)
{
#ifdef __x86_64__
	try_all(p, foreign, ELEMENTSOF(foreign), false);
	try_all(p, foreign_changes, ELEMENTSOF(foreign_changes), true);
#else
	probing_unclear(p, "this architecture has no other one whose calls could be made from here");
#endif
}

const Probe probes_set_id[] = {
	{ "p39", "no file gets set-id bits", "a program with the person's rights for every other user",
	  attempt_change },
	{ "p40", "no file is made with set-id bits", "the same, from the start", attempt_make },
	{ "p41", "no set-id file by calls whose mode lies in memory", "the same, where no filter sees it",
	  attempt_hidden },
	{ "p42", "no set-id file by calls of other architectures",
	  "the same, by numbers that mean something else", attempt_foreign },
};
const size_t probes_set_id_count = ELEMENTSOF(probes_set_id);
