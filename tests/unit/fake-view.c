/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-view.h"

#include <assert.h>

#define LINKS_MAX 40

static bool exists_below(const FakeNode *nodes, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; nodes && nodes[i].path; i++)
		if (strncmp(nodes[i].path, path, n) == 0 && nodes[i].path[n] == '/')
			return true;
	return false;
}

static const FakeNode *find_in(const FakeNode *nodes, const char *path)
{
	for (size_t i = 0; nodes && nodes[i].path; i++)
		if (streq(nodes[i].path, path))
			return &nodes[i];
	return NULL;
}

/* A directory that only its contents speak of is root's. Return: false when nothing is there. */
static bool look_up(const FakeView *fake, const char *path, FakeNode *ret)
{
	const FakeNode *node = find_in(fake->more, path) ?: find_in(fake->nodes, path);

	if (node && node->mode == 0) /* taken away */
		return false;
	if (node)
		*ret = *node;
	else if (streq(path, "") || exists_below(fake->more, path) || exists_below(fake->nodes, path))
		*ret = (FakeNode){ .path = path, .mode = S_IFDIR | 0755 };
	else
		return false;
	return true;
}

static bool may_follow(const FakeView *fake, const FakeNode *link)
{
	const char *rest = starts_with(link->path, fake->home);

	return link->uid == 0 || (rest && rest[0] == '/' && !strchr(rest + 1, '/'));
}

static int walk(const FakeView *fake, const char *path, bool last_link, char **ret, FakeNode *ret_node)
{
	_cleanup_free_ char *done = strdup(""), *rest = strdup(path);
	FakeNode node = { .mode = S_IFDIR | 0755 };
	unsigned links = 0;

	assert(done && rest && path[0] == '/');
	for (;;) {
		_cleanup_free_ char *next = NULL, *name = NULL;
		const char *start = rest + strspn(rest, "/");

		if (*start == '\0')
			break;
		if (!S_ISDIR(node.mode))
			return -ENOTDIR;
		name = strndup(start, strcspn(start, "/"));
		start += strlen(name);

		if (streq(name, ".") || streq(name, "..")) {
			char *slash = strrchr(done, '/');

			if (streq(name, "..") && slash)
				*slash = '\0';
			node.mode = S_IFDIR | 0755;
			next = strdup(start);
			free(rest);
			rest = TAKE_PTR(next);
			continue;
		}

		assert(asprintf(&next, "%s/%s", done, name) > 0);
		if (!look_up(fake, next, &node))
			return -ENOENT;
		if (S_ISLNK(node.mode) && !(last_link && start[strspn(start, "/")] == '\0')) {
			char *joined;

			if (!may_follow(fake, &node) || ++links > LINKS_MAX)
				return -ELOOP;
			assert(asprintf(&joined, "%s/%s", node.link, start) > 0);
			free(rest);
			rest = joined;
			if (node.link[0] == '/')
				done[0] = '\0';
			node = (FakeNode){ .mode = S_IFDIR | 0755 };
			continue;
		}
		char *remaining = strdup(start);
		free(rest);
		rest = remaining;
		free(done);
		done = TAKE_PTR(next);
	}

	*ret = done[0] == '\0' ? strdup("/") : TAKE_PTR(done);
	*ret_node = node;
	return 0;
}

static int fake_resolve(void *userdata, const char *path, PlanNode *ret)
{
	_cleanup_free_ char *place = NULL;
	FakeNode node;

	int r = walk(userdata, path, false, &place, &node);
	if (r < 0)
		return r;
	*ret = (PlanNode){ .path = TAKE_PTR(place),
			   .mode = node.mode,
			   .uid = node.uid,
			   .device = node.device,
			   .fd = FD_NONE };
	return 0;
}

static int fake_read_link(void *userdata, const char *path, char **ret)
{
	_cleanup_free_ char *place = NULL;
	FakeNode node;

	int r = walk(userdata, path, true, &place, &node);
	if (r < 0)
		return r;
	if (!S_ISLNK(node.mode))
		return -EINVAL;
	*ret = strdup(node.link);
	return *ret ? 0 : -ENOMEM;
}

static ssize_t fake_read_head(void *userdata, const PlanNode *node, void *buffer, size_t size)
{
	_cleanup_free_ char *place = NULL;
	FakeNode found;

	int r = walk(userdata, node->path, false, &place, &found);
	if (r < 0)
		return r;
	size_t n = found.link ? strlen(found.link) : 0;
	n = n < size ? n : size;
	memcpy(buffer, found.link ? found.link : "", n);
	return (ssize_t)n;
}

static bool fake_readable(void *userdata, const char *path)
{
	const FakeView *fake = userdata;
	_cleanup_free_ char *place = NULL;
	FakeNode node;

	if (walk(fake, path, false, &place, &node) < 0)
		return false;
	return node.mode & (node.uid == fake->uid ? S_IRUSR : S_IROTH);
}

static bool fake_can_create(void *userdata, const char *path)
{
	const FakeView *fake = userdata;
	_cleanup_free_ char *place = NULL;
	FakeNode node;

	if (walk(fake, path, false, &place, &node) < 0)
		return false;
	return node.uid == fake->uid || fake->uid == 0 || (node.mode & S_IWOTH);
}

static int fake_alias(const char *path, const char *from, const char *to,
		      int (*each)(void *each_userdata, const char *alias), void *each_userdata)
{
	const char *rest = starts_with(path, from);
	_cleanup_free_ char *alias = NULL;

	if (!rest || (*rest != '\0' && *rest != '/'))
		return 0;
	assert(asprintf(&alias, "%s%s", to, rest) > 0);
	return each(each_userdata, alias);
}

static int fake_aliases(void *userdata, const char *path, int (*each)(void *each_userdata, const char *alias),
			void *each_userdata)
{
	const FakeView *fake = userdata;
	int r = 0;

	for (const FakeAlias *pair = fake->aliases; r == 0 && pair && pair->path; pair++) {
		r = fake_alias(path, pair->path, pair->alias, each, each_userdata);
		if (r == 0)
			r = fake_alias(path, pair->alias, pair->path, each, each_userdata);
	}
	return r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(const FakeView *fake, const char *directory, size_t max, bool links,
		      int (*each)(void *each_userdata, const char *name), void *each_userdata)
{
	const FakeNode *const tables[] = { fake->more, fake->nodes };
	char *names[256];
	size_t n = 0;
	int r = 0;

	for (size_t t = 0; t < ELEMENTSOF(tables); t++)
		for (size_t i = 0; tables[t] && tables[t][i].path; i++) {
			const char *rest = starts_with(tables[t][i].path, directory);
			bool known = false;

			if (!rest || rest[0] != '/' || tables[t][i].mode == 0)
				continue;
			if (links && (!S_ISLNK(tables[t][i].mode) || strchr(rest + 1, '/')))
				continue;
			char *name = strndup(rest + 1, strcspn(rest + 1, "/"));
			for (size_t j = 0; j < n; j++)
				known = known || streq(names[j], name);
			if (known || n == ELEMENTSOF(names))
				free(name);
			else
				names[n++] = name;
		}
	qsort(names, n, sizeof(names[0]), compare);
	if (n == 0)
		r = -ENOENT;
	else if (n > max)
		r = -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (r == 0)
			r = each(each_userdata, names[i]);
		free(names[i]);
	}
	return r;
}

static int fake_list(void *userdata, const char *directory, size_t max,
		     int (*each)(void *each_userdata, const char *name), void *each_userdata)
{
	return list_names(userdata, directory, max, false, each, each_userdata);
}

static int fake_links(void *userdata, const char *directory, size_t max,
		      int (*each)(void *each_userdata, const char *name), void *each_userdata)
{
	return list_names(userdata, directory, max, true, each, each_userdata);
}

PlanView fake_view(FakeView *fake)
{
	return (PlanView){
		.userdata = fake,
		.resolve = fake_resolve,
		.read_link = fake_read_link,
		.read_head = fake_read_head,
		.readable = fake_readable,
		.can_create = fake_can_create,
		.aliases = fake_aliases,
		.list = fake_list,
		.links = fake_links,
	};
}
