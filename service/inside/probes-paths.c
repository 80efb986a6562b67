/* SPDX-License-Identifier: MIT */

/* Files that are only to be read: written, renewed, linked, mapped, leased, or opened by another name. */

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#define PATHS_MAX 128u
/* F_SETDELEG of fcntl(2), Linux 6.19. */
#define COMMAND_SETDELEG 1040

/* What nobody in a jail may write, beside what the plan says. */
static const char *const protected[] = { "/",
					 "/etc",
					 "/etc/passwd",
					 "/usr",
					 "/usr/local/bin",
					 "/etc/claude-sandbox.conf",
					 "/usr/libexec/claude-sandbox",
					 "/usr/libexec/claude-sandbox/verify" };

/* Return: how many paths are in ret. */
static size_t protected_paths(const Probing *p, const char *ret[static PATHS_MAX])
{
	const Expectations *e = p->expectations;
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(protected); i++) {
		const ExpectedEntry *entry = probing_covering(p, protected[i]);

		if (!entry || entry->mode == ENTRY_RO)
			ret[n++] = protected[i];
	}
	for (size_t i = 0; e && i < e->n_entries && n < PATHS_MAX; i++) {
		const ExpectedEntry *entry = &e->entries[i];

		if (entry->mode == ENTRY_RO && (entry->kind == ENTRY_BIND || entry->kind == ENTRY_FILE) &&
		    !entry->device && probing_covering(p, entry->path) == entry)
			ret[n++] = entry->path;
	}
	return n;
}

typedef struct Count {
	unsigned refused;
	int error; /* of the last */
} Count;

static void judge(Probing *p, Count *count, long result, const char *what, const char *path)
{
	int error = errno;

	if (result >= 0) {
		probing_escaped(p, "%s %s succeeded", what, path);
		return;
	}
	if (error == ENOENT)
		return;
	/* A name that an agent beside us had made first is no refusal either. */
	if (probing_is_starved(error) || error == EEXIST) {
		probing_unclear(p, "%s %s: %s", what, path, probing_error(error));
		return;
	}
	count->refused++;
	count->error = error;
}

static void count_end(Probing *p, const Count *count, const char *what)
{
	if (count->refused > 0)
		probing_blocked(p, "%s %u paths: %s", what, count->refused, probing_error(count->error));
}

static void attempt_write(Probing *p)
{
	const char *paths[PATHS_MAX];
	size_t n = protected_paths(p, paths);
	Count writing = { 0 }, making = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct statvfs fs;
		struct stat st;
		int fd;

		if (lstat(paths[i], &st) < 0)
			continue;
		/* Rights of the user's are no protection from root's agent, nor from the user's own. */
		if (statvfs(paths[i], &fs) == 0 && !(fs.f_flag & ST_RDONLY))
			probing_escaped(p, "%s is mounted to be written", paths[i]);
		if (S_ISREG(st.st_mode)) {
			fd = open(paths[i], O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
			judge(p, &writing, fd, "opening to write", paths[i]);
			(void)close_fd(fd);
		} else if (S_ISDIR(st.st_mode)) {
			/* Has no name, and goes when it is closed. */
			fd = open(paths[i], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
			judge(p, &making, fd, "making a file in", paths[i]);
			(void)close_fd(fd);
		}
	}
	count_end(p, &writing, "opening to write");
	count_end(p, &making, "making a file in");
}

/* Set to what they are. */
static void attempt_attributes(Probing *p)
{
	const char *paths[PATHS_MAX];
	size_t n = protected_paths(p, paths);
	Count modes = { 0 }, owners = { 0 }, times = { 0 }, extended = { 0 }, flags = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct timespec same[2];
		struct stat st;
		int fd, attributes;

		if (lstat(paths[i], &st) < 0 || S_ISLNK(st.st_mode))
			continue;
		same[0] = st.st_atim;
		same[1] = st.st_mtim;
		judge(p, &modes, chmod(paths[i], st.st_mode & 0777), "chmod of", paths[i]);
		judge(p, &owners, lchown(paths[i], st.st_uid, st.st_gid), "chown of", paths[i]);
		judge(p, &times, utimensat(AT_FDCWD, paths[i], same, AT_SYMLINK_NOFOLLOW), "utimensat of",
		      paths[i]);
		judge(p, &extended, setxattr(paths[i], "user.probe", "", 0, XATTR_REPLACE), "setxattr of",
		      paths[i]);
		fd = open(paths[i], O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &attributes) == 0)
			judge(p, &flags, ioctl(fd, FS_IOC_SETFLAGS, &attributes), "changing the flags of",
			      paths[i]);
		(void)close_fd(fd);
	}
	count_end(p, &modes, "chmod of");
	count_end(p, &owners, "chown of");
	count_end(p, &times, "utimensat of");
	count_end(p, &extended, "setxattr of");
	count_end(p, &flags, "changing the flags of");
}

/* By descriptors that were opened to read, or to nothing, and by other names of the root. */
static void attempt_reopen(Probing *p)
{
	static const int flags[] = { O_RDONLY, O_PATH };
	static const char *const roots[] = { "/proc/self/root", "/proc/thread-self/root", "/proc/1/root",
					     "/proc/self/cwd" };
	const char *paths[PATHS_MAX];
	size_t n = protected_paths(p, paths);
	Count reopened = { 0 }, rooted = { 0 };

	for (size_t i = 0; i < n; i++) {
		char name[64], *path = NULL;
		struct stat st;

		if (stat(paths[i], &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		for (size_t j = 0; j < ELEMENTSOF(flags); j++) {
			int fd = open(paths[i], flags[j] | O_CLOEXEC | O_NONBLOCK), again;

			if (fd < 0)
				continue;
			(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
			again = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
			judge(p, &reopened, again, "opening again", paths[i]);
			(void)close_fd(again);
			(void)close(fd);
		}
		for (size_t j = 0; j < ELEMENTSOF(roots); j++) {
			int fd;

			if (asprintf(&path, "%s%s", roots[j], paths[i]) < 0)
				break;
			fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
			judge(p, &rooted, fd, "opening", path);
			(void)close_fd(fd);
			free(path);
		}
	}
	count_end(p, &reopened, "opening again");
	count_end(p, &rooted, "opening by another root");
}

/* A second name of a protected file in a place that may be written. */
static void attempt_link(Probing *p)
{
	const Expectations *e = p->expectations;
	const char *paths[PATHS_MAX], *places[8] = { "/tmp" };
	size_t n = protected_paths(p, paths), n_places = 1;
	Count linked = { 0 };

	for (size_t i = 0; e && i < e->n_entries && n_places < ELEMENTSOF(places); i++)
		if (e->entries[i].mode == ENTRY_RW && e->entries[i].kind == ENTRY_BIND)
			places[n_places++] = e->entries[i].path;
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		if (lstat(paths[i], &st) < 0 || S_ISDIR(st.st_mode))
			continue;
		for (size_t j = 0; j < n_places; j++) {
			_cleanup_close_ int directory_fd = open(places[j], O_PATH | O_DIRECTORY | O_CLOEXEC);
			long r;

			if (directory_fd < 0)
				continue;
			r = linkat(AT_FDCWD, paths[i], directory_fd, ".linked-by-a-probe", 0);
			if (r == 0)
				(void)unlinkat(directory_fd, ".linked-by-a-probe", 0);
			judge(p, &linked, r, "linking", paths[i]);
		}
	}
	count_end(p, &linked, "linking");
}

/* Write a byte that is there already where a file is mapped that was opened to read. */
static void write_memory(Probing *p, void *userdata)
{
	const char *path = userdata;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC), memory_fd = FD_NONE;
	char *mapped, byte;
	ssize_t n;

	if (fd < 0) {
		probing_unclear(p, "%s: %s", path, probing_error(errno));
		return;
	}
	mapped = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		probing_escaped(p, "%s can be mapped to be written", path);
	else
		probing_refused(p, errno, "mapping %s to write", path);
	mapped = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return;
	probing_result(p, mprotect(mapped, 1, PROT_READ | PROT_WRITE), "mprotect of a mapping of %s", path);
	(void)mprotect(mapped, 1, PROT_READ);
	/* Its own memory is closed to a process that is not dumpable. */
	probing_forget(p);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	memory_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	byte = *mapped;
	n = memory_fd < 0 ? -1 : pwrite(memory_fd, &byte, 1, (off_t)(uintptr_t)mapped);
	probing_result(p, n == 1 ? 0 : -1, "writing to a mapping of %s by /proc/self/mem", path);
}

static void attempt_memory(Probing *p)
{
	static char path[] = "/etc/passwd";

	probing_apart(p, write_memory, path);
}

static void attempt_lease(Probing *p)
{
	static const struct {
		const char *name;
		int command, value;
	} leases[] = { { "a read lease", F_SETLEASE, F_RDLCK },
		       { "a write lease", F_SETLEASE, F_WRLCK },
		       { "a delegation", COMMAND_SETDELEG, F_RDLCK } };
	char place[PROBE_PLACE_MAX], path[PROBE_PLACE_MAX + 8];
	int r = probe_place_make(place);

	if (r < 0) {
		probing_unclear(p, "no private file can be made: %s", probing_error(r));
		return;
	}
	/* A file of our own, on which nothing but the filter forbids it; and what only root owns. */
	(void)snprintf(path, sizeof(path), "%s/file", place);
	(void)close_fd(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (size_t i = 0; i < ELEMENTSOF(leases); i++) {
		const char *const files[] = { path, "/etc/passwd" };

		for (size_t j = 0; j < ELEMENTSOF(files); j++) {
			_cleanup_close_ int fd = open(files[j], O_RDONLY | O_CLOEXEC);
			long result;

			if (fd < 0)
				continue;
			result = syscall(SYS_fcntl, fd, leases[i].command, leases[i].value);
			if (result == 0)
				(void)fcntl(fd, F_SETLEASE, F_UNLCK);
			probing_result(p, result, "%s on %s", leases[i].name,
				       j == 0 ? "a file of our own" : files[j]);
		}
	}
	probe_place_remove(place);
}

const Probe probes_paths[] = {
	{ "p28", "protected files are not written", "the system, the agent's program, its guards",
	  attempt_write },
	{ "p29", "modes, owners, times and flags of protected files stay",
	  "access to them for somebody else, or a lock on them", attempt_attributes },
	{ "p30", "protected files do not open again through /proc",
	  "write access by a descriptor that has none", attempt_reopen },
	{ "p31", "protected files get no name in a writable place", "write access by that name",
	  attempt_link },
	{ "p32", "memory writes to no protected file", "write access by a mapping that has none",
	  attempt_memory },
	{ "p33", "no leases", "every program of the machine that opens the file waiting for the agent",
	  attempt_lease },
};
const size_t probes_paths_count = ELEMENTSOF(probes_paths);
