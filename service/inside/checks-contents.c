/* SPDX-License-Identifier: MIT */

/* What private directories hold: in a jail that just began, what the plan has there and nothing else. */

#include "base/paths.h"
#include "service/inside/checks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "service/inside/measure.h"
#include "service/inside/mounts.h"

#define DEPTH_MAX 32u

typedef struct Walk {
	Battery *b;
	const Expectations *e;
	dev_t device;          /* of the private directory */
	const char *directory; /* where the walk is */
	unsigned depth;
} Walk;

static void walk_directory(const Walk *walk, const char *directory);

/* Is something of the plan at path, or below it? */
static bool is_planned(const Expectations *e, const char *path)
{
	for (size_t i = 0; i < e->n_entries; i++)
		if (e->entries[i].kind != ENTRY_DESCRIPTOR && path_is_within(e->entries[i].path, path))
			return true;
	return false;
}

static const ExpectedEntry *entry_at(const Expectations *e, const char *path)
{
	for (size_t i = e->n_entries; i > 0; i--)
		if (e->entries[i - 1].kind != ENTRY_DESCRIPTOR && streq(e->entries[i - 1].path, path))
			return &e->entries[i - 1];
	return NULL;
}

static const char *type_name(mode_t mode)
{
	return S_ISSOCK(mode)   ? "the socket"
	       : S_ISFIFO(mode) ? "the FIFO"
	       : S_ISDIR(mode)  ? "the directory"
	       : S_ISLNK(mode)  ? "the link"
				: "the file";
}

static int walk_name(void *userdata, const char *name)
{
	const Walk *walk = userdata;
	_cleanup_free_ char *path = battery_path(walk->b, walk->directory, name);
	const ExpectedEntry *entry;
	struct stat st;

	if (!path)
		return -ENOMEM;
	if (lstat(path, &st) < 0)
		/* It went since it was listed. */
		return errno == ENOENT ? 0 : -errno;
	if (!is_planned(walk->e, path)) {
		/* What lies in the private directory itself came after it was made: in a session that runs,
		 * the agent made it. */
		if (!walk->e->joined || st.st_dev != walk->device)
			battery_fail(walk->b, "%s %s is in sight, which the plan does not have",
				     type_name(st.st_mode), path);
		return 0;
	}
	/* A directory on the way to what is planned, or one that the plan makes there, such as a home; what
	 * is itself a mount is judged as that. */
	entry = entry_at(walk->e, path);
	if (S_ISDIR(st.st_mode) && st.st_dev == walk->device && (!entry || entry->kind == ENTRY_DIRECTORY))
		walk_directory(walk, path);
	return 0;
}

static void walk_directory(const Walk *walk, const char *directory)
{
	Walk below = *walk;
	int r;

	below.directory = directory;
	below.depth++;
	r = below.depth > DEPTH_MAX ? -ELOOP : measure_list(directory, walk_name, &below);
	/* In a session that runs, the agent may have made and closed it. */
	if (r < 0 && (!walk->e->joined || measure_is_starved(-r)))
		battery_fail(walk->b, "%s cannot be listed: %s", directory, strerror(-r));
}

static void walk_entry(Battery *b, const Expectations *e, const ExpectedEntry *entry)
{
	Walk walk = { .b = b, .e = e };
	struct stat st;

	/* Told of by the entry's own judgement. */
	if (lstat(entry->path, &st) < 0)
		return;
	walk.device = st.st_dev;
	walk_directory(&walk, entry->path);
}

void check_contents(Battery *b, const char *row)
{
	const Expectations *e = battery_expectations(b);

	for (size_t i = 0; e && i < e->n_entries; i++) {
		const ExpectedEntry *entry = &e->entries[i];

		if (entry->kind == ENTRY_TMPFS && streq(mounts_row(e, entry) ?: "", row) &&
		    expectations_covering(e, entry->path) == entry)
			walk_entry(b, e, entry);
	}
}
