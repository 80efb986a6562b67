/* SPDX-License-Identifier: MIT */
#include "service/inside/mounts.h"

#include "service/inside/measure.h"

#define TEXT_MAX (8u * 1024 * 1024)

void mounts_done(Mounts *mounts)
{
	free(mounts->text);
	free(mounts->rows);
	*mounts = (Mounts){ 0 };
}

/* Blanks, newlines and backslashes stand as \ooo. Undone in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; to++) {
		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' && p[3] >= '0' &&
		    p[3] <= '7') {
			*to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
}

static bool has_option(const char *options, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = options; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, option, n) == 0 && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
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
	unescape(fields[3]);
	unescape(fields[4]);
	*ret = (Mount){ .id = strtoull(fields[0], NULL, 10),
			.parent = strtoull(fields[1], NULL, 10),
			.root = fields[3],
			.place = fields[4],
			.place_length = strlen(fields[4]),
			.type = type,
			.read_only = has_option(fields[5], "ro"),
			.no_suid = has_option(fields[5], "nosuid"),
			.no_dev = has_option(fields[5], "nodev") };
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
