/* SPDX-License-Identifier: MIT */
#include "service/inside/mounts.h"

#include <sys/mount.h>

#include "dbus/octal.h"
#include "service/inside/measure.h"

#define TEXT_MAX (8u * 1024 * 1024)

void mounts_done(Mounts *mounts)
{
	free(mounts->text);
	free(mounts->rows);
	*mounts = (Mounts){ 0 };
}

static unsigned long parse_options(char *options)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} known[] = {
		{ "ro", MS_RDONLY },         { "nosuid", MS_NOSUID },   { "nodev", MS_NODEV },
		{ "noexec", MS_NOEXEC },     { "noatime", MS_NOATIME }, { "nodiratime", MS_NODIRATIME },
		{ "relatime", MS_RELATIME },
	};
	unsigned long flags = 0;

	for (const char *option; (option = strsep(&options, ","));)
		for (size_t i = 0; i < ELEMENTSOF(known); i++)
			if (streq(option, known[i].name))
				flags |= known[i].flag;
	return flags;
}

/* id, parent, major:minor, root, place, options, optional fields, "-", type, source, options */
static int parse_line(char *line, Mount *ret)
{
	char *fields[6], *rest = line, *type;

	for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
		fields[i] = strsep(&rest, " ");
		if (!rest)
			return -EBADMSG;
	}
	type = starts_with(rest, "- ") ? rest : strstr(rest, " - ");
	if (!type)
		return -EBADMSG;
	type += type == rest ? 2 : 3;
	type[strcspn(type, " ")] = '\0';
	octal_unescape(fields[3]);
	octal_unescape(fields[4]);
	*ret = (Mount){ .id = strtoull(fields[0], NULL, 10),
			.parent = strtoull(fields[1], NULL, 10),
			.root = fields[3],
			.place = fields[4],
			.place_length = strlen(fields[4]),
			.type = type,
			.flags = parse_options(fields[5]) };
	if (sscanf(fields[2], "%u:%u", &ret->major, &ret->minor) != 2)
		return -EBADMSG;
	return ret->place[0] == '/' ? 0 : -EBADMSG;
}

int mounts_parse(const char *text, Mounts *ret)
{
	_cleanup_(mounts_done) Mounts mounts = { .text = strdup(text) };
	size_t lines = 0;
	char *rest = mounts.text, *line;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	mounts.rows = calloc(lines + 1, sizeof(*mounts.rows));
	if (!mounts.text || !mounts.rows)
		return -ENOMEM;
	while (mounts.n < lines && (line = strsep(&rest, "\n"))) {
		int r = parse_line(line, &mounts.rows[mounts.n]);

		if (r < 0)
			return r;
		mounts.n++;
	}
	/* Every namespace has a root; an end without a newline is none of the kernel's. */
	if (mounts.n == 0 || (rest && *rest))
		return -EBADMSG;
	*ret = mounts;
	mounts = (Mounts){ 0 };
	return 0;
}

int mounts_read(Mounts *ret)
{
	_cleanup_free_ char *text = measure_text("/proc/self/mountinfo", TEXT_MAX, NULL);

	return text ? mounts_parse(text, ret) : -errno;
}

const Mount *mounts_at(const Mounts *mounts, const char *place)
{
	const Mount *found = NULL;

	for (size_t i = 0; i < mounts->n; i++)
		if (streq(mounts->rows[i].place, place))
			found = &mounts->rows[i];
	return found;
}

size_t mounts_count(const Mounts *mounts, const char *place)
{
	size_t n = 0;

	for (size_t i = 0; i < mounts->n; i++)
		n += streq(mounts->rows[i].place, place);
	return n;
}

const Mount *mounts_by_id(const Mounts *mounts, uint64_t id)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (mounts->rows[i].id == id)
			return &mounts->rows[i];
	return NULL;
}
