/* SPDX-License-Identifier: MIT */
#include "service/session/jail-processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>

#define STATUS_MAX 8192u
/* Of the whole machine, in one look. */
#define SEEN_MAX 65536u

/* One process, and who started it. */
typedef struct Seen {
	pid_t pid, parent;
	bool inside;
} Seen;

void jail_processes_done(JailProcesses *processes)
{
	for (size_t i = 0; i < processes->n; i++)
		free(processes->items[i].name);
	free(processes->items);
	*processes = (JailProcesses){ 0 };
}

void namespaces_read(pid_t pid, uint64_t ret[static NAMESPACE_KIND_MAX])
{
	for (NamespaceKind kind = 0; kind < NAMESPACE_KIND_MAX; kind++) {
		const char *name = namespace_kind_to_string(kind);
		char path[64], link[64];
		const char *number;
		ssize_t n;

		if (pid > 0)
			(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
		else
			(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
		ret[kind] = 0;
		/* "pid:[4026531836]", namespaces(7) */
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = 0;
		number = strchr(link, '[');
		ret[kind] = number ? strtoull(number + 1, NULL, 10) : 0;
	}
}

/* The value of a line "NAME:\tVALUE"; NULL where there is none. */
static const char *status_value(const char *line, const char *name)
{
	const char *value = starts_with(line, name);

	if (!value || *value != ':')
		return NULL;
	value++;
	return value + strspn(value, "\t ");
}

static unsigned numbers_count(const char *text)
{
	unsigned n = 0;

	while (*text) {
		text += strspn(text, "\t ");
		n += *text != 0;
		text += strcspn(text, "\t ");
	}
	return n;
}

static void take_capabilities(const char *line, ExpectedProcess *ret, unsigned *seen)
{
	static const char *const names[CAPABILITY_SET_MAX] = {
		[CAPABILITY_INHERITABLE] = "CapInh", [CAPABILITY_PERMITTED] = "CapPrm",
		[CAPABILITY_EFFECTIVE] = "CapEff",   [CAPABILITY_BOUNDING] = "CapBnd",
		[CAPABILITY_AMBIENT] = "CapAmb",
	};

	for (CapabilitySet set = 0; set < CAPABILITY_SET_MAX; set++) {
		const char *value = status_value(line, names[set]);

		if (!value)
			continue;
		ret->capabilities[set] = strtoull(value, NULL, 16);
		(*seen)++;
	}
}

int process_status_parse(char *text, ExpectedProcess *ret, pid_t *ret_parent, bool *ret_zombie)
{
	/* Name, State, PPid, NSpid, NoNewPrivs, Seccomp, and the sets. Seccomp_filters is younger than some
	 * kernels. */
	enum { LINES_NEEDED = 6 + CAPABILITY_SET_MAX };
	ExpectedProcess process = { 0 };
	unsigned seen = 0;
	char *rest = text;

	*ret_parent = 0;
	*ret_zombie = false;
	for (const char *line; (line = strsep(&rest, "\n"));) {
		const char *value;

		take_capabilities(line, &process, &seen);
		if ((value = status_value(line, "Name")) && !process.name) {
			process.name = strdup(value);
			if (!process.name)
				return -ENOMEM;
			seen++;
		} else if ((value = status_value(line, "State"))) {
			*ret_zombie = *value == 'Z' || *value == 'X';
			seen++;
		} else if ((value = status_value(line, "PPid"))) {
			*ret_parent = (pid_t)strtol(value, NULL, 10);
			seen++;
		} else if ((value = status_value(line, "NSpid"))) {
			process.pid_depth = numbers_count(value);
			seen++;
		} else if ((value = status_value(line, "NoNewPrivs"))) {
			process.no_new_privileges = streq(value, "1");
			seen++;
		} else if ((value = status_value(line, "Seccomp"))) {
			process.seccomp = (uint32_t)strtoul(value, NULL, 10);
			seen++;
		} else if ((value = status_value(line, "Seccomp_filters"))) {
			process.seccomp_filters = (uint32_t)strtoul(value, NULL, 10);
		}
	}
	if (seen != LINES_NEEDED) {
		free(process.name);
		return -EBADMSG;
	}
	*ret = process;
	return 0;
}

static int process_read(pid_t pid, ExpectedProcess *ret, pid_t *ret_parent, bool *ret_zombie)
{
	_cleanup_close_ int fd = FD_NONE;
	char path[32], text[STATUS_MAX];
	size_t n = 0;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < sizeof(text) - 1) {
		ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	text[n] = 0;
	r = process_status_parse(text, ret, ret_parent, ret_zombie);
	if (r == 0)
		ret->pid = (uint32_t)pid;
	return r;
}

/* Everything that runs on the machine, with its parent. */
static int machine_read(Seen **ret, size_t *ret_n)
{
	_cleanup_free_ Seen *seen = NULL;
	const struct dirent *entry;
	size_t n = 0;
	DIR *directory = opendir("/proc");

	if (!directory)
		return -errno;
	while ((entry = readdir(directory)) && n < SEEN_MAX) {
		ExpectedProcess process = { 0 };
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), parent = 0;
		bool zombie = false;
		Seen *larger;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    process_read(pid, &process, &parent, &zombie) < 0)
			continue;
		free(process.name);
		larger = reallocarray(seen, n + 1, sizeof(*seen));
		if (!larger) {
			(void)closedir(directory);
			return -ENOMEM;
		}
		seen = larger;
		seen[n++] = (Seen){ .pid = pid, .parent = parent };
	}
	(void)closedir(directory);
	*ret = TAKE_PTR(seen);
	*ret_n = n;
	return 0;
}

static int seen_compare(const void *a, const void *b)
{
	const Seen *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static Seen *seen_find(Seen *seen, size_t n, pid_t pid)
{
	const Seen wanted = { .pid = pid };

	return bsearch(&wanted, seen, n, sizeof(*seen), seen_compare);
}

/* Climb from each one to leader. What was seen at different times may go in circles: the steps are counted.
 */
static bool is_below(Seen *seen, size_t n, const Seen *process, pid_t leader)
{
	for (size_t steps = 0; process && steps <= n; steps++) {
		if (process->pid == leader || process->inside)
			return true;
		process = process->parent > 0 ? seen_find(seen, n, process->parent) : NULL;
	}
	return false;
}

static int processes_add(JailProcesses *processes, pid_t pid, const uint64_t *users, pid_t leader)
{
	ExpectedProcess process = { 0 }, *larger;
	bool zombie = false;
	pid_t parent;
	int r;

	if (processes->n >= JAIL_PROCESSES_MAX)
		return -E2BIG;
	r = process_read(pid, &process, &parent, &zombie);
	/* It has ended since. */
	if (r == -ENOENT || r == -ESRCH)
		return 0;
	if (r < 0)
		return r;
	namespaces_read(pid, process.namespaces);
	process.below = pid != leader && process.namespaces[NAMESPACE_USER] != *users;
	larger = zombie ? NULL : reallocarray(processes->items, processes->n + 1, sizeof(process));
	if (!larger) {
		free(process.name);
		return zombie ? 0 : -ENOMEM;
	}
	processes->items = larger;
	processes->items[processes->n++] = process;
	return 0;
}

/* The numbers of NSpid that are the session's own count for nothing. */
static unsigned own_depth(void)
{
	ExpectedProcess process = { 0 };
	bool zombie;
	pid_t parent;
	int r = process_read(getpid(), &process, &parent, &zombie);

	free(process.name);
	return r < 0 ? 1 : process.pid_depth;
}

int jail_processes_read(pid_t leader, JailProcesses *ret)
{
	_cleanup_(jail_processes_done) JailProcesses processes = { 0 };
	uint64_t namespaces[NAMESPACE_KIND_MAX];
	_cleanup_free_ Seen *seen = NULL;
	unsigned depth = own_depth();
	size_t n = 0;
	int r;

	namespaces_read(leader, namespaces);
	r = machine_read(&seen, &n);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(seen, n, sizeof(*seen), seen_compare);
	r = processes_add(&processes, leader, &namespaces[NAMESPACE_USER], leader);
	if (r == 0 && processes.n == 0)
		return -ESRCH;
	for (size_t i = 0; r == 0 && i < n; i++) {
		seen[i].inside = is_below(seen, n, &seen[i], leader);
		if (seen[i].inside && seen[i].pid != leader)
			r = processes_add(&processes, seen[i].pid, &namespaces[NAMESPACE_USER], leader);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < processes.n; i++)
		processes.items[i].pid_depth -= MIN_OF(depth, processes.items[i].pid_depth);
	*ret = processes;
	processes = (JailProcesses){ 0 };
	return 0;
}
