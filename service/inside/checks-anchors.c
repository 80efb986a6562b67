/* SPDX-License-Identifier: MIT */

/*
 * What keeps a name in its place is a mount, and a mount holds in the mount namespaces that have it. So it is
 * tried from one that an agent would make: a user and a mount namespace of a child's, another root in it, the
 * jail's mounts taken down. There a directory that was opened before still leads to what the binds show, and
 * names that are held must be busy (rename(2), EBUSY). What can be renamed is renamed back at once.
 */

#include "service/inside/checks.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/inside/measure.h"
#include "service/inside/mounts.h"

#define TEXT_SIZE 1024u
#define AWAY ".claude-sandbox-verify"

typedef struct Anchors {
	Battery *b;
	const char *row;
	const Mounts *mounts;
	size_t n; /* that there are */
} Anchors;

/* Is it this row's to try? One whose mount is missing was told of already. */
static bool is_wanted(const Anchors *anchors, const ExpectedEntry *entry)
{
	const Expectations *e = battery_expectations(anchors->b);
	const char *row = mounts_row(e, entry);

	return entry->anchored && row && streq(row, anchors->row) &&
	       expectations_covering(e, entry->path) == entry && mounts_at(anchors->mounts, entry->path);
}

static int open_parent(const ExpectedEntry *entry)
{
	const char *slash = strrchr(entry->path, '/');
	_cleanup_free_ char *parent =
		strndup(entry->path, slash == entry->path ? 1 : (size_t)(slash - entry->path));

	return parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* Return: 0; a negative errno. */
static int leave(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	/* A change of credentials may have set it anew (prctl(2)). */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -errno;
	return 0;
}

/* What refuses to let it go: its mount, or that the agent may not write there. Another answer says nothing:
 * an agent beside us may have put something at the other name. */
static bool is_held(int error)
{
	return error == EBUSY || error == EACCES || error == EPERM || error == EROFS;
}

/* Return: 1 when it could be moved; 0 when it is held; a negative errno when that was not seen. */
static int attempt_one(const ExpectedEntry *entry, int parent_fd, char *text, size_t size)
{
	const char *name = strrchr(entry->path, '/') + 1;
	size_t used = strlen(text);

	if (renameat(parent_fd, name, parent_fd, AWAY) < 0) {
		int error = errno;

		if (is_held(error))
			return 0;
		(void)snprintf(text, size, "%s: %s", entry->path, strerror(error));
		return -error;
	}
	(void)renameat(parent_fd, AWAY, parent_fd, name);
	if (used < size)
		(void)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", entry->path);
	return 1;
}

static int attempt_all(void *userdata, char *text, size_t size)
{
	const Anchors *anchors = userdata;
	const Expectations *e = battery_expectations(anchors->b);
	_cleanup_free_ int *fds = calloc(e->n_entries, sizeof(*fds));
	int moved = 0, r;

	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < e->n_entries; i++) {
		fds[i] = is_wanted(anchors, &e->entries[i]) ? open_parent(&e->entries[i]) : FD_NONE;
		/* Where the agent may not even look, it renames nothing. */
		if (fds[i] == -1 && errno != EACCES)
			return -errno;
	}
	r = leave();
	/* Where no such namespace can be had, no agent has one either; but for the number of them, which it
	 * may have used up. */
	if (r < 0)
		return measure_is_starved(-r) || r == -ENOSPC || r == -EUSERS ? r : 0;
	for (size_t i = 0; i < e->n_entries; i++) {
		r = fds[i] >= 0 ? attempt_one(&e->entries[i], fds[i], text, size) : 0;
		if (r < 0)
			return r;
		moved += r;
	}
	return moved;
}

void check_anchors(Battery *b, const char *row)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_(mounts_done) Mounts mounts = { 0 };
	Anchors anchors = { .b = b, .row = row, .mounts = &mounts };
	char text[TEXT_SIZE];
	int r;

	if (!e || e->forbid_namespaces)
		return;
	r = mounts_read(&mounts);
	if (r < 0) {
		battery_fail(b, "the table of mounts cannot be read: %s", strerror(-r));
		return;
	}
	for (size_t i = 0; i < e->n_entries; i++)
		anchors.n += is_wanted(&anchors, &e->entries[i]);
	if (anchors.n == 0)
		return;
	r = attempt_run(attempt_all, &anchors, ATTEMPT_MSEC, text, sizeof(text));
	if (r > 0)
		battery_fail(b, "in a mount namespace of an agent's own these can be moved away: %s", text);
	else if (r == -ENOSPC || r == -EUSERS)
		battery_note(b,
			     "what holds in other mount namespaces could not be tried: no more of them can "
			     "be had");
	else if (r < 0)
		battery_fail(b, "what holds in other mount namespaces could not be tried: %s",
			     *text ? text : strerror(-r));
}
