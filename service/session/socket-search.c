/* SPDX-License-Identifier: MIT */
#include "service/session/socket-search.h"

#include "dbus/octal.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define DIRECTORIES_MAX 64u
#define ENTRIES_MAX 1024u
#define RELATIVE_MAX 32u
#define PROCESSES_MAX 4096u
#define MOUNTS_MAX 4096u

typedef struct Search {
	const SocketPlaces *places;
	int (*each)(void *userdata, const char *path);
	void *userdata;
	uint32_t *inodes; /* sorted */
	size_t n_inodes;
	char **directories, **relative;
} Search;

static void search_done(Search *search)
{
	free(search->inodes);
	search->directories = strings_free(search->directories);
	search->relative = strings_free(search->relative);
}

static bool is_foreign(uid_t uid)
{
	return uid != (uid_t)-1 && uid >= SYSTEM_UIDS && uid != getuid();
}

static int compare_inodes(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool is_known(const Search *search, const struct stat *st)
{
	uint32_t inode = (uint32_t)st->st_ino;

	return S_ISSOCK(st->st_mode) && search->n_inodes > 0 &&
	       bsearch(&inode, search->inodes, search->n_inodes, sizeof(inode), compare_inodes);
}

static int add_once(char ***strings, char *string, size_t max)
{
	for (size_t i = 0; *strings && (*strings)[i]; i++)
		if (streq((*strings)[i], string))
			return 0;
	return strings_count(*strings) < max ? strings_append(strings, string) : 0;
}

/* Sort the names: what is absolute has a directory, the rest is looked for. */
static int take_names(Search *search, const UnixSockets *sockets)
{
	int r = 0;

	search->inodes = calloc(sockets->n + 1, sizeof(*search->inodes));
	if (!search->inodes)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < sockets->n; i++) {
		const UnixSocket *socket = &sockets->sockets[i];
		_cleanup_free_ char *directory = NULL;

		search->inodes[search->n_inodes++] = socket->inode;
		if (is_foreign(socket->uid))
			continue;
		if (socket->name[0] != '/') {
			const char *name = starts_with(socket->name, "./") ?: socket->name;

			r = add_once(&search->relative, (char *)name, RELATIVE_MAX);
			continue;
		}
		if (!sockets_path_is_seen(socket->name, search->places))
			continue;
		directory = strndup(socket->name, (size_t)(strrchr(socket->name, '/') - socket->name));
		r = directory ? add_once(&search->directories, directory, DIRECTORIES_MAX) : -ENOMEM;
	}
	qsort(search->inodes, search->n_inodes, sizeof(*search->inodes), compare_inodes);
	return r;
}

static int found(const Search *search, const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%s", streq(directory, "/") ? "" : directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return sockets_path_is_seen(path, search->places) ? search->each(search->userdata, path) : 0;
}

static int search_directory(const Search *search, const char *directory)
{
	DIR *dir = opendir(*directory ? directory : "/");
	struct dirent *entry;
	unsigned entries = 0;
	struct stat st;
	int r = 0;

	if (!dir)
		return 0;
	if (fstat(dirfd(dir), &st) < 0 || is_foreign(st.st_uid))
		entries = ENTRIES_MAX;
	while (r == 0 && entries++ < ENTRIES_MAX && (entry = readdir(dir)))
		if ((entry->d_type == DT_SOCK || entry->d_type == DT_UNKNOWN) &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    is_known(search, &st))
			r = found(search, directory, entry->d_name);
	(void)closedir(dir);
	return r;
}

/* Each relative name in the directory at path. */
static int search_relative(const Search *search, const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r = 0;

	for (size_t i = 0; fd >= 0 && r == 0 && search->relative[i]; i++)
		if (fstatat(fd, search->relative[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && is_known(search, &st))
			r = found(search, path, search->relative[i]);
	return r;
}

static int search_processes(const Search *search)
{
	_cleanup_(strings_freep) char **seen = NULL;
	_cleanup_free_ char *path = NULL; /* a link of /proc is a page at most */
	unsigned processes = 0;
	struct dirent *entry;
	struct stat st;
	int r = 0;
	DIR *dir;

	if (!search->relative)
		return 0;
	path = malloc(PATH_MAX);
	if (!path)
		return -ENOMEM;
	/* Where daemons are, whoever's they are. */
	r = search_relative(search, "/");
	if (r < 0)
		return r;
	dir = opendir("/proc");
	if (!dir)
		return 0;
	while (r == 0 && processes < PROCESSES_MAX && (entry = readdir(dir))) {
		char link[sizeof(entry->d_name) + sizeof("/cwd")];
		ssize_t n;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || strlen(entry->d_name) > 10)
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || is_foreign(st.st_uid))
			continue;
		processes++;
		(void)snprintf(link, sizeof(link), "%s/cwd", entry->d_name);
		n = readlinkat(dirfd(dir), link, path, PATH_MAX - 1);
		if (n <= 0)
			continue;
		path[n] = 0;
		for (size_t i = 0; seen && seen[i] && n > 0; i++)
			if (streq(seen[i], path))
				n = 0;
		if (n == 0)
			continue;
		r = strings_append(&seen, path);
		if (r == 0)
			r = search_relative(search, path);
	}
	(void)closedir(dir);
	return r;
}

/* A socket that is mounted: whoever mounted it wants it to be reached there, whatever its inode. */
static int search_mounts(const Search *search)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t allocated = 0;
	int r = 0;

	for (unsigned lines = 0; f && r == 0 && lines < MOUNTS_MAX && getline(&line, &allocated, f) > 0;
	     lines++) {
		int root = 0, start = 0, end = 0;
		struct statx st;

		/* 36 35 98:0 /mnt1 /mnt2 rw,noatime ...: a file has a root that is none of a file system's */
		(void)sscanf(line, "%*d %*d %*s %n%*s %n%*s%n", &root, &start, &end);
		if (end == 0 || starts_with(line + root, "/ "))
			continue;
		line[end] = 0;
		octal_unescape(line + start);
		/* A server that is away is not waited for. */
		if (sockets_path_is_seen(line + start, search->places) &&
		    statx(AT_FDCWD, line + start, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
			  STATX_TYPE, &st) == 0 &&
		    S_ISSOCK(st.stx_mode))
			r = search->each(search->userdata, line + start);
	}
	return r;
}

int socket_search(const UnixSockets *sockets, const SocketPlaces *places,
		  int (*each)(void *userdata, const char *path), void *userdata)
{
	_cleanup_(search_done) Search search = { .places = places, .each = each, .userdata = userdata };
	int r;

	r = take_names(&search, sockets);
	for (size_t i = 0; r == 0 && search.directories && search.directories[i]; i++)
		r = search_directory(&search, search.directories[i]);
	if (r == 0)
		r = search_processes(&search);
	return r < 0 ? r : search_mounts(&search);
}
