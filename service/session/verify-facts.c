/* SPDX-License-Identifier: MIT */
#include "service/session/verify-facts.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "service/session/jail-processes.h"

/* proc_pid_mountinfo(5) of one process: as much as mount-table.h takes. */
#define MOUNTS_BYTES_MAX (1u << 20)

static ObjectIdentity identity_of(const struct stat *st)
{
	return (ObjectIdentity){ .known = true,
				 .device = st->st_dev,
				 .inode = st->st_ino,
				 .node = st->st_rdev,
				 .mode = st->st_mode,
				 .uid = st->st_uid };
}

static int identify(const Entry *entry, ObjectIdentity *ret)
{
	struct stat st;

	/* A device is bound by its path. */
	if (entry->source_fd >= 0 ? fstat(entry->source_fd, &st) < 0
				  : !entry->source || stat(entry->source, &st) < 0) {
		*ret = (ObjectIdentity){ 0 };
		return 0;
	}
	*ret = identity_of(&st);
	return 0;
}

static ObjectIdentity identify_path(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? (ObjectIdentity){ 0 } : identity_of(&st);
}

static ObjectIdentity identify_fd(int fd)
{
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0 ? (ObjectIdentity){ 0 } : identity_of(&st);
}

/* pid 0: of this process. Return: to be freed, or NULL: it is not told, and fails what is judged by it. */
static char *read_mounts(pid_t pid)
{
	_cleanup_free_ char *text = malloc(MOUNTS_BYTES_MAX + 1);
	_cleanup_close_ int fd = FD_NONE;
	char path[48] = "/proc/self/mountinfo";
	size_t n = 0;

	if (pid > 0)
		(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !text)
		return NULL;
	for (;;) {
		ssize_t got = read(fd, text + n, MOUNTS_BYTES_MAX - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		if (got == 0)
			break;
		n += (size_t)got;
		if (n == MOUNTS_BYTES_MAX)
			return NULL;
	}
	text[n] = 0;
	return TAKE_PTR(text);
}

char *verify_facts_mounts(void)
{
	_cleanup_free_ char *text = read_mounts(0);

	return text ? strdup(text) : NULL;
}

/* The machine's mounts: those of now, and those of when the jail was made, which it keeps. */
static char *host_mounts(const VerifySource *source)
{
	_cleanup_free_ char *now = read_mounts(0);
	char *both;

	if (!now || !source->leader || !source->made_mounts ||
	    strlen(now) + strlen(source->made_mounts) > MOUNTS_BYTES_MAX)
		return TAKE_PTR(now);
	return asprintf(&both, "%s%s", now, source->made_mounts) < 0 ? NULL : both;
}

int verify_facts_encode(const VerifySource *source, uint8_t **ret_data, size_t *ret_size, char **ret_problem)
{
	_cleanup_(jail_processes_done) JailProcesses processes = { 0 };
	_cleanup_(expectations_done) Expectations expectations = { 0 };
	_cleanup_free_ char *routes_problem = NULL, *mounts = host_mounts(source);
	_cleanup_free_ char *jail_mounts = source->leader > 0 ? read_mounts(source->leader) : NULL;
	const Network *network = source->network;
	char hostname[HOST_NAME_MAX + 1] = "";
	ExpectationFacts facts = {
		.battery = source->battery,
		.joined = source->leader > 0,
		.hostname = hostname,
		.terminal = identify_fd(source->terminal_fd),
		.routes = network->jailed ? &network->routes : NULL,
		.host_mounts = mounts,
		.jail_mounts = jail_mounts,
		.identify = identify,
		.identify_path = identify_path,
		.baits = source->baits,
		.n_baits = source->n_baits,
		.bait_token = source->bait_token,
		.host_addresses = network->host.addresses,
		.n_host_addresses = network->host.n_addresses,
		.resolver = source->resolver,
		.online = source->online,
	};
	int r = 0;

	(void)gethostname(hostname, sizeof(hostname) - 1);
	namespaces_read(0, facts.namespaces);
	if (source->leader > 0) {
		namespaces_read(source->leader, facts.jail_namespaces);
		r = jail_processes_read(source->leader, &processes);
		if (r == -E2BIG)
			return refuse(
				ret_problem, r,
				"the jail has more than %u processes, and each of them has to be looked "
				"at; end some of them and check again",
				JAIL_PROCESSES_MAX);
		if (r < 0)
			return refuse(ret_problem, r, "the processes of the jail cannot be looked at: %s",
				      strerror(-r));
	}
	facts.processes = processes.items;
	facts.n_processes = processes.n;

	if (network_read_back(source->network, &routes_problem) < 0 ||
	    wire_read_back(source->wire, &routes_problem) < 0)
		facts.routes_problem = routes_problem ?: "the routes cannot be read back";
	r = expectations_make(source->plan, source->request, &facts, &expectations);
	if (r == 0)
		r = expectations_encode(&expectations, ret_data, ret_size);
	return r < 0 ? refuse(ret_problem, r, "what is expected of the jail cannot be put together: %s",
			      strerror(-r))
		     : 0;
}
