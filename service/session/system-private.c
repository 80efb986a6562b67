/* SPDX-License-Identifier: MIT */
#include "service/session/system-private.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "service/link/pack.h"

#define FILES_MAX 4u /* of one directory: with more of them it is hidden as a whole */
#define PLACES_FEW 12u
#define FOLD_LEAST 4u /* places, to be put together without need */
#define DEPTH_MAX 64u
#define OWN_BUDGET_DEPTH 2u /* "/var/lib/x" */
#define ENTRIES_MAX 50000u

typedef struct Walk {
	const SystemPrivate *what;
	char **places;
	size_t n;
	char ***warnings;
} Walk;

static bool is_one_of(const char *path, const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		if (streq(path, list[i]))
			return true;
	return false;
}

static int walk_add(Walk *walk, const char *path)
{
	int r = strings_append(&walk->places, path);

	if (r == 0)
		walk->n++;
	return r;
}

static void walk_forget(Walk *walk, size_t n)
{
	while (walk->n > n) {
		free(walk->places[--walk->n]);
		walk->places[walk->n] = NULL;
	}
}

static int walk_directory(Walk *walk, int directory_fd, const char *path, unsigned depth, unsigned *budget);

/* Return: 0; 1 for a file that is now a place; -EFBIG when there is too much; -ENOMEM. */
static int walk_entry(Walk *walk, int directory_fd, const char *path, unsigned depth, unsigned *budget,
		      const char *name)
{
	_cleanup_free_ char *place = NULL;
	unsigned own = walk->what->entries_max;
	struct stat st;
	int fd;

	if ((*budget)-- == 0)
		return -EFBIG;
	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) || (S_ISREG(st.st_mode) && st.st_mode & S_IROTH))
		return 0;
	if (asprintf(&place, "%s/%s", path, name) < 0) {
		place = NULL;
		return -ENOMEM;
	}
	if (S_ISREG(st.st_mode) || is_one_of(place, walk->what->unseen) ||
	    (st.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH))
		return walk_add(walk, place) ?: S_ISREG(st.st_mode);
	fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Nobody in the jail has more rights. */
	if (fd < 0)
		return 0;
	return walk_directory(walk, fd, place, depth + 1, depth < OWN_BUDGET_DEPTH ? &own : budget);
}

/* Takes directory_fd. */
static int walk_directory(Walk *walk, int directory_fd, const char *path, unsigned depth, unsigned *budget)
{
	size_t before = walk->n;
	DIR *directory = fdopendir(directory_fd);
	struct dirent *entry;
	unsigned files = 0;
	int r = depth > DEPTH_MAX ? -EFBIG : 0;

	if (!directory) {
		(void)close_fd(directory_fd);
		return -ENOMEM;
	}
	while (r >= 0 && (entry = readdir(directory))) {
		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		r = walk_entry(walk, dirfd(directory), path, depth, budget, entry->d_name);
		files += r == 1;
	}
	(void)closedir(directory);
	if (r == -ENOMEM)
		return r;
	/* Whoever has a budget of its own is hidden for it; what shares one leaves that to the one above. */
	if (r == -EFBIG && depth > OWN_BUDGET_DEPTH)
		return r;
	if (r == -EFBIG && depth == 0)
		return -E2BIG;
	if (r == -EFBIG || (walk->n > before && is_one_of(path, walk->what->wholes)) ||
	    (files > FILES_MAX && !is_one_of(path, walk->what->kept))) {
		walk_forget(walk, before);
		if (r == -EFBIG)
			r = strings_appendf(
				walk->warnings,
				"%s is hidden: it has too many files to find those that only root "
				"may read",
				path);
		return r < 0 ? r : walk_add(walk, path);
	}
	return r < 0 ? r : 0;
}

static size_t count_within(const Walk *walk, const char *directory)
{
	size_t count = 0;

	for (size_t i = 0; i < walk->n; i++)
		count += path_is_within(walk->places[i], directory);
	return count;
}

/* The directory with most places, of those with the same the deepest. Return: it, to be freed, NULL, with *error. */
static char *find_fullest(const Walk *walk, size_t least, int *error)
{
	_cleanup_free_ char *best = NULL;
	size_t root = strlen(walk->what->root), best_count = least - 1;

	for (size_t i = 0; i < walk->n; i++) {
		_cleanup_free_ char *directory = strdup(walk->places[i]);

		for (char *slash;
		     directory && (slash = strrchr(directory, '/')) && slash > directory + root;) {
			size_t count;

			*slash = 0;
			if (is_one_of(directory, walk->what->kept))
				continue;
			count = count_within(walk, directory);
			if (count <= best_count)
				continue;
			best_count = count;
			free(best);
			best = strdup(directory);
		}
		if (!directory || (best_count >= least && !best)) {
			*error = -ENOMEM;
			return NULL;
		}
	}
	return TAKE_PTR(best);
}

/* Put the largest group together, where it has so many places. Return: 1, 0 when there is none, -ENOMEM. */
static int walk_fold(Walk *walk, size_t least)
{
	_cleanup_free_ char *best = NULL;
	size_t n = 0;
	int r = 0;

	best = find_fullest(walk, least, &r);
	if (!best)
		return r;
	for (size_t i = 0; i < walk->n; i++)
		if (path_is_within(walk->places[i], best))
			freep(&walk->places[i]);
		else
			walk->places[n++] = walk->places[i];
	walk->places[n] = NULL;
	walk->n = n;
	r = walk_add(walk, best);
	return r < 0 ? r : 1;
}

int system_private_find(const SystemPrivate *what, char ***places, char ***warnings, char **ret_problem)
{
	Walk walk = { .what = what, .warnings = warnings };
	unsigned budget = what->entries_max;
	int r = 0, fd = open(what->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return 0;
	r = walk_directory(&walk, fd, what->root, 0, &budget);
	/* A plan should stay small; where that costs too much of what is readable, it may grow. */
	while (r == 0 && walk.n > PLACES_FEW && (r = walk_fold(&walk, FOLD_LEAST)) == 1)
		r = 0;
	while (r == 0 && walk.n > SYSTEM_PRIVATE_MAX && (r = walk_fold(&walk, 2)) == 1)
		r = 0;
	if (r == 0 && walk.n > SYSTEM_PRIVATE_MAX)
		r = -E2BIG;
	for (size_t i = 0; r == 0 && i < walk.n; i++)
		r = strings_append(places, walk.places[i]);
	if (r == -E2BIG)
		(void)refuse(
			ret_problem, r,
			"%s has more than %u files that only root may read, too many to be hidden from an "
			"agent of root's; start the agent as an ordinary user",
			what->root, SYSTEM_PRIVATE_MAX);
	strings_free(walk.places);
	return r;
}

int system_private_find_all(char ***places, char ***warnings, char **ret_problem)
{
	static const char *const kept[] = {
		"/etc",     "/etc/default", "/etc/security",      "/etc/ssh",
		"/etc/ssl", "/var",         "/var/cache",         "/var/cache/apt/archives",
		"/var/lib", "/var/lib/apt", "/var/lib/apt/lists", "/var/lib/dpkg",
		NULL
	};
	static const char *const wholes[] = { "/var/backups", "/var/cache/debconf", "/var/log", "/var/spool",
					      NULL };
	/* Everybody's; it can be large. */
	static const char *const unseen[] = { "/var/tmp", NULL };
	static const char *const roots[] = { "/etc", "/var" };
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(roots) && r == 0; i++)
		r = system_private_find(&(SystemPrivate){ .root = roots[i],
							  .kept = kept,
							  .wholes = wholes,
							  .unseen = unseen,
							  .entries_max = ENTRIES_MAX },
					places, warnings, ret_problem);
	return r;
}
