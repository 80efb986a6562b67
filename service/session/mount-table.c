/* SPDX-License-Identifier: MIT */
#include "service/session/mount-table.h"

#include "base/paths.h"
#include "dbus/octal.h"

#define MOUNTS_MAX 100000u /* as the kernel by itself: fs.mount-max, proc_sys_fs(5) */
#define LINE_FIELDS 5u     /* id, parent, major:minor, root, mount point */

typedef struct MountRow {
	const char *device; /* major:minor: mounts of one file system have the same */
	const char *root;   /* what of it is mounted */
	const char *place;  /* where */
} MountRow;

struct MountTable {
	char *text;
	size_t n;
	MountRow rows[];
};

/* Take a line apart. Return: 0, or -EBADMSG. */
static int row_parse(char *line, MountRow *ret)
{
	char *fields[LINE_FIELDS];

	for (size_t i = 0; i < LINE_FIELDS; i++) {
		fields[i] = strsep(&line, " ");
		if (!line)
			return -EBADMSG;
	}
	octal_unescape(fields[3]);
	octal_unescape(fields[4]);
	*ret = (MountRow){ .device = fields[2], .root = fields[3], .place = fields[4] };
	return ret->place[0] == '/' ? 0 : -EBADMSG;
}

int mount_table_parse(char *text, MountTable **ret)
{
	_cleanup_(mount_table_freep) MountTable *table = NULL;
	size_t lines = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	if (lines <= MOUNTS_MAX)
		table = malloc(sizeof(*table) + lines * sizeof(*table->rows));
	if (!table) {
		free(text);
		return lines > MOUNTS_MAX ? -E2BIG : -ENOMEM;
	}
	*table = (MountTable){ .text = text };
	for (char *line; table->n < lines && (line = strsep(&text, "\n")); table->n++)
		if (row_parse(line, &table->rows[table->n]) < 0)
			return -EBADMSG;
	*ret = TAKE_PTR(table);
	return 0;
}

int mount_table_read(MountTable **ret)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	size_t size = 0;

	if (!f)
		return -errno;
	errno = 0;
	/* It holds no NUL: this is all of it. */
	if (getdelim(&text, &size, '\0', f) <= 0)
		return errno ? -errno : -EBADMSG;
	return mount_table_parse(TAKE_PTR(text), ret);
}

MountTable *mount_table_free(MountTable *table)
{
	if (table)
		free(table->text);
	free(table);
	return NULL;
}

/* What of path lies below directory, with its slash in front; "" for the directory itself. */
static const char *below(const char *path, const char *directory)
{
	const char *rest = streq(directory, "/") ? path : path + strlen(directory);

	return streq(rest, "/") ? "" : rest;
}

/* Return: the mount that path is seen through: the innermost, and of several at one place the last. */
static const MountRow *row_above(const MountTable *table, const char *path)
{
	const MountRow *found = NULL;

	for (size_t i = 0; i < table->n; i++)
		if (path_is_within(path, table->rows[i].place) &&
		    (!found || strlen(table->rows[i].place) >= strlen(found->place)))
			found = &table->rows[i];
	return found;
}

int mount_table_aliases(const MountTable *table, const char *path,
			int (*each)(void *userdata, const char *alias), void *userdata)
{
	const MountRow *own = row_above(table, path);
	_cleanup_free_ char *inner = NULL; /* where in its file system */

	if (!own)
		return 0;
	if (asprintf(&inner, "%s%s", streq(own->root, "/") ? "" : own->root, below(path, own->place)) < 0) {
		inner = NULL;
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->n; i++) {
		const MountRow *row = &table->rows[i];
		_cleanup_free_ char *alias = NULL;
		int r;

		if (row == own || !streq(row->device, own->device) ||
		    !path_is_within(*inner ? inner : "/", row->root))
			continue;
		if (asprintf(&alias, "%s%s", streq(row->place, "/") ? "" : row->place,
			     below(*inner ? inner : "/", row->root)) < 0) {
			alias = NULL;
			return -ENOMEM;
		}
		if (streq(alias, path) || !*alias)
			continue;
		r = each(userdata, alias);
		if (r != 0)
			return r;
	}
	return 0;
}
