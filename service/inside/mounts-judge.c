/* SPDX-License-Identifier: MIT */
#include "base/paths.h"
#include "service/inside/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "dbus/names.h"
#include "service/inside/measure.h"

#define FILE_MAX (1024u * 1024)

/* ---- one entry ---- */

typedef struct Judge {
	Battery *b;
	const Expectations *e;
	const Mounts *mounts;
	const Mounts *host;
} Judge;

static bool is_mounted(const ExpectedEntry *entry)
{
	return entry->kind == ENTRY_BIND || entry->kind == ENTRY_TMPFS || entry->kind == ENTRY_DEV ||
	       entry->kind == ENTRY_PROC || entry->kind == ENTRY_FILE;
}

static bool is_read_only(const ExpectedEntry *entry)
{
	switch (entry->kind) {
	case ENTRY_BIND:
		return entry->mode != ENTRY_RW;
	case ENTRY_PROC:
		return entry->mode == ENTRY_RO;
	case ENTRY_FILE:
		return true;
	default:
		return false;
	}
}

static size_t entries_at(const Expectations *e, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_entries; i++)
		n += is_mounted(&e->entries[i]) && streq(e->entries[i].path, path);
	return n;
}

static void judge_flags(const Judge *j, const ExpectedEntry *entry, const Mount *mount)
{
	if (is_read_only(entry) && !(mount->flags & MS_RDONLY))
		battery_fail(j->b, "%s may be written and has to be read-only", entry->path);
	/* In root's sessions all of /dev is kept from changes of mode (device-modes.h). */
	if (entry->device && j->e->uid == 0 && !(mount->flags & MS_RDONLY))
		battery_fail(j->b, "%s is root's and mounted read-write: its mode can be changed for all",
			     entry->path);
	if (!is_read_only(entry) && (mount->flags & MS_RDONLY) && !entry->device)
		battery_note(j->b, "%s is read-only here, as outside", entry->path);
	if (!(mount->flags & MS_NOSUID))
		battery_fail(j->b, "%s is mounted without nosuid", entry->path);
	if (!entry->device && !(mount->flags & MS_NODEV))
		battery_fail(j->b, "%s is mounted without nodev", entry->path);
}

static void judge_bind(const Judge *j, const ExpectedEntry *entry, const struct stat *st)
{
	const ObjectIdentity *object = &entry->object;

	if (!object->known) {
		battery_fail(j->b, "what %s is to show is not known", entry->path);
		return;
	}
	if (((st->st_mode ^ object->mode) & S_IFMT) != 0 || st->st_dev != object->device ||
	    st->st_ino != object->inode)
		battery_fail(j->b, "%s shows something else than %s of the machine", entry->path,
			     entry->source ?: entry->path);
	else if (entry->device && st->st_rdev != object->node)
		battery_fail(j->b, "%s is another device than it has to be", entry->path);
}

/* Has the machine this file system too? */
static bool is_of_the_machine(const Judge *j, const Mount *mount)
{
	for (size_t i = 0; i < j->host->n; i++)
		if (j->host->rows[i].major == mount->major && j->host->rows[i].minor == mount->minor)
			return true;
	return false;
}

static void judge_tmpfs(const Judge *j, const ExpectedEntry *entry, const Mount *mount, const struct stat *st)
{
	if (!streq(mount->type, "tmpfs") || !streq(mount->root, "/") || is_of_the_machine(j, mount)) {
		battery_fail(j->b, "%s is no private directory (%s)", entry->path, mount->type);
		return;
	}
	/* It belongs to the agent, who may change its mode while it runs. */
	if (!j->e->joined && (st->st_mode & 07777) != entry->permissions)
		battery_fail(j->b, "%s has mode %04o and not %04o", entry->path,
			     (unsigned)st->st_mode & 07777, (unsigned)entry->permissions);
	if (st->st_uid != j->e->uid)
		battery_fail(j->b, "%s belongs to another account", entry->path);
}

static void judge_file(const Judge *j, const ExpectedEntry *entry, const struct stat *st)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	if (!S_ISREG(st->st_mode)) {
		battery_fail(j->b, "%s is no file", entry->path);
		return;
	}
	if ((st->st_mode & 07777) != entry->permissions)
		battery_fail(j->b, "%s has mode %04o and not %04o", entry->path,
			     (unsigned)st->st_mode & 07777, (unsigned)entry->permissions);
	text = measure_text(entry->path, FILE_MAX, &size);
	if (!text)
		battery_fail(j->b, "%s cannot be read: %s", entry->path, strerror(errno));
	else if (size != entry->data_size || memcmp(text, entry->data, size) != 0) {
		/* The session follows the machine's list of name servers. */
		if (!j->e->joined || !streq(entry->origin, "network"))
			battery_fail(j->b, "%s %s", entry->path,
				     entry->data_size == 0 ? "is not empty: it shows what is to be hidden"
							   : "has another content than the session made");
	}
}

static void judge_what_is_there(const Judge *j, const ExpectedEntry *entry, const Mount *mount, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		battery_fail(j->b, "%s: %s", entry->path, strerror(errno));
		return;
	}
	judge_flags(j, entry, mount);
	switch (entry->kind) {
	case ENTRY_BIND:
		judge_bind(j, entry, &st);
		break;
	case ENTRY_DEV:
	case ENTRY_TMPFS:
		judge_tmpfs(j, entry, mount, &st);
		break;
	case ENTRY_FILE:
		judge_file(j, entry, &st);
		break;
	case ENTRY_PROC:
		if (!streq(mount->type, "proc") || is_of_the_machine(j, mount))
			battery_fail(j->b, "%s is not the jail's own (%s)", entry->path, mount->type);
		break;
	default:
		break;
	}
}

/* Was it there when the jail was made? The jail's marker was made with it. */
static bool is_older_than_jail(const char *path)
{
	struct statx there, marker;
	struct statx_timestamp made;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_CTIME, &there) < 0 ||
	    statx(AT_FDCWD, CS_MARKER_PATH, AT_SYMLINK_NOFOLLOW, STATX_CTIME, &marker) < 0)
		return true;
	made = there.stx_mask & STATX_BTIME ? there.stx_btime : there.stx_ctime;
	return made.tv_sec < marker.stx_ctime.tv_sec ||
	       (made.tv_sec == marker.stx_ctime.tv_sec && made.tv_nsec < marker.stx_ctime.tv_nsec);
}

/* A program that starts again puts a new socket in the place of the one that was covered. */
static void judge_uncovered(const Judge *j, const ExpectedEntry *entry)
{
	ObjectIdentity there = measure_object(entry->path);

	if (!there.known || (!S_ISSOCK(there.mode) && !S_ISFIFO(there.mode)))
		return;
	if (j->e->joined && !is_older_than_jail(entry->path))
		battery_note(j->b, "another program has made %s anew since the session began: it is in sight",
			     entry->path);
	else
		battery_fail(j->b, "the %s of another program at %s is not covered",
			     S_ISSOCK(there.mode) ? "socket" : "FIFO", entry->path);
}

/* What is mounted is what a path leads to: by the mount's number, not by the table of mounts alone. */
static void judge_mount(const Judge *j, const ExpectedEntry *entry)
{
	_cleanup_close_ int fd = FD_NONE;
	struct statx stx;
	const Mount *mount;

	if (mounts_count(j->mounts, entry->path) < entries_at(j->e, entry->path) && !entry->covers_listener) {
		battery_fail(j->b, "nothing is mounted at %s (%s): what the machine has there is in sight",
			     entry->path, entry->origin);
		return;
	}
	if (expectations_covering(j->e, entry->path) != entry)
		return;
	fd = open(entry->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		/* Another program's socket, which it took away itself. */
		if (errno != ENOENT || !entry->covers_listener)
			battery_fail(j->b, "%s: %s", entry->path, strerror(errno));
		return;
	}
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0 || !(stx.stx_mask & STATX_MNT_ID))
		mount = mounts_at(j->mounts, entry->path);
	else
		mount = mounts_by_id(j->mounts, stx.stx_mnt_id);
	if (!mount || !streq(mount->place, entry->path)) {
		if (entry->covers_listener) {
			judge_uncovered(j, entry);
			return;
		}
		battery_fail(j->b, "%s is not covered by what is mounted there (%s)", entry->path,
			     entry->origin);
		return;
	}
	judge_what_is_there(j, entry, mount, fd);
}

static void judge_link(const Judge *j, const ExpectedEntry *entry)
{
	_cleanup_free_ char *text = calloc(1, entry->data_size + 2);
	ssize_t n = text ? readlink(entry->path, text, entry->data_size + 1) : -1;

	/* The agent's own directory: it may remove and replace them. */
	if (j->e->joined || expectations_covering(j->e, entry->path) != entry)
		return;
	if (n < 0)
		battery_fail(j->b, "the link %s is missing: %s", entry->path, strerror(errno));
	else if ((size_t)n != entry->data_size || memcmp(text, entry->data, (size_t)n) != 0)
		battery_fail(j->b, "the link %s leads to %s and not to %s", entry->path, text,
			     (const char *)entry->data);
}

static void judge_directory(const Judge *j, const ExpectedEntry *entry)
{
	ObjectIdentity object = measure_object(entry->path);

	if (j->e->joined || expectations_covering(j->e, entry->path) != entry)
		return;
	if (!object.known || !S_ISDIR(object.mode) || (object.mode & 07777) != entry->permissions)
		battery_fail(j->b, "%s is not the empty directory that it has to be", entry->path);
}

static void judge_entry(const Judge *j, const ExpectedEntry *entry)
{
	if (entry->kind == ENTRY_LINK)
		judge_link(j, entry);
	else if (entry->kind == ENTRY_DIRECTORY)
		judge_directory(j, entry);
	else
		judge_mount(j, entry);
}

/* ---- for the checks ---- */

typedef struct Tables {
	Mounts mounts, host;
} Tables;

static void tables_done(Tables *tables)
{
	mounts_done(&tables->mounts);
	mounts_done(&tables->host);
}

static bool tables_read(Battery *b, Tables *ret)
{
	const Expectations *e = battery_expectations(b);
	int r;

	/* Of a jail that runs, what was read outside: no /proc of that jail is believed. */
	r = e->joined ? mounts_parse(e->jail_mounts ?: "", &ret->mounts) : mounts_read(&ret->mounts);
	/* Without it row 17 fails. */
	if (r == 0 && e->host_mounts)
		r = mounts_parse(e->host_mounts, &ret->host);
	if (r < 0)
		battery_fail(b, "the table of mounts cannot be read: %s", strerror(-r));
	return r == 0;
}

void mounts_judge(Battery *b, const char *row)
{
	_cleanup_(tables_done) Tables tables = { 0 };
	Judge j = { .b = b, .e = battery_expectations(b), .mounts = &tables.mounts, .host = &tables.host };
	size_t n = 0;

	if (!j.e || !tables_read(b, &tables))
		return;
	if (j.e->n_entries == 0)
		battery_fail(b, "the plan was not told");
	for (size_t i = 0; i < j.e->n_entries; i++) {
		const char *judged = mounts_row(j.e, &j.e->entries[i]);

		if (!judged || !streq(judged, row))
			continue;
		judge_entry(&j, &j.e->entries[i]);
		n++;
	}
	if (n > 0)
		battery_pass(b, "%zu %s of the plan", n, n == 1 ? "entry" : "entries");
}

/* Nodes that bwrap binds into its fresh /dev, and the terminals of its own. */
static bool is_of_dev(const char *place)
{
	static const char *const names[] = { "null", "zero", "full", "random", "urandom", "tty", "pts" };
	const char *name = starts_with(place, "/dev/");

	for (size_t i = 0; name && i < ELEMENTSOF(names); i++)
		if (streq(name, names[i]))
			return true;
	return false;
}

/* The same directory of that file system? A group's directory is told as the reader's namespace has it
 * (cgroup_namespaces(7)). */
static bool same_root(const Mount *host, const Mount *mount)
{
	return streq(host->root, mount->root) || starts_with(mount->type, "cgroup");
}

/* Is it a mount of the machine's below something that the plan shows? */
static bool came_along(const Judge *j, const Mount *mount)
{
	for (size_t i = 0; i < j->e->n_entries; i++) {
		const ExpectedEntry *entry = &j->e->entries[i];
		size_t n, n_below;
		const char *below;

		if (entry->kind != ENTRY_BIND || !entry->source || !path_is_within(mount->place, entry->path))
			continue;
		below = streq(entry->path, "/") ? mount->place : mount->place + strlen(entry->path);
		n = streq(entry->source, "/") ? 0 : strlen(entry->source);
		n_below = strlen(below);
		/* Thousands against thousands: numbers first. */
		for (size_t h = 0; h < j->host->n; h++) {
			const Mount *host = &j->host->rows[h];

			if (host->minor == mount->minor && host->major == mount->major &&
			    host->place_length == n + n_below && memcmp(host->place, entry->source, n) == 0 &&
			    memcmp(host->place + n, below, n_below) == 0 && same_root(host, mount))
				return true;
		}
	}
	return false;
}

/* bwrap leaves a mount that its caller may not enter as it is; nor may the agent. */
static bool is_out_of_reach(const char *place)
{
	return access(place, F_OK) < 0 && errno == EACCES;
}

/* By another one at the same place, such as what an automounter put over its own: nobody gets below. */
static bool is_covered(const Judge *j, const Mount *mount)
{
	for (size_t i = 0; i < j->mounts->n; i++) {
		const Mount *other = &j->mounts->rows[i];

		if (other->parent == mount->id && streq(other->place, mount->place))
			return true;
	}
	return false;
}

/* The mask of a file that its owner moved during the session went along with it: empty, and without a name. */
static bool shows_nothing(const Mount *mount)
{
	struct stat st;

	return (mount->flags & MS_RDONLY) && streq(mount->type, "tmpfs") && lstat(mount->place, &st) == 0 &&
	       S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 0;
}

/* While the jail is made what is written is a mount of its own (anchors.h): read-only, below the jail's root. */
static bool is_of_builder(const Judge *j, const Mount *mount)
{
	for (size_t i = 0; mount->flags & MS_RDONLY && i < j->e->n_entries; i++) {
		const ExpectedEntry *entry = &j->e->entries[i];

		if (entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && entry->source &&
		    streq(entry->source, mount->place))
			return true;
	}
	return false;
}

static void judge_other(const Judge *j, const Mount *mount)
{
	const ExpectedEntry *covering = expectations_covering(j->e, mount->place);

	if (is_of_dev(mount->place))
		return;
	if (covering && covering->kind == ENTRY_PROC && streq(mount->type, "proc")) {
		/* bwrap covers parts of a /proc that root could write. */
		if (!(mount->flags & MS_RDONLY))
			battery_fail(j->b, "%s is a second /proc that may be written", mount->place);
		return;
	}
	if (is_of_builder(j, mount) || (j->e->joined && shows_nothing(mount)))
		return;
	if (j->e->host_mounts && !came_along(j, mount)) {
		battery_fail(j->b, "%s is mounted (%s), which the plan does not have", mount->place,
			     mount->type);
		return;
	}
	/* Where something of ours covers it, it cannot be reached. */
	if (!covering || covering->kind != ENTRY_BIND || is_covered(j, mount))
		return;
	if (((mount->flags & MS_NOSUID) && (mount->flags & MS_NODEV) &&
	     ((mount->flags & MS_RDONLY) || !is_read_only(covering))) ||
	    is_out_of_reach(mount->place))
		return;
	if (is_read_only(covering) && !(mount->flags & MS_RDONLY))
		battery_fail(j->b, "%s, which lies in %s, may be written", mount->place, covering->path);
	if (!(mount->flags & MS_NOSUID) || !(mount->flags & MS_NODEV))
		battery_fail(j->b, "%s is mounted without nosuid or nodev", mount->place);
}

void mounts_judge_others(Battery *b)
{
	_cleanup_(tables_done) Tables tables = { 0 };
	Judge j = { .b = b, .e = battery_expectations(b), .mounts = &tables.mounts, .host = &tables.host };

	if (!j.e || !tables_read(b, &tables))
		return;
	for (size_t i = 0; i < tables.mounts.n; i++)
		if (entries_at(j.e, tables.mounts.rows[i].place) == 0)
			judge_other(&j, &tables.mounts.rows[i]);
	if (j.e->host_mounts)
		battery_pass(b, "%zu mounts, none beside the plan", tables.mounts.n);
	else
		battery_fail(b, "which of the mounts are the machine's was not told");
}
