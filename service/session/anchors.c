/* SPDX-License-Identifier: MIT */
#include "service/session/anchors.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/paths.h"
#include "service/plan/mount-list.h"

/*
 * The text is NUL-separated: for each read-write bind its number, source, destination, then the places below the
 * destination, each after a mark, then an empty string. It goes from a process to its own fork.
 */
#define MARK_THERE '='  /* must be there */
#define MARK_MAYBE '?'  /* another program's, which may have taken it away */
#define BASE "/tmp"     /* until it is under the root; where bwrap begins as well */
#define OLD_ROOT "root" /* in the base */

/* ---- the session's side ---- */

static bool is_mounted(const Entry *entry)
{
	switch (entry->kind) {
	case ENTRY_BIND:
	case ENTRY_TMPFS:
	case ENTRY_DEV:
	case ENTRY_PROC:
	case ENTRY_FILE:
		return true;
	default:
		return false;
	}
}

/* Does entry lie on something that the agent could rename, but for this mount, by what bind shows? */
static bool lies_on(const Plan *plan, const Entry *entry, const Entry *bind)
{
	return is_mounted(entry) && plan_under(plan, entry) == bind;
}

static int bind_write(const Plan *plan, const Entry *bind, int place, FILE *stream)
{
	size_t n = strlen(bind->destination);

	(void)fprintf(stream, "%d%c%s%c%s%c", place, 0, bind->source, 0, bind->destination, 0);
	for (size_t i = 0; i < plan->n_entries; i++) {
		const Entry *entry = &plan->entries[i];

		if (!lies_on(plan, entry, bind))
			continue;
		(void)fprintf(stream, "%c%s%c", entry->covers_listener ? MARK_MAYBE : MARK_THERE,
			      entry->destination + (n == 1 ? 1 : n + 1), 0);
	}
	(void)fputc(0, stream);
	return ferror(stream) ? -ENOMEM : 0;
}

int anchors_list(const Plan *plan, const BwrapArguments *arguments, int first_place, char **ret_text,
		 size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int r = stream ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < arguments->n_fds; i++) {
		const Entry *entry = arguments->entries[i];

		if (entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && entry->source_fd >= 0)
			r = bind_write(plan, entry, first_place + (int)i, stream);
	}
	if (stream && fclose(stream) != 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret_text = size > 0 ? TAKE_PTR(text) : NULL;
	*ret_size = size;
	return 0;
}

/* ---- the holder's side ---- */

typedef struct Reader {
	const char *at, *end;
} Reader;

/* Return: the next string, or NULL at the end. */
static const char *next(Reader *reader)
{
	const char *text = reader->at, *stop = memchr(text, 0, (size_t)(reader->end - text));

	if (!stop)
		return NULL;
	reader->at = stop + 1;
	return text;
}

typedef struct Bind {
	const char *destination;
	Reader places; /* the first string of them is next */
	int fd;        /* in this mount namespace */
	const char *source;
	int tree_fd; /* the same, writable; FD_NONE where another one has it in it */
} Bind;

typedef struct Binds {
	Bind *binds;
	size_t n;
} Binds;

static void binds_done(Binds *binds)
{
	for (size_t i = 0; i < binds->n; i++)
		close_fdp(&binds->binds[i].fd);
	for (size_t i = 0; i < binds->n; i++)
		close_fdp(&binds->binds[i].tree_fd);
	free(binds->binds);
}

/* The path of what is held, for mount(2). */
typedef struct HeldPath {
	char text[32];
} HeldPath;

static HeldPath held_path(int fd)
{
	HeldPath path;

	(void)snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
	return path;
}

static int open_plain(int directory_fd, const char *path, uint64_t resolve)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS | resolve };
	int fd = (int)syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int bind_open(Bind *bind, const char *source, int held_fd)
{
	struct stat held, there;

	bind->fd = open_plain(AT_FDCWD, source, 0);
	if (bind->fd < 0)
		return bind->fd;
	if (fstat(held_fd, &held) < 0 || fstat(bind->fd, &there) < 0)
		return -errno;
	return held.st_dev == there.st_dev && held.st_ino == there.st_ino ? 0 : -ESTALE;
}

static int cannot_hold(const char *destination, const char *slash, const char *place, int r,
		       char **ret_problem)
{
	return refuse(ret_problem, r, "%s%s%s cannot be kept in its place: %s", destination, slash, place,
		      r == -ESTALE ? "something else is there now" : strerror(-r));
}

static int binds_read(Binds *binds, Reader reader, const int *fds, size_t n_fds, char **ret_problem)
{
	const char *number, *source, *destination, *place;
	int r;

	while ((number = next(&reader)) && (source = next(&reader)) && (destination = next(&reader))) {
		unsigned long index = strtoul(number, NULL, 10);
		Bind *grown = reallocarray(binds->binds, binds->n + 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		binds->binds = grown;
		grown[binds->n] = (Bind){ .destination = destination,
					  .places = reader,
					  .fd = FD_NONE,
					  .source = source,
					  .tree_fd = FD_NONE };
		r = index < n_fds ? bind_open(&grown[binds->n++], source, fds[index]) : -EBADF;
		if (r < 0)
			return cannot_hold(destination, "", "", r, ret_problem);
		while ((place = next(&reader)) && *place)
			;
	}
	return 0;
}

/* What host mounts lie below goes along: locked together, they cannot be mounted one without the other. */
static int mount_held(int from_fd, int to_fd)
{
	return mount(held_path(from_fd).text, held_path(to_fd).text, NULL, MS_BIND | MS_REC, NULL) < 0
		       ? -errno
		       : 0;
}

/* ---- what bwrap may write ---- */

static bool lies_in_another(const Binds *binds, const Bind *bind)
{
	for (size_t i = 0; i < binds->n; i++) {
		const Bind *other = &binds->binds[i];

		if (path_is_within(bind->source, other->source) &&
		    (!streq(bind->source, other->source) || other < bind))
			return true;
	}
	return false;
}

/* Every mount is read-only from now on, but for /proc: a new one could not be writable then. */
static int mounts_lock(void)
{
	struct mount_attr lock = { .attr_set = MOUNT_ATTR_RDONLY },
			  unlock = { .attr_clr = MOUNT_ATTR_RDONLY };
	struct statvfs proc;

	if (statvfs("/proc", &proc) < 0 ||
	    syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &lock, sizeof(lock)) < 0)
		return -errno;
	if (!(proc.f_flag & ST_RDONLY) &&
	    syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &unlock, sizeof(unlock)) < 0)
		return -errno;
	return 0;
}

static int binds_only_write(Binds *binds, char **ret_problem)
{
	int r = 0;

	for (size_t i = 0; i < binds->n; i++) {
		Bind *bind = &binds->binds[i];

		if (lies_in_another(binds, bind))
			continue;
		bind->tree_fd = (int)syscall(SYS_open_tree, bind->fd, "",
					     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
						     (unsigned)AT_EMPTY_PATH);
		if (bind->tree_fd < 0) {
			r = -errno;
			bind->tree_fd = FD_NONE;
			return cannot_hold(bind->destination, "", "", r, ret_problem);
		}
	}
	r = mounts_lock();
	if (r < 0)
		return refuse(ret_problem, r, "the jail's builder cannot be kept from writing elsewhere: %s",
			      r == -ENOSYS ? "that takes a kernel from 5.12 on" : strerror(-r));
	for (size_t i = 0; i < binds->n; i++) {
		const Bind *bind = &binds->binds[i];

		if (bind->tree_fd >= 0 && syscall(SYS_move_mount, bind->tree_fd, "", bind->fd, "",
						  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
			return cannot_hold(bind->destination, "", "", -errno, ret_problem);
	}
	return 0;
}

/* ---- the anchors ---- */

static int place_anchor(int tree_fd, const char *place)
{
	_cleanup_close_ int fd = open_plain(tree_fd, place + 1, RESOLVE_BENEATH);
	struct stat st;
	int r = fd;

	if (fd < 0) {
		fd = FD_NONE;
		return r == -ENOENT && place[0] == MARK_MAYBE ? 0 : r;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	/* The plan has no links in its places, and a mount would go to what it leads to. */
	return S_ISLNK(st.st_mode) ? -ELOOP : mount_held(fd, fd);
}

static int bind_anchor(const Bind *bind, int base_fd, size_t number, char **ret_problem)
{
	_cleanup_close_ int point_fd = FD_NONE, tree_fd = FD_NONE;
	Reader places = bind->places;
	const char *place;
	char name[24];
	int r = 0;

	if (!*places.at)
		return 0;
	(void)snprintf(name, sizeof(name), "%zu", number);
	if (mkdirat(base_fd, name, 0700) < 0)
		r = -errno;
	if (r == 0) {
		point_fd = openat(base_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = point_fd < 0 ? -errno : mount_held(bind->fd, point_fd);
	}
	if (r == 0) {
		tree_fd = openat(base_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = tree_fd < 0 ? -errno : 0;
	}
	if (r < 0)
		return cannot_hold(bind->destination, "", "", r, ret_problem);
	while ((place = next(&places)) && *place) {
		r = place_anchor(tree_fd, place);
		if (r < 0)
			return cannot_hold(bind->destination, "/", place + 1, r, ret_problem);
	}
	return 0;
}

/* The base becomes the root, then the old root is moved over the base's own root, and is the root again. */
static int go_under(int base_fd, int root_fd)
{
	if (fchdir(base_fd) < 0 || mkdirat(base_fd, OLD_ROOT, 0700) < 0 ||
	    syscall(SYS_pivot_root, ".", OLD_ROOT) < 0 || mount(OLD_ROOT, ".", NULL, MS_MOVE, NULL) < 0 ||
	    fchdir(root_fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

int anchors_make(const char *text, size_t size, const int *fds, size_t n_fds, char **ret_problem)
{
	_cleanup_close_ int root_fd = FD_NONE, base_fd = FD_NONE;
	_cleanup_(binds_done) Binds binds = { .n = 0 };
	int r;

	/* What is unmounted on the host goes here too, as in bwrap; nothing goes the other way. */
	r = unshare(CLONE_NEWNS) < 0 ? -errno : 0;
	if (r == -ENOSPC)
		return refuse(
			ret_problem, r,
			"no further mount namespace may be made (the user's limit is reached); end other "
			"sessions or raise user.max_mnt_namespaces");
	if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		r = -errno;
	if (r < 0)
		return refuse(ret_problem, r, "no mount namespace can be made: %s", strerror(-r));
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return refuse(ret_problem, -errno, "/ cannot be opened: %s", strerror(errno));
	/* Before the base hides those that lie where it is mounted at first. */
	r = binds_read(&binds, (Reader){ .at = text, .end = text + size }, fds, n_fds, ret_problem);
	if (r < 0)
		return r;
	r = binds_only_write(&binds, ret_problem);
	if (r < 0)
		return r;
	if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0 ||
	    (base_fd = open(BASE, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return refuse(ret_problem, -errno, "nothing can be mounted in a user namespace (%s): %s",
			      BASE, strerror(errno));
	for (size_t i = 0; r == 0 && i < binds.n; i++)
		r = bind_anchor(&binds.binds[i], base_fd, i, ret_problem);
	if (r < 0)
		return r;
	r = go_under(base_fd, root_fd);
	return r < 0 ? refuse(ret_problem, r, "the root cannot be moved: %s", strerror(-r)) : 0;
}
