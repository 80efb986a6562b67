/* SPDX-License-Identifier: MIT */
/*
 * TWO WAYS TO LOOK, and both ask the kernel about the caller's process, never the caller: a descriptor of a
 * namespace proves only that somebody could once open it, and would be passed on like any other.
 *
 *  1. By links: /proc/PID/ns and /proc/PID/root lead to the objects themselves. Following them needs the power
 *     to trace the process (ptrace(2), PTRACE_MODE_READ_FSCREDS), which root in a container lacks for others
 *     than root: containers get no CAP_SYS_PTRACE.
 *  2. By texts, only when 1. is refused for want of that power. Everybody may read them, and each names an
 *     object by a number that no other living object has, while ours is alive because we are in it:
 *      - mountinfo. A mount belongs to one mount namespace, and mount points are written as seen from the
 *        process's root directory: the same mount at "/" is the same namespace and the same root. In any other
 *        root directory it is at another place, or not to be seen at all.
 *      - net/dev. Each network namespace has a file of its own, with an inode number of its own.
 *      - NSpid. One number: the process is in the pid namespace of this /proc. So are we, if we have one.
 *      - uid_map, gid_map and projid_map, which are written as seen from our user namespace. Ours covers uid 0,
 *        which is us; a map of another namespace that reads the same covers it too, and only who has CAP_SETUID
 *        here can write one. So no user can make a namespace that passes, and into those that root makes we see
 *        by 1., because root owns them. What remains is one that a user makes and for which root writes all ids
 *        into all three maps, and nothing else. A session gives nothing that this one takes: it has no
 *        capability in a namespace that was there before it.
 *
 * IN BOTH the user namespace is compared before anything else is followed: who has no power over mounts in our
 * own user namespace cannot have put a file system of their own at their root.
 */
#include "service/daemon/caller-place.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "service/daemon/proc.h"

#define CAUSE_USER "the caller lives in another user namespace"
#define CAUSE_PID "the caller lives in another pid namespace"
#define CAUSE_MOUNT "the caller lives in another mount namespace"
#define CAUSE_NETWORK "the caller lives in another network namespace"
#define CAUSE_ROOT "the caller has another root directory"

typedef struct Place {
	const char *name; /* below /proc/PID */
	const char *cause;
	int (*same)(pid_t pid, const char *name); /* 1, 0, or a negative errno */
} Place;

/*
 * Do the caller's and our own /proc link lead to one object? Never asks the file system behind the link
 * (AT_STATX_DONT_SYNC), so nobody can make us wait.
 */
static int same_object(pid_t pid, const char *name)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL;
	struct statx a, b;

	if (asprintf(&theirs, "/proc/%d/%s", pid, name) < 0) {
		theirs = NULL;
		return -ENOMEM;
	}
	if (asprintf(&ours, "/proc/self/%s", name) < 0) {
		ours = NULL;
		return -ENOMEM;
	}
	if (statx(AT_FDCWD, theirs, AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &a) < 0)
		return -errno;
	if (statx(AT_FDCWD, ours, AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &b) < 0)
		return -errno;
	return a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major &&
	       a.stx_dev_minor == b.stx_dev_minor && a.stx_mnt_id == b.stx_mnt_id;
}

static int read_both(pid_t pid, const char *name, char **ret_theirs, char **ret_ours)
{
	int r = proc_read(pid, name, ret_theirs);

	return r < 0 ? r : proc_read(getpid(), name, ret_ours);
}

static int same_text(pid_t pid, const char *name)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL;
	int r = read_both(pid, name, &theirs, &ours);

	return r < 0 ? r : streq(theirs, ours);
}

static int same_root(pid_t pid, const char *name)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL, *their_ids = NULL, *our_ids = NULL;
	int r = read_both(pid, name, &theirs, &ours);

	if (r >= 0)
		r = caller_place_roots(ours, &our_ids);
	if (r < 0)
		return r;
	r = caller_place_roots(theirs, &their_ids);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	return streq(their_ids, our_ids);
}

static int same_pid_depth(pid_t pid, const char *name)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL;
	int r = read_both(pid, name, &theirs, &ours);

	return r < 0 ? r : caller_place_pid_depth(theirs) == 1 && caller_place_pid_depth(ours) == 1;
}

static const Place links[] = {
	{ "ns/user", CAUSE_USER, same_object }, { "ns/pid", CAUSE_PID, same_object },
	{ "ns/mnt", CAUSE_MOUNT, same_object }, { "ns/net", CAUSE_NETWORK, same_object },
	{ "root", CAUSE_ROOT, same_object },
};

static const Place texts[] = {
	{ "uid_map", CAUSE_USER, same_text },
	{ "gid_map", CAUSE_USER, same_text },
	{ "projid_map", CAUSE_USER, same_text },
	{ "status", CAUSE_PID, same_pid_depth },
	{ "mountinfo", "the caller lives in another mount namespace or has another root directory",
	  same_root },
	{ "net/dev", CAUSE_NETWORK, same_object },
};

static int compare(const Place *places, size_t n, pid_t pid, const char **ret_cause)
{
	for (size_t i = 0; i < n; i++) {
		int r = places[i].same(pid, places[i].name);

		if (r <= 0) {
			*ret_cause = places[i].cause;
			return r == -ENOENT ? -ESRCH : r;
		}
	}
	return 1;
}

int caller_place_check(pid_t pid, const char **ret_cause)
{
	int r = compare(links, ELEMENTSOF(links), pid, ret_cause);

	return r == -EACCES || r == -EPERM ? compare(texts, ELEMENTSOF(texts), pid, ret_cause) : r;
}

int caller_place_roots(const char *mountinfo, char **ret_ids)
{
	_cleanup_free_ char *ids = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&ids, &size);

	if (!stream)
		return -ENOMEM;
	/* proc_pid_mountinfo(5): id, parent, device, root in the file system, mount point. */
	for (const char *line = mountinfo; *line; line = strchrnul(line, '\n'), line += *line == '\n') {
		unsigned long id;
		int end = 0;

		if (sscanf(line, "%lu %*u %*s %*s / %n", &id, &end) == 1 && end > 0 && line[end - 1] == ' ')
			fprintf(stream, " %lu", id);
	}
	if (fclose(stream) != 0)
		return -ENOMEM;
	if (size == 0)
		return -EBADMSG;
	*ret_ids = TAKE_PTR(ids);
	return 0;
}

size_t caller_place_pid_depth(const char *status)
{
	const char *at = strstr(status, "\nNSpid:");
	size_t n = 0;

	if (!at)
		return 0;
	at += strlen("\nNSpid:");
	while (*(at += strspn(at, " \t")) >= '0' && *at <= '9') {
		at += strspn(at, "0123456789");
		n++;
	}
	return n;
}
