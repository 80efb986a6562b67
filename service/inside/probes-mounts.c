/* SPDX-License-Identifier: MIT */

/*
 * Mounts: made writable, taken away, moved, or looked behind; in the jail's own namespace, where it takes a
 * right that nobody has, and in a copy, where every mount of the jail is locked (mount_namespaces(7)). In the
 * jail's own, only calls are made that change nothing.
 */

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-mounts.h"
#include "service/inside/probe-tables.h"

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x200u
#endif
#define ATTRIBUTES (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* Many answers that are the same are one. */
typedef struct Tally {
	unsigned n;
	int error; /* of the last refusal */
} Tally;

static void tally(Probing *p, Tally *tally, long result, const char *what, const char *path)
{
	int error = errno;

	if (result >= 0) {
		probing_escaped(p, "%s %s succeeded", what, path);
	} else if (probing_is_starved(error)) {
		probing_unclear(p, "%s %s: %s", what, path, probing_error(error));
	} else {
		tally->n++;
		tally->error = error;
	}
}

static void tally_end(Probing *p, const Tally *tally, const char *what)
{
	if (tally->n > 0)
		probing_blocked(p, "%s %u mounts: %s", what, tally->n, probing_error(tally->error));
}

static long make_writable(const Mount *mount_point)
{
	return mount(NULL, mount_point->place, NULL, MS_REMOUNT | MS_BIND | (mount_point->flags & ~MS_RDONLY),
		     NULL);
}

static void remount_in_copy(Probing *p, void *userdata)
{
	const Mounts *mounts = userdata;
	Tally one = { 0 }, all = { 0 };

	if (!probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED))
		return;
	for (size_t i = 0; i < mounts->n; i++) {
		const Mount *m = &mounts->rows[i];

		if (!(m->flags & MS_RDONLY))
			continue;
		tally(p, &one, make_writable(m), "in a copy, remounting", m->place);
		tally(p, &all, mount(NULL, m->place, NULL, MS_REMOUNT, NULL),
		      "in a copy, remounting the file system of", m->place);
	}
	/* At another place it is another mount, with the same locks. */
	if (mount("/", "/tmp", NULL, MS_BIND | MS_REC, NULL) < 0)
		probing_refused(p, errno, "in a copy, the root at another place");
	else
		tally(p, &one, mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL),
		      "in a copy, remounting", "the root at another place");
	tally_end(p, &one, "in a copy, remounting");
	tally_end(p, &all, "in a copy, remounting the file systems of");
}

static void attempt_remount(Probing *p)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };
	Tally tried = { 0 };

	if (!probing_mounts(p, &mounts))
		return;
	for (size_t i = 0; i < mounts.n; i++) {
		const Mount *m = &mounts.rows[i];
		long r;

		if (!(m->flags & MS_RDONLY))
			continue;
		r = make_writable(m);
		if (r == 0)
			(void)mount(NULL, m->place, NULL, MS_REMOUNT | MS_BIND | m->flags, NULL);
		tally(p, &tried, r, "remounting", m->place);
	}
	tally_end(p, &tried, "remounting");
	if (tried.n == 0 && probing_outcome(p) == PROBE_INCONCLUSIVE)
		probing_escaped(p, "no mount is read-only");
	probing_apart(p, remount_in_copy, &mounts);
}

static long set_attributes(int fd, const char *path, unsigned flags)
{
	struct mount_attr attributes = { .attr_clr = ATTRIBUTES };

	return syscall(SYS_mount_setattr, fd, path, flags, &attributes, sizeof(attributes));
}

static void attributes_in_copy(Probing *p, void *userdata)
{
	const Mounts *mounts = userdata;
	Tally one = { 0 }, cloned = { 0 };

	if (!probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED))
		return;
	probing_result(p, set_attributes(AT_FDCWD, "/", AT_RECURSIVE), "in a copy, for all");
	for (size_t i = 0; i < mounts->n; i++) {
		const Mount *m = &mounts->rows[i];
		int tree;

		if (!(m->flags & MS_RDONLY))
			continue;
		tally(p, &one, set_attributes(AT_FDCWD, m->place, 0), "in a copy, mount_setattr of",
		      m->place);
		tree = (int)syscall(SYS_open_tree, AT_FDCWD, m->place,
				    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (tree < 0)
			continue;
		tally(p, &cloned, set_attributes(tree, "", AT_EMPTY_PATH),
		      "in a copy, mount_setattr of a clone of", m->place);
		(void)close(tree);
	}
	tally_end(p, &one, "in a copy, mount_setattr of");
	tally_end(p, &cloned, "in a copy, mount_setattr of clones of");
}

static void attempt_attributes(Probing *p)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };
	struct mount_attr some = { .attr_set = MOUNT_ATTR_RDONLY };

	if (!probing_mounts(p, &mounts))
		return;
	probing_rights(p, syscall(SYS_mount_setattr, AT_FDCWD, "/no-such-place", 0u, &some, sizeof(some)),
		       probing_refusals, "mount_setattr");
	probing_rights(p, syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
		       probing_refusals, "open_tree of a clone");
	probing_rights(p, syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), probing_refusals, "fsopen");
	probing_rights(p, syscall(SYS_fspick, AT_FDCWD, "/", FSPICK_CLOEXEC), probing_refusals, "fspick");
	probing_apart(p, attributes_in_copy, &mounts);
}

static void unmount_in_copy(Probing *p, void *userdata)
{
	const Mounts *mounts = userdata;
	Tally tried = { 0 };

	if (!probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED))
		return;
	/* The topmost first, as they would have to go. */
	for (size_t i = mounts->n; i-- > 0;)
		tally(p, &tried, umount2(mounts->rows[i].place, MNT_DETACH), "in a copy, unmounting",
		      mounts->rows[i].place);
	tally_end(p, &tried, "in a copy, unmounting");
}

static void attempt_unmount(Probing *p)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };
	Tally tried = { 0 };

	if (!probing_mounts(p, &mounts))
		return;
	for (size_t i = mounts.n; i-- > 0;) {
		const char *path = mounts.rows[i].place;
		long r = umount2(path, MNT_EXPIRE);

		/* The first time this only marks it (umount(2)), and says so to who may. */
		if (r < 0 && (errno == EAGAIN || errno == EBUSY))
			r = 0;
		tally(p, &tried, r, "unmounting", path);
	}
	tally_end(p, &tried, "unmounting");
	probing_apart(p, unmount_in_copy, &mounts);
}

static bool has_parent(const char *path, const char *parent)
{
	const char *rest = starts_with(path, parent);

	return rest && *rest && (*rest == '/' || streq(parent, "/"));
}

/* Directories that something is mounted in: what lies under it would show in a bind of the directory alone.
 */
static size_t parents(const Mounts *mounts, char **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < mounts->n && n < max; i++) {
		const char *path = mounts->rows[i].place, *slash = strrchr(path, '/');
		char *parent = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
		bool known = !parent || streq(path, "/");

		for (size_t j = 0; !known && j < n; j++)
			known = streq(ret[j], parent);
		if (known)
			free(parent);
		else
			ret[n++] = parent;
	}
	return n;
}

static void look_behind(Probing *p, void *userdata)
{
	const Mounts *mounts = userdata;
	Tally binds = { 0 }, trees = { 0 }, overlays = { 0 };
	bool has_overlays = probe_has_file_system("overlay");
	char *places[64];
	size_t n;

	if (!probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED))
		return;
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0) {
		probing_refused(p, errno, "in a copy, a private place");
		return;
	}
	n = parents(mounts, places, ELEMENTSOF(places));
	for (size_t i = 0; i < n; i++) {
		char options[4200];

		if (has_parent(places[i], "/tmp") || streq(places[i], "/tmp"))
			continue;
		tally(p, &binds, mount(places[i], "/tmp", NULL, MS_BIND, NULL),
		      "a bind without its mounts of", places[i]);
		tally(p, &trees,
		      syscall(SYS_open_tree, AT_FDCWD, places[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
		      "a clone without its mounts of", places[i]);
		if (!has_overlays)
			continue;
		(void)snprintf(options, sizeof(options), "lowerdir=%s:/tmp", places[i]);
		tally(p, &overlays, mount("overlay", "/tmp", "overlay", 0, options), "an overlay of",
		      places[i]);
	}
	tally_end(p, &binds, "in a copy, binds without their");
	tally_end(p, &trees, "in a copy, clones without their");
	tally_end(p, &overlays, "in a copy, overlays of places of");
	if (!has_overlays)
		probing_unclear(p, "overlays, which this kernel has not, or not loaded");
	for (size_t i = 0; i < n; i++)
		free(places[i]);
}

static void attempt_behind(Probing *p)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };

	if (!probing_mounts(p, &mounts))
		return;
	/* Looks for the right before it looks at the kind. */
	probing_rights(p, mount("/", "/", "no-such-kind", 0, NULL), probing_refusals, "a mount of any kind");
	probing_apart(p, look_behind, &mounts);
}

static void move_in_copy(Probing *p, void *userdata)
{
	const Mounts *mounts = userdata;
	Tally moved = { 0 }, beneath = { 0 };
	int tree;

	if (!probing_unshare(p, CLONE_NEWNS, PROBE_AS_SELF))
		return;
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0) {
		probing_refused(p, errno, "in a copy, a private place");
		return;
	}
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	(void)mkdir("/tmp/to", 0700);
	for (size_t i = mounts->n; i-- > 0;) {
		const char *path = mounts->rows[i].place;

		if (has_parent(path, "/tmp") || streq(path, "/tmp"))
			continue;
		tally(p, &moved, mount(path, "/tmp/to", NULL, MS_MOVE, NULL), "in a copy, moving", path);
		if (tree >= 0)
			tally(p, &beneath,
			      syscall(SYS_move_mount, tree, "", AT_FDCWD, path,
				      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_BENEATH),
			      "in a copy, putting something beneath", path);
	}
	tally_end(p, &moved, "in a copy, moving");
	tally_end(p, &beneath, "in a copy, putting something beneath");
}

static void attempt_move(Probing *p)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };

	if (!probing_mounts(p, &mounts))
		return;
	probing_rights(p, mount("/no-such-place", "/", NULL, MS_MOVE, NULL),
		       (const int[]){ EPERM, EACCES, ENOENT, 0 }, "moving a mount");
	probing_rights(p, syscall(SYS_pivot_root, "/no-such-place", "/no-such-place"), probing_refusals,
		       "pivot_root");
	probing_apart(p, move_in_copy, &mounts);
}

static void report_outside(Probing *p, int root_fd, const char *how)
{
	const char *seen = probing_sees_outside(p, root_fd);

	if (seen)
		probing_escaped(p, "%s: %s is in sight", how, seen);
	else
		probing_blocked(p, "%s: nothing of outside is in sight", how);
}

/* The old way out of a chroot: a directory that is held open lies above the new root (chroot(2)). */
static void climb_chroot(Probing *p, void *userdata)
{
	char place[PROBE_PLACE_MAX];
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	int r = probe_place_make(place);

	if (r < 0) {
		probing_unclear(p, "no private place: %s", probing_error(r));
		return;
	}
	if (!probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED)) {
		probe_place_remove(place);
		return;
	}
	if (chroot(place) < 0) {
		probing_refused(p, errno, "chroot in a namespace");
	} else if (fchdir(root_fd) == 0) {
		for (unsigned i = 0; i < 32; i++)
			if (chdir("..") < 0)
				break;
		report_outside(p, AT_FDCWD, "a chroot that was left");
		if (chroot(".") == 0)
			report_outside(p, AT_FDCWD, "the root above it");
		(void)!fchdir(root_fd);
		(void)!chroot(".");
	}
	probe_place_remove(place);
	(void)close(root_fd);
}

/* The mount under the jail's root, which every copy has and none may take the root off (umount(2)). */
static void dig_under_root(Probing *p, void *userdata)
{
	int r;

	if (!probing_unshare(p, CLONE_NEWNS, PROBE_AS_SELF))
		return;
	r = probe_leave_root();
	if (r < 0) {
		probing_refused(p, r, "a new root");
		return;
	}
	report_outside(p, AT_FDCWD, "a new root");
	for (unsigned i = 0; i < 8; i++) {
		(void)!chdir("..");
		(void)umount2(".", MNT_DETACH);
		(void)umount2("..", MNT_DETACH);
		(void)umount2("/", MNT_DETACH);
		(void)umount2("/..", MNT_DETACH);
	}
	(void)syscall(SYS_pivot_root, "/..", "/..");
	(void)!chroot("/..");
	report_outside(p, AT_FDCWD, "under the new root");
}

static void attempt_roots(Probing *p)
{
	/* The root that is ours already. */
	probing_result(p, chroot("/"), "chroot");
	report_outside(p, AT_FDCWD, "the root");
	probing_apart(p, climb_chroot, NULL);
	probing_apart(p, dig_under_root, NULL);
}

const Probe probes_mounts[] = {
	{ "p17", "what is read-only is not remounted", "the system, the agent and its guards, to write to",
	  attempt_remount },
	{ "p18", "the newer calls change no mount", "the same by mount_setattr, open_tree and fspick",
	  attempt_attributes },
	{ "p19", "masks are not unmounted", "what they hide", attempt_unmount },
	{ "p20", "binds, clones and overlays do not look behind masks", "what they hide, at another place",
	  attempt_behind },
	{ "p21", "mounts are not moved, and nothing goes beneath them",
	  "what they hide, or something else in its place", attempt_move },
	{ "p22", "the root directory is not left", "the machine's whole tree", attempt_roots },
};
const size_t probes_mounts_count = ELEMENTSOF(probes_mounts);
