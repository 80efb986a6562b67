/* SPDX-License-Identifier: MIT */
#include "service/session/socket-owner.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>

#include "base/clock.h"

#define CACHE_MAX 64u
#define CACHE_USEC USEC_PER_SEC
#define STATUS_MAX 4096u /* NSpid stands in the first half of /proc/PID/status */
#define TABLE_MAX 65536u /* of /proc/PID/net/icmp */

typedef struct Known {
	uint64_t until_usec; /* 0: empty */
	uint8_t protocol;
	uint16_t port;
	SocketOwner owner;
} Known;

struct SocketOwners {
	int diag_fd;
	pid_t leader;
	unsigned depth; /* pid namespaces down to the jail's */
	uint64_t second_usec;
	unsigned lookups; /* in the second that began then */
	uint64_t spent_usec;
	Known known[CACHE_MAX];
	unsigned next_known;
};

SocketOwners *socket_owners_new(int diag_fd)
{
	SocketOwners *owners = calloc(1, sizeof(*owners));

	if (owners)
		owners->diag_fd = diag_fd;
	return owners;
}

SocketOwners *socket_owners_free(SocketOwners *owners)
{
	free(owners);
	return NULL;
}

/* Return: how many bytes, less than size, ended by a NUL; 0 when it cannot be read. */
static size_t read_file(int directory_fd, const char *name, char *buffer, size_t size)
{
	_cleanup_close_ int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	size_t n = 0;

	while (fd >= 0 && n < size - 1) {
		ssize_t got = read(fd, buffer + n, size - 1 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	buffer[n] = '\0';
	return n;
}

static int open_process(pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static DIR *open_directory(int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory)
		(void)close_fd(fd);
	return directory;
}

static void closedirp(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

/* The pids of NSpid, outermost first. Return: how many there are; *ret: the one at depth (from 1), or 0. */
static unsigned namespace_pid(int process_fd, unsigned depth, int *ret)
{
	char status[STATUS_MAX];
	const char *p;
	unsigned n = 0;

	*ret = 0;
	(void)read_file(process_fd, "status", status, sizeof(status));
	p = strstr(status, "\nNSpid:");
	if (!p)
		return 0;
	for (p += strlen("\nNSpid:"); *p && *p != '\n'; n++) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (n + 1 == depth)
			*ret = (int)pid;
		p = end;
	}
	return n;
}

void socket_owners_set_leader(SocketOwners *owners, pid_t leader)
{
	_cleanup_close_ int fd = leader > 0 ? open_process(leader) : FD_NONE;
	int pid;

	owners->leader = leader;
	owners->depth = fd < 0 ? 0 : namespace_pid(fd, 0, &pid);
}

/* ---- one walk ---- */

typedef struct Walk {
	pid_t pids[SOCKET_OWNER_PROCESSES_MAX];
	unsigned n_pids, steps;
	char link[32]; /* what the descriptor reads as */
} Walk;

static void add_children(Walk *walk, int process_fd)
{
	_cleanup_(closedirp) DIR *threads = open_directory(process_fd, "task");
	const struct dirent *entry;

	while (threads && walk->steps < SOCKET_OWNER_STEPS_MAX && (entry = readdir(threads))) {
		char path[64], children[4096], *p = children, *end;

		if (!isdigit((unsigned char)entry->d_name[0]) || strlen(entry->d_name) > 16)
			continue;
		walk->steps++;
		(void)snprintf(path, sizeof(path), "task/%.16s/children", entry->d_name);
		(void)read_file(process_fd, path, children, sizeof(children));
		for (long pid; walk->n_pids < ELEMENTSOF(walk->pids); p = end) {
			pid = strtol(p, &end, 10);
			/* A number that the end of the buffer cut names another process. */
			if (end == p || *end == '\0')
				break;
			walk->pids[walk->n_pids++] = (pid_t)pid;
		}
	}
}

static bool has_socket(Walk *walk, int process_fd)
{
	_cleanup_(closedirp) DIR *descriptors = open_directory(process_fd, "fd");
	const struct dirent *entry;

	while (descriptors && walk->steps < SOCKET_OWNER_STEPS_MAX && (entry = readdir(descriptors))) {
		char link[sizeof(walk->link)];
		ssize_t n;

		if (entry->d_name[0] == '.')
			continue;
		walk->steps++;
		n = readlinkat(dirfd(descriptors), entry->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (streq(link, walk->link))
			return true;
	}
	return false;
}

static SocketOwner describe(const SocketOwners *owners, int process_fd)
{
	SocketOwner owner = { 0 };
	size_t n = read_file(process_fd, "comm", owner.name, sizeof(owner.name));

	if (n > 0 && owner.name[n - 1] == '\n')
		owner.name[n - 1] = '\0';
	(void)namespace_pid(process_fd, owners->depth, &owner.pid);
	return owner;
}

static SocketOwner find_by_inode(const SocketOwners *owners, uint64_t inode)
{
	Walk walk = { .pids = { owners->leader }, .n_pids = 1 };

	(void)snprintf(walk.link, sizeof(walk.link), "socket:[%" PRIu64 "]", inode);
	for (unsigned i = 0; i < walk.n_pids; i++) {
		_cleanup_close_ int fd = open_process(walk.pids[i]);

		if (fd < 0)
			continue;
		/* Init sends nothing. */
		if (i > 0 && has_socket(&walk, fd))
			return describe(owners, fd);
		add_children(&walk, fd);
	}
	return (SocketOwner){ 0 };
}

/*
 * NETLINK_SOCK_DIAG knows no sockets of ping; /proc/PID/net/icmp does: "sl local_address rem_address st ...",
 * where the port is the identifier, and the inode is the tenth field.
 */
static int ping_inode(const SocketOwners *owners, uint16_t identifier, uint64_t *ret)
{
	_cleanup_close_ int fd = open_process(owners->leader);
	_cleanup_free_ char *table = malloc(TABLE_MAX);
	char *save = NULL;

	if (fd < 0 || !table || read_file(fd, "net/icmp", table, TABLE_MAX) == 0)
		return -ENOENT;
	(void)strtok_r(table, "\n", &save);
	for (const char *line; (line = strtok_r(NULL, "\n", &save));) {
		unsigned port;

		if (sscanf(line, " %*[^:]: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &port,
			   ret) == 2 &&
		    port == identifier)
			return 0;
	}
	return -ENOENT;
}

static SocketOwner look_up(const SocketOwners *owners, const SocketPair *pair)
{
	uint64_t inode = 0;
	int r;

	if (pair->protocol == IPPROTO_ICMP)
		r = ping_inode(owners, pair->source_port, &inode);
	else if (pair->protocol == IPPROTO_TCP || pair->protocol == IPPROTO_UDP)
		r = socket_inode(owners->diag_fd, pair, &inode);
	else
		r = -ENOENT;
	return r == 0 ? find_by_inode(owners, inode) : (SocketOwner){ 0 };
}

SocketOwner socket_owners_find(SocketOwners *owners, const SocketPair *pair, uint64_t now_usec)
{
	uint64_t began_usec;
	Known *known;

	if (owners->leader <= 0)
		return (SocketOwner){ 0 };
	for (size_t i = 0; i < CACHE_MAX; i++)
		if (owners->known[i].until_usec > now_usec && owners->known[i].protocol == pair->protocol &&
		    owners->known[i].port == pair->source_port)
			return owners->known[i].owner;
	if (now_usec - owners->second_usec >= USEC_PER_SEC) {
		owners->second_usec = now_usec;
		owners->lookups = 0;
		owners->spent_usec = 0;
	}
	if (owners->lookups >= SOCKET_OWNER_LOOKUPS_MAX || owners->spent_usec >= SOCKET_OWNER_USEC_MAX)
		return (SocketOwner){ 0 };
	owners->lookups++;
	began_usec = clock_usec(CLOCK_PROCESS_CPUTIME_ID);
	known = &owners->known[owners->next_known++ % CACHE_MAX];
	*known = (Known){ .until_usec = now_usec + CACHE_USEC,
			  .protocol = pair->protocol,
			  .port = pair->source_port,
			  .owner = look_up(owners, pair) };
	owners->spent_usec += clock_usec(CLOCK_PROCESS_CPUTIME_ID) - began_usec;
	return known->owner;
}
