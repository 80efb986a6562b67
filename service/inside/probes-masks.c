/* SPDX-License-Identifier: MIT */

/* What masks and other mounts lie on: moved away, replaced, copied, or opened in another way. */

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-mounts.h"
#include "service/inside/probe-tables.h"

#define AWAY ".moved-by-a-probe"

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static void judge_mask(Probing *p, const ExpectedEntry *entry, unsigned *hidden)
{
	struct statfs fs;
	struct stat st;

	if (lstat(entry->path, &st) < 0) {
		/* A mask in a place that is hidden itself. */
		(*hidden)++;
		return;
	}
	switch (entry->kind) {
	case ENTRY_TMPFS:
		if (statfs(entry->path, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
			probing_escaped(p, "%s is no private directory", entry->path);
		else
			(*hidden)++;
		break;
	case ENTRY_FILE:
		if (!S_ISREG(st.st_mode) || (size_t)st.st_size != entry->data_size)
			probing_escaped(p, "%s is not the file that covers it", entry->path);
		else
			(*hidden)++;
		break;
	default:
		if (!is_null_device(&st) && !(entry->object.known && entry->object.inode == st.st_ino &&
					      entry->object.device == st.st_dev))
			probing_escaped(p, "%s is not /dev/null", entry->path);
		else
			(*hidden)++;
	}
}

static void attempt_see(Probing *p)
{
	const Expectations *e = p->expectations;
	unsigned hidden = 0;

	for (size_t i = 0; e && i < e->n_entries; i++)
		if (e->entries[i].mode == ENTRY_MASKED &&
		    probing_covering(p, e->entries[i].path) == &e->entries[i])
			judge_mask(p, &e->entries[i], &hidden);
	if (hidden > 0)
		probing_blocked(p, "%u masked places show what covers them", hidden);
	else if (probing_outcome(p) != PROBE_ESCAPED)
		probing_unclear(p, "nobody said what is masked");
}

/* The directory of each mount, held open as an agent could hold it, and the mount's name in it. */
typedef struct Names {
	Mounts mounts;
	int *directories;
	const char *how;
} Names;

static void names_done(Names *names)
{
	for (size_t i = 0; names->directories && i < names->mounts.n; i++)
		close_fdp(&names->directories[i]);
	free(names->directories);
	mounts_done(&names->mounts);
}

/* In a private directory nothing of the person's can be replaced. */
static bool is_of_the_machine(const Probing *p, const char *directory)
{
	const ExpectedEntry *entry = probing_covering(p, directory);
	struct statfs fs;

	if (entry)
		return entry->kind == ENTRY_BIND;
	return statfs(directory, &fs) == 0 && fs.f_type != TMPFS_MAGIC;
}

static bool names_read(Probing *p, Names *names)
{
	if (!probing_mounts(p, &names->mounts))
		return false;
	names->directories = malloc(names->mounts.n * sizeof(int) + 1);
	if (!names->directories) {
		probing_unclear(p, "no memory");
		return false;
	}
	for (size_t i = 0; i < names->mounts.n; i++) {
		_cleanup_free_ char *parent = strdup(names->mounts.rows[i].place);
		char *slash = parent ? strrchr(parent, '/') : NULL;

		names->directories[i] = FD_NONE;
		if (!slash || !slash[1])
			continue;
		slash[slash == parent] = '\0';
		if (!is_of_the_machine(p, parent))
			continue;
		names->directories[i] = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (names->directories[i] < 0)
			probing_unclear(p, "%s: %s", parent, probing_error(errno));
	}
	return true;
}

/* Where a mount holds the name the answer is EBUSY; what may not be renamed anyway says so first. */
static void rename_all(Probing *p, const Names *names)
{
	unsigned held = 0, other = 0;

	for (size_t i = 0; i < names->mounts.n; i++) {
		const char *name = strrchr(names->mounts.rows[i].place, '/') + 1;
		int fd = names->directories[i];

		if (fd < 0 || !*name)
			continue;
		if (syscall(SYS_renameat2, fd, name, fd, AWAY, RENAME_NOREPLACE) == 0) {
			(void)syscall(SYS_renameat2, fd, AWAY, fd, name, RENAME_NOREPLACE);
			probing_escaped(p, "%s: %s could be moved away", names->how,
					names->mounts.rows[i].place);
		} else if (errno == EBUSY) {
			held++;
		} else if (errno == EROFS || errno == EACCES || errno == EPERM || errno == ENOENT) {
			other++;
		} else {
			/* An agent beside us may have made the other name. */
			probing_unclear(p, "%s: %s", names->mounts.rows[i].place, probing_error(errno));
		}
	}
	if (held + other > 0)
		probing_blocked(p, "%s: %u names are held by their mounts, %u cannot be changed anyway",
				names->how, held, other);
}

static void rename_in_copy(Probing *p, void *userdata)
{
	Names *names = userdata;

	names->how = "in a copy";
	if (probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED))
		rename_all(p, names);
}

static void rename_after_pivot(Probing *p, void *userdata)
{
	Names *names = userdata;
	int r;

	names->how = "with all mounts taken away";
	if (!probing_unshare(p, CLONE_NEWNS, PROBE_AS_SELF))
		return;
	r = probe_leave_root();
	if (r < 0)
		probing_refused(p, r, "a new root");
	else
		rename_all(p, names);
}

static void attempt_rename(Probing *p)
{
	_cleanup_(names_done) Names names = { .how = "in the jail" };

	if (!names_read(p, &names))
		return;
	rename_all(p, &names);
	probing_apart(p, rename_in_copy, &names);
	probing_apart(p, rename_after_pivot, &names);
}

/* An overlay copies a set-id file up with its bits, without a call that any filter sees. */
static void copy_up(Probing *p, void *userdata)
{
	static const char *const names[] = { "su", "mount", "passwd", "umount", "sudo", "newgrp" };
	char place[PROBE_PLACE_MAX], options[160];
	unsigned tried = 0;

	if (!probe_has_file_system("overlay")) {
		probing_unclear(p, "this kernel has no overlays, or has not loaded them");
		return;
	}
	if (!probing_unshare(p, CLONE_NEWNS, PROBE_AS_ROOT))
		return;
	/* Private and gone with this process. */
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || probe_place_make(place) < 0 || chdir(place) < 0 ||
	    mkdir("upper", 0700) < 0 || mkdir("work", 0700) < 0 || mkdir("seen", 0700) < 0) {
		probing_refused(p, errno, "a private place in a namespace");
		return;
	}
	(void)snprintf(options, sizeof(options),
		       "lowerdir=/usr/bin,upperdir=%s/upper,workdir=%s/work,userxattr", place, place);
	if (mount("overlay", "seen", "overlay", 0, options) < 0) {
		probing_refused(p, errno, "an overlay");
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		char path[64];
		struct stat st;
		int fd;

		(void)snprintf(path, sizeof(path), "seen/%s", names[i]);
		if (stat(path, &st) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
			continue;
		tried++;
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		if (fd < 0)
			probing_refused(p, errno, "%s", names[i]);
		(void)close_fd(fd);
		(void)snprintf(path, sizeof(path), "upper/%s", names[i]);
		if (lstat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
			probing_escaped(p, "a copy of %s has its set-id bits", names[i]);
	}
	if (tried == 0)
		probing_unclear(p, "there is no set-id program to copy");
}

static void attempt_overlay(Probing *p)
{
	probing_apart(p, copy_up, NULL);
}

static void open_handle(Probing *p, const char *how)
{
	static const char *const places[] = { "/", "/usr", "/etc", "/tmp" };

	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		union {
			struct file_handle handle;
			char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
		} room = { .handle.handle_bytes = MAX_HANDLE_SZ };
		int directory_fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC), id, fd;

		if (directory_fd < 0 || name_to_handle_at(AT_FDCWD, places[i], &room.handle, &id, 0) < 0) {
			probing_unclear(p, "%s has no handle", places[i]);
		} else {
			fd = open_by_handle_at(directory_fd, &room.handle, O_RDONLY | O_CLOEXEC);
			probing_result(p, fd, "%s, of %s", how, places[i]);
			(void)close_fd(fd);
		}
		(void)close_fd(directory_fd);
	}
}

static void handle_in_copy(Probing *p, void *userdata)
{
	if (probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED))
		open_handle(p, "in a copy");
}

static void attempt_handles(Probing *p)
{
	open_handle(p, "in the jail");
	probing_apart(p, handle_in_copy, NULL);
}

/* A watch on a mount or a file system tells of every program's files, also those that are hidden here. */
static void attempt_fanotify(Probing *p)
{
	static const struct {
		const char *name;
		unsigned flags;
	} kinds[] = { { "a mount", FAN_MARK_MOUNT }, { "a file system", FAN_MARK_FILESYSTEM } };
	_cleanup_close_ int fd = FD_NONE;
	int plain = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);

	probing_result(p, plain, "a group that decides on accesses");
	(void)close_fd(plain);
	plain = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY);
	probing_result(p, plain, "a group that opens what it tells of");
	(void)close_fd(plain);
	fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_REPORT_FID, O_RDONLY);
	if (fd < 0) {
		probing_refused(p, errno, "any group");
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		probing_result(p, fanotify_mark(fd, FAN_MARK_ADD | kinds[i].flags, FAN_OPEN, AT_FDCWD, "/"),
			       "watching %s", kinds[i].name);
}

const Probe probes_masks[] = {
	{ "p23", "masked places show what covers them", "keys, tokens and other projects", attempt_see },
	{ "p24", "what a mount lies on stays in its place",
	  "something of the agent's in its place, for the next launch or the person's shell",
	  attempt_rename },
	{ "p25", "an overlay copies no set-id file up", "a program with root's rights for everybody outside",
	  attempt_overlay },
	{ "p26", "files do not open by their handles", "every file of a disk, whatever is mounted over it",
	  attempt_handles },
	{ "p27", "no watch on whole file systems", "the names of all files that anybody opens",
	  attempt_fanotify },
};
const size_t probes_masks_count = ELEMENTSOF(probes_masks);
