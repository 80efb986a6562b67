/* SPDX-License-Identifier: MIT */

/*
 * Processes, namespaces and mounts of outside by the numbers that newer kernels give them: file handles of
 * pidfds and of namespaces (Linux 6.14, 6.18), and lists of mounts by the number of a namespace (6.8, 6.11).
 * The numbers follow each other, so those of what was made before the jail are easy to guess.
 */

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#define GUESSES 400u
/* include/uapi/linux/nsfs.h and asm-generic/unistd.h of newer kernels. */
#define IOCTL_MNT_PREVIOUS _IOR(NSIO, 12, struct NamespaceInfo)
#define IOCTL_MNT_INFO _IOR(NSIO, 10, struct NamespaceInfo)
#define NUMBER_LISTMOUNT 458
#define EVERY_MOUNT UINT64_MAX /* LSMT_ROOT */

struct NamespaceInfo {
	uint32_t size, n_mounts;
	uint64_t id;
};

typedef union Handle {
	struct file_handle handle;
	uint8_t bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
} Handle;

/* It begins with a number. size: of the handle, at least. Return: false with errno. */
static bool own_handle(int fd, size_t size, Handle *ret, uint64_t *ret_number)
{
	int id;

	*ret = (Handle){ .handle.handle_bytes = MAX_HANDLE_SZ };
	if (name_to_handle_at(fd, "", &ret->handle, &id, AT_EMPTY_PATH) < 0)
		return false;
	if (ret->handle.handle_bytes < size) {
		errno = EOPNOTSUPP;
		return false;
	}
	memcpy(ret_number, ret->bytes + offsetof(struct file_handle, f_handle), sizeof(*ret_number));
	return true;
}

/* Signals go to processes that have a number here, and to no others (pidfd_send_signal(2)). */
static void guess_processes(Probing *p)
{
	_cleanup_close_ int own_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	unsigned refused = 0, inside = 0;
	uint64_t number;
	Handle handle;

	if (own_fd < 0 || !own_handle(own_fd, sizeof(number), &handle, &number)) {
		probing_refused(p, errno, "processes have no handles");
		return;
	}
	for (unsigned i = 1; i <= GUESSES && number > i; i++) {
		_cleanup_close_ int fd = FD_NONE;
		uint64_t guess = number - i;

		memcpy(handle.bytes + offsetof(struct file_handle, f_handle), &guess, sizeof(guess));
		fd = open_by_handle_at(own_fd, &handle.handle, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && probing_is_starved(errno)) {
			probing_unclear(p, "a process: %s", probing_error(errno));
			return;
		}
		if (fd < 0)
			refused++;
		else if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 || errno == ESRCH)
			inside++;
		else
			probing_escaped(p, "a process of outside was opened by its handle");
	}
	probing_blocked(p, "of %u processes before this one %u are ours, none is of outside",
			inside + refused, inside);
}

/* Such a handle is a number of its own, the kind, and the inode number: that of outside is known. */
typedef struct NamespaceHandle {
	uint64_t number;
	uint32_t kind, inode;
} NamespaceHandle;

static void guess_namespaces(Probing *p, const char *name, uint64_t outer)
{
	_cleanup_close_ int own_fd = FD_NONE;
	NamespaceHandle guess;
	unsigned refused = 0;
	char path[64];
	uint64_t number;
	struct stat st;
	Handle handle;

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	own_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (own_fd < 0 || fstat(own_fd, &st) < 0 || !own_handle(own_fd, sizeof(guess), &handle, &number)) {
		probing_refused(p, errno, "%s namespaces have no handles", name);
		return;
	}
	if (outer == 0 || outer == (uint64_t)st.st_ino) {
		probing_unclear(p, "nobody said which %s namespace is that of outside", name);
		return;
	}
	memcpy(&guess, handle.bytes + offsetof(struct file_handle, f_handle), sizeof(guess));
	guess.inode = (uint32_t)outer;
	/* The machine's own are the first; those of a container come somewhere before ours. */
	for (uint64_t i = 0; i < 2 * GUESSES; i++) {
		int fd;

		guess.number = i < GUESSES ? i + 1 : number - (i - GUESSES) - 1;
		memcpy(handle.bytes + offsetof(struct file_handle, f_handle), &guess, sizeof(guess));
		fd = open_by_handle_at(own_fd, &handle.handle, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && probing_is_starved(errno)) {
			probing_unclear(p, "the %s namespace: %s", name, probing_error(errno));
			return;
		}
		if (fd >= 0)
			probing_escaped(p, "the %s namespace of outside was opened by its handle", name);
		refused += fd < 0;
		(void)close_fd(fd);
	}
	probing_blocked(p, "%u guesses of the %s namespace of outside", refused, name);
}

static void attempt_handles(Probing *p)
{
	const Expectations *e = p->expectations;

	guess_processes(p);
	guess_namespaces(p, "user", e ? e->namespaces[NAMESPACE_USER] : 0);
	guess_namespaces(p, "net", e ? e->namespaces[NAMESPACE_NET] : 0);
	guess_namespaces(p, "mnt", e ? e->namespaces[NAMESPACE_MNT] : 0);
}

static long list_mounts(uint64_t namespace)
{
	const struct {
		uint32_t size, spare;
		uint64_t mount, last, namespace;
	} request = { .size = sizeof(request), .mount = EVERY_MOUNT, .namespace = namespace };
	uint64_t found[16];

	return syscall(NUMBER_LISTMOUNT, &request, found, ELEMENTSOF(found), 0);
}

static void attempt_lists(Probing *p)
{
	_cleanup_close_ int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	struct NamespaceInfo own = { .size = sizeof(own) };
	unsigned refused = 0;
	int previous;

	if (fd < 0 || ioctl(fd, IOCTL_MNT_INFO, &own) < 0) {
		probing_refused(p, errno, "mount namespaces have no numbers here");
		return;
	}
	previous = ioctl(fd, IOCTL_MNT_PREVIOUS, NULL);
	probing_result(p, previous, "the mount namespace before ours");
	(void)close_fd(previous);
	for (uint64_t i = 1; i <= GUESSES; i++) {
		/* Sandboxes that an agent made are its own to list, and come after. */
		bool before = own.id > i && list_mounts(own.id - i) > 0;
		bool after = !(p->expectations && p->expectations->joined) && list_mounts(own.id + i) > 0;

		if (before || after)
			probing_escaped(p, "the mounts of another namespace were listed");
		else
			refused++;
	}
	probing_blocked(p, "%u guesses of mount namespaces: %s", refused, probing_error(errno));
}

const Probe probes_handles[] = {
	{ "p107", "processes and namespaces do not open by their handles",
	  "signals to processes outside, and their descriptors; namespaces to enter", attempt_handles },
	{ "p108", "mounts of other namespaces are not listed", "what is mounted outside, and from where",
	  attempt_lists },
};
const size_t probes_handles_count = ELEMENTSOF(probes_handles);
