/* SPDX-License-Identifier: MIT */
#include "service/session/socket-fold.h"

#include <sys/stat.h>

static size_t directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool is_in(const char *path, const char *directory, size_t length)
{
	return directory_length(path) == length && memcmp(path, directory, length) == 0;
}

static bool lies_below(const char *path, const char *directory)
{
	const char *rest = starts_with(path, directory);

	return rest && *rest == '/';
}

/* May this directory be hidden as a whole? */
static bool may_stand(const char *directory, const SocketPlaces *places)
{
	bool below = false;
	struct stat st;

	for (size_t i = 0; places->shown_directories[i]; i++) {
		const char *shown = places->shown_directories[i];

		if (streq(shown, directory) || lies_below(shown, directory))
			return false;
		below = below || lies_below(directory, shown);
	}
	if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
		return false;
	return below || getuid() != 0;
}

static size_t count_in(char *const *paths, const char *directory, size_t length)
{
	size_t n = 0;

	for (size_t i = 0; paths[i]; i++)
		n += is_in(paths[i], directory, length);
	return n;
}

/* Return: the fullest directory that may stand for what lies in it, NULL when none holds two or more; -ENOMEM
 * as error. */
static int find_fullest(char *const *paths, const SocketPlaces *places, char **ret)
{
	_cleanup_free_ char *best = NULL;
	size_t most = 1;

	for (size_t i = 0; paths[i]; i++) {
		size_t length = directory_length(paths[i]), n = count_in(paths, paths[i], length);
		_cleanup_free_ char *directory = NULL;

		if (n <= most || length == 0)
			continue;
		directory = strndup(paths[i], length);
		if (!directory)
			return -ENOMEM;
		if (!may_stand(directory, places))
			continue;
		most = n;
		free(best);
		best = TAKE_PTR(directory);
	}
	*ret = TAKE_PTR(best);
	return 0;
}

/* directory takes the first place of what lies in it. */
static void replace(char **paths, char *directory)
{
	size_t length = strlen(directory), to = 0;
	bool placed = false;

	for (size_t i = 0; paths[i]; i++) {
		if (!is_in(paths[i], directory, length) && !lies_below(paths[i], directory)) {
			paths[to++] = paths[i];
			continue;
		}
		free(paths[i]);
		if (!placed)
			paths[to++] = directory;
		placed = true;
	}
	paths[to] = NULL;
}

/* For the sentence of a refusal. */
static void fullest_first(char **paths)
{
	size_t most = 0, at = 0;
	char *first;

	for (size_t i = 0; paths[i]; i++) {
		size_t n = count_in(paths, paths[i], directory_length(paths[i]));

		at = n > most ? i : at;
		most = MAX_OF(n, most);
	}
	first = paths[at];
	paths[at] = paths[0];
	paths[0] = first;
}

int socket_fold(char **paths, size_t max, const SocketPlaces *places, char ***warnings)
{
	while (strings_count(paths) > max) {
		char *directory = NULL;
		int r = find_fullest(paths, places, &directory);

		if (r < 0)
			return r;
		if (!directory) {
			fullest_first(paths);
			return -E2BIG;
		}
		replace(paths, directory);
		r = strings_appendf(warnings,
				    "%s is hidden from the agent as a whole: programs listen on more sockets "
				    "than can be covered one by one; end those that are not needed",
				    directory);
		if (r < 0)
			return r;
	}
	return 0;
}
