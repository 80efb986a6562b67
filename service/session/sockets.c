/* SPDX-License-Identifier: MIT */
#include "service/session/sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* include/uapi/linux/net.h of the kernel: __SO_ACCEPTCON in the column Flags marks a listening socket. */
#define SOCKET_ACCEPTS 0x10000u
#define SOCKETS_LINES_MAX 100000u
#define FIFO_ENTRIES_MAX 1024u
#define SOCKETS_FOREIGN_MAX 16u
/* Debian Policy 9.2.2: below are the accounts of the system. */
#define SYSTEM_UIDS 1000u

/* nscd(8), sssd(8) and systemd's: answers to getpwnam(3) and the like, and nothing else. */
static const char *const name_services[] = {
	"/var/run/nscd", "/run/nscd", "/var/cache/nscd", "/var/lib/sss/pipes", "/run/systemd/userdb",
};

static bool lies_below(const char *path, const char *directory)
{
	const char *rest = starts_with(path, directory);

	return rest && (*rest == 0 || *rest == '/' || streq(directory, "/"));
}

/* Return: the length of the longest of directories that holds path, 0 for none. */
static size_t longest_above(const char *path, const char *const *directories)
{
	size_t longest = 0;

	for (size_t i = 0; directories[i]; i++)
		if (lies_below(path, directories[i]))
			longest = strlen(directories[i]) > longest ? strlen(directories[i]) : longest;
	return longest;
}

static bool is_wanted(const char *path, const SocketPlaces *places)
{
	/* A path with steps upwards, or with the kernel's escapes in it, is not one that we could name to a
	 * mount. */
	if (path[0] != '/' || strstr(path, "/../") || strlen(path) >= 4096)
		return false;
	if (longest_above(path, places->private_directories) > longest_above(path, places->shown_directories))
		return false;
	for (size_t i = 0; i < ELEMENTSOF(name_services); i++)
		if (lies_below(path, name_services[i]))
			return false;
	return true;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool strings_contain(char *const *strings, const char *string)
{
	for (size_t i = 0; strings && strings[i]; i++)
		if (streq(strings[i], string))
			return true;
	return false;
}

/*
 * How much a socket matters. Another ordinary user opened theirs to the world on purpose, and could reach an
 * agent by other ways too: theirs are covered while there is room, but however many they make, they must not
 * keep this user from working.
 */
typedef enum SocketWeight {
	SOCKET_CLOSED,
	SOCKET_FOREIGN,
	SOCKET_OWN, /* root's, a system account's or this user's */
} SocketWeight;

typedef SocketWeight (*SocketFilter)(const char *path);

static int sockets_add(char ***own, char ***foreign, SocketWeight weight, const char *path)
{
	char ***paths = weight == SOCKET_OWN ? own : foreign;

	if (weight == SOCKET_CLOSED || strings_contain(*paths, path))
		return 0;
	if (strings_count(*paths) >= (weight == SOCKET_OWN ? SOCKETS_FOUND_MAX : SOCKETS_FOREIGN_MAX))
		return weight == SOCKET_OWN ? -E2BIG : 0;
	return strings_append(paths, path);
}

static int sockets_collect(FILE *text, const SocketPlaces *places, SocketFilter filter, char ***own,
			   char ***foreign)
{
	_cleanup_free_ char *line = NULL;
	size_t allocated = 0;
	ssize_t n;

	for (unsigned lines = 0; (n = getline(&line, &allocated, text)) > 0; lines++) {
		unsigned flags, type;
		int at = 0, r;

		if (lines > SOCKETS_LINES_MAX)
			return -E2BIG;
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		/* Num RefCount Protocol Flags Type St Inode Path */
		if (sscanf(line, "%*x: %*x %*x %x %x %*x %*u %n", &flags, &type, &at) != 2 || at == 0)
			continue;
		if (!(flags & SOCKET_ACCEPTS) && type != SOCK_DGRAM)
			continue;
		if (!is_wanted(line + at, places))
			continue;
		r = sockets_add(own, foreign, filter(line + at), line + at);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Both lists in one, in byte order. */
static int sockets_merge(char ***own, char *const *foreign)
{
	for (size_t i = 0; foreign && foreign[i]; i++) {
		int r = strings_append(own, foreign[i]);

		if (r < 0)
			return r;
	}
	if (!*own)
		*own = calloc(1, sizeof(char *));
	if (!*own)
		return -ENOMEM;
	qsort(*own, strings_count(*own), sizeof(char *), compare_strings);
	return 0;
}

static SocketWeight every_socket(const char *path)
{
	return SOCKET_OWN;
}

int sockets_parse(FILE *text, const SocketPlaces *places, char ***ret)
{
	_cleanup_(strings_freep) char **own = NULL, **foreign = NULL;
	int r;

	r = sockets_collect(text, places, every_socket, &own, &foreign);
	if (r == 0)
		r = sockets_merge(&own, foreign);
	if (r == 0)
		*ret = TAKE_PTR(own);
	return r;
}

/* connect(2), and open(2) for writing, ask for write permission (unix(7), fifo(7)). */
static SocketWeight weigh(const char *path, mode_t type)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != type ||
	    faccessat(fd, "", W_OK, AT_EMPTY_PATH) < 0)
		return SOCKET_CLOSED;
	return st.st_uid < SYSTEM_UIDS || st.st_uid == getuid() ? SOCKET_OWN : SOCKET_FOREIGN;
}

static SocketWeight weigh_socket(const char *path)
{
	return weigh(path, S_IFSOCK);
}

/* The FIFOs in the directory of path: what serves at a socket often has its pipes beside it. */
static int fifos_beside(const char *path, char ***own, char ***foreign)
{
	_cleanup_free_ char *directory = strndup(path, (size_t)(strrchr(path, '/') - path));
	struct dirent *entry;
	unsigned entries = 0;
	int r = 0;
	DIR *dir;

	if (!directory)
		return -ENOMEM;
	dir = opendir(*directory ? directory : "/");
	if (!dir)
		return 0;
	while (r == 0 && entries++ < FIFO_ENTRIES_MAX && (entry = readdir(dir))) {
		_cleanup_free_ char *name = NULL;

		if (entry->d_type != DT_FIFO)
			continue;
		if (asprintf(&name, "%s/%s", directory, entry->d_name) < 0) {
			name = NULL;
			r = -ENOMEM;
		} else
			r = sockets_add(own, foreign, weigh(name, S_IFIFO), name);
	}
	(void)closedir(dir);
	return r;
}

int sockets_find(const SocketPlaces *places, char ***ret, char **ret_problem)
{
	_cleanup_(strings_freep) char **own = NULL, **foreign = NULL, **sockets = NULL;
	_cleanup_fclose_ FILE *f = fopen("/proc/net/unix", "re");
	int r;

	if (!f)
		return refuse(ret_problem, -errno, "the list of sockets (/proc/net/unix) cannot be read: %s",
			      strerror(errno));
	r = sockets_collect(f, places, weigh_socket, &own, &foreign);
	if (r == 0) {
		sockets = strings_copy(own);
		r = sockets ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && sockets[i]; i++)
		r = fifos_beside(sockets[i], &own, &foreign);
	if (r == 0)
		r = sockets_merge(&own, foreign);
	if (r == -E2BIG)
		return refuse(ret_problem, r,
			      "more than %u sockets that an agent could see and open have to be covered (%s "
			      "is one); "
			      "stop the programs that made them or give the sockets a mode",
			      SOCKETS_FOUND_MAX, own ? own[0] : "none");
	if (r == 0)
		*ret = TAKE_PTR(own);
	return r;
}
