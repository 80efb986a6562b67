/* SPDX-License-Identifier: MIT */
#include "service/session/sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "service/plan/name-services.h"
#include "service/session/socket-fold.h"
#include "service/session/socket-search.h"

/* include/uapi/linux/net.h of the kernel: __SO_ACCEPTCON in the column Flags marks a listening socket. */
#define SOCKET_ACCEPTS 0x10000u
#define SOCKETS_LINES_MAX 100000u
#define FIFO_ENTRIES_MAX 1024u
#define SOCKETS_FOREIGN_MAX 16u
#define FIFOS_OWN_MAX 16u /* that this user made */

/* Return: the length of the longest of directories that holds path, 0 for none. */
static size_t longest_above(const char *path, const char *const *directories)
{
	size_t longest = 0;

	for (size_t i = 0; directories[i]; i++)
		if (path_is_within(path, directories[i]))
			longest = strlen(directories[i]) > longest ? strlen(directories[i]) : longest;
	return longest;
}

bool sockets_path_is_seen(const char *path, const SocketPlaces *places)
{
	/* A path with steps upwards, or with the kernel's escapes in it, is not one that we could name to a
	 * mount. */
	if (path[0] != '/' || strstr(path, "/../") || strlen(path) >= 4096)
		return false;
	if (longest_above(path, places->private_directories) > longest_above(path, places->shown_directories))
		return false;
	return !name_service_is(path, getuid());
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
	if (strings_count(*paths) >= (weight == SOCKET_OWN ? SOCKETS_LISTED_MAX : SOCKETS_FOREIGN_MAX))
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
		if (!sockets_path_is_seen(line + at, places))
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

/* Is a directory on the way to path this user's, and closed to its owner? An agent may open it again. */
static bool is_shut_in(const char *path)
{
	_cleanup_free_ char *part = strdup(path);
	struct stat st;

	for (char *slash; part && (slash = strrchr(part, '/')) && slash != part;) {
		*slash = 0;
		if (lstat(part, &st) == 0)
			return S_ISDIR(st.st_mode) && st.st_uid == getuid() && access(part, X_OK) < 0;
		if (errno != EACCES)
			return false;
	}
	return false;
}

/* connect(2), and open(2) for writing, ask for write permission (unix(7), fifo(7)); an owner can give it. */
static SocketWeight weigh(const char *path, mode_t type, uid_t *ret_uid)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == EACCES && type == S_IFSOCK && is_shut_in(path) ? SOCKET_OWN : SOCKET_CLOSED;
	if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != type ||
	    (st.st_uid != getuid() && faccessat(fd, "", W_OK, AT_EMPTY_PATH) < 0))
		return SOCKET_CLOSED;
	if (ret_uid)
		*ret_uid = st.st_uid;
	return st.st_uid < SYSTEM_UIDS || st.st_uid == getuid() ? SOCKET_OWN : SOCKET_FOREIGN;
}

static SocketWeight weigh_socket(const char *path)
{
	return weigh(path, S_IFSOCK, NULL);
}

typedef struct Found {
	char **own, **foreign, **fifos; /* fifos: that this user made */
	char *crowded;                  /* where there are more of them */
} Found;

static void found_done(Found *found)
{
	found->own = strings_free(found->own);
	found->foreign = strings_free(found->foreign);
	found->fifos = strings_free(found->fifos);
	free(found->crowded);
}

static int add_searched(void *userdata, const char *path)
{
	Found *found = userdata;

	return sockets_add(&found->own, &found->foreign, weigh_socket(path), path);
}

/* The names of all that are bound to a file. */
static int add_named(Found *found, const UnixSockets *sockets, const SocketPlaces *places)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sockets->n; i++)
		if (sockets_path_is_seen(sockets->sockets[i].name, places))
			r = add_searched(found, sockets->sockets[i].name);
	return r;
}

/*
 * Asked of netlink, since /proc/net/unix lists every connection too (thousands on a desktop). A kernel or
 * container without that table has the other one, which places fewer sockets.
 */
static int list(Found *found, const SocketPlaces *places, char **ret_problem)
{
	_cleanup_(unix_sockets_done) UnixSockets sockets = { 0 };
	_cleanup_fclose_ FILE *f = NULL;
	int r = unix_sockets_read(&sockets);

	if (r == -ENOMEM)
		return r;
	if (r == 0)
		r = add_named(found, &sockets, places);
	else {
		f = fopen("/proc/net/unix", "re");
		if (!f)
			return refuse(ret_problem, -errno,
				      "the list of sockets (/proc/net/unix) cannot be read: %s",
				      strerror(errno));
		r = sockets_collect(f, places, weigh_socket, &found->own, &found->foreign);
	}
	return r < 0 ? r : socket_search(&sockets, places, add_searched, found);
}

static int add_fifo(Found *found, const char *directory, const char *path)
{
	uid_t uid = 0;
	SocketWeight weight = weigh(path, S_IFIFO, &uid);

	if (weight != SOCKET_OWN || uid != getuid())
		return sockets_add(&found->own, &found->foreign, weight, path);
	if (strings_contain(found->fifos, path))
		return 0;
	if (strings_count(found->fifos) < FIFOS_OWN_MAX)
		return strings_append(&found->fifos, path);
	if (!found->crowded && !(found->crowded = strdup(directory)))
		return -ENOMEM;
	return 0;
}

/* The FIFOs in the directory of path: what serves at a socket often has its pipes beside it. */
static int fifos_beside(Found *found, const char *path)
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
			r = add_fifo(found, directory, name);
	}
	(void)closedir(dir);
	return r;
}

/* One directory after the other, and no directory twice. */
static int all_fifos_beside(Found *found)
{
	_cleanup_(strings_freep) char **sockets = strings_copy(found->own);
	size_t last = 0;
	int r = 0;

	if (found->own && !sockets)
		return -ENOMEM;
	if (sockets)
		qsort(sockets, strings_count(sockets), sizeof(char *), compare_strings);
	for (size_t i = 0; r == 0 && sockets && sockets[i]; i++) {
		size_t length = (size_t)(strrchr(sockets[i], '/') - sockets[i]);

		if (i > 0 && length == (size_t)(strrchr(sockets[last], '/') - sockets[last]) &&
		    memcmp(sockets[i], sockets[last], length) == 0)
			continue;
		last = i;
		r = fifos_beside(found, sockets[i]);
	}
	return r;
}

/* No more than there is room for; an agent could have made them. */
static void drop_fifos(Found *found)
{
	size_t n = strings_count(found->fifos), room = SOCKETS_FOUND_MAX - strings_count(found->own);

	for (; n > room; n--) {
		char *last = found->fifos[n - 1];

		*strrchr(last, '/') = 0;
		free(found->crowded);
		found->crowded = last;
		found->fifos[n - 1] = NULL;
	}
}

static int refuse_many(const Found *found, char **ret_problem)
{
	return refuse(ret_problem, -E2BIG,
		      "more than %u sockets that an agent could see and open have to be covered (%s "
		      "is one); "
		      "stop the programs that made them or give the sockets a mode",
		      SOCKETS_FOUND_MAX, found->own ? found->own[0] : "none");
}

int sockets_find(const SocketPlaces *places, char ***ret, char ***warnings, char **ret_problem)
{
	_cleanup_(found_done) Found found = { 0 };
	int r = list(&found, places, ret_problem);

	if (r == 0)
		r = all_fifos_beside(&found);
	if (r == 0 && found.own)
		r = socket_fold(found.own, SOCKETS_FOUND_MAX, places, warnings);
	if (r == 0)
		drop_fifos(&found);
	if (r == 0 && found.crowded)
		r = strings_appendf(warnings,
				    "more FIFOs of this user lie beside listening sockets than can be "
				    "covered, and an agent can write to the others; remove from %s what is "
				    "not needed",
				    found.crowded);
	if (r == -E2BIG)
		return refuse_many(&found, ret_problem);
	if (r == 0)
		r = sockets_merge(&found.own, found.foreign);
	if (r == 0)
		r = sockets_merge(&found.own, found.fifos);
	if (r == 0)
		*ret = TAKE_PTR(found.own);
	return r;
}
