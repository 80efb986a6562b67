/* SPDX-License-Identifier: MIT */
#include "service/session/jail-processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>

#define STATUS_MAX (1u << 20) /* it lists up to 65536 groups */
#define PARENT_MAX 1024u      /* up to the line of the parent */
/* Of the whole machine, in one look: as many numbers as the kernel has (proc_sys_kernel(5), pid_max). */
#define SEEN_MAX (1u << 22)

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

int process_status_parse(char *text, ExpectedProcess *ret, bool *ret_ended)
{
	/* Name, State, NSpid, NoNewPrivs, Seccomp, and the sets. Seccomp_filters is younger than some
	 * kernels. */
	enum { LINES_NEEDED = 5 + CAPABILITY_SET_MAX };
	ExpectedProcess process = { 0 };
	unsigned seen = 0;
	bool ended = false, memory = false;
	char *rest = text;

	for (const char *line; (line = strsep(&rest, "\n"));) {
		const char *value;

		take_capabilities(line, &process, &seen);
		if ((value = status_value(line, "Name")) && !process.name) {
			process.name = strdup(value);
			if (!process.name)
				return -ENOMEM;
			seen++;
		} else if ((value = status_value(line, "State"))) {
			ended = *value == 'Z' || *value == 'X';
			seen++;
		} else if (status_value(line, "VmSize")) {
			memory = true;
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
	*ret_ended = ended || !memory;
	return 0;
}

/* As much of /proc/PID/status as there is, up to size. Return: bytes; a negative errno. */
static ssize_t status_read(pid_t pid, char *text, size_t size)
{
	_cleanup_close_ int fd = FD_NONE;
	char path[32];
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < size) {
		ssize_t got = read(fd, text + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static int process_read(pid_t pid, ExpectedProcess *ret, bool *ret_ended)
{
	_cleanup_free_ char *text = malloc(STATUS_MAX + 1);
	ssize_t n = text ? status_read(pid, text, STATUS_MAX) : -ENOMEM;
	int r;

	if (n < 0)
		return (int)n;
	text[n] = 0;
	r = process_status_parse(text, ret, ret_ended);
	if (r == 0)
		ret->pid = (uint32_t)pid;
	return r;
}

/* A name with a newline is written with an escape, so the line is nobody's to forge. Return: 0 when the
 * process has ended; -EBADMSG; another negative errno. */
static pid_t parent_read(pid_t pid)
{
	static const char label[] = "\nPPid:\t";
	char text[PARENT_MAX + 1];
	const char *found;
	ssize_t n = status_read(pid, text, PARENT_MAX);

	if (n < 0)
		return n == -ENOENT || n == -ESRCH ? 0 : (pid_t)n;
	text[n] = 0;
	found = strstr(text, label);
	return found ? (pid_t)strtol(found + strlen(label), NULL, 10) : -EBADMSG;
}

/* Everything that runs on the machine, with its parent. */
static int machine_read(Seen **ret, size_t *ret_n)
{
	_cleanup_free_ Seen *seen = NULL;
	const struct dirent *entry;
	size_t n = 0;
	DIR *directory = opendir("/proc");
	int r = 0;

	if (!directory)
		return -errno;
	while (r == 0 && (errno = 0, entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), parent;
		Seen *larger;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		parent = parent_read(pid);
		larger = parent < 0 || n >= SEEN_MAX ? NULL : reallocarray(seen, n + 1, sizeof(*seen));
		if (larger) {
			seen = larger;
			seen[n++] = (Seen){ .pid = pid, .parent = parent };
		} else {
			r = parent < 0 ? parent : n >= SEEN_MAX ? -E2BIG : -ENOMEM;
		}
	}
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(directory);
	if (r < 0)
		return r;
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

/* One whose parent ended while the others were looked at has another by now. */
static Seen *seen_above(Seen *seen, size_t n, Seen *process)
{
	Seen *above = process->parent > 0 ? seen_find(seen, n, process->parent) : NULL;

	if (above || process->parent <= 0)
		return above;
	process->parent = parent_read(process->pid);
	return process->parent > 0 ? seen_find(seen, n, process->parent) : NULL;
}

/* Climb from each one to leader. What was seen at different times may go in circles: the steps are counted.
 */
static bool is_below(Seen *seen, size_t n, Seen *process, pid_t leader)
{
	for (size_t steps = 0; process && steps <= n; steps++) {
		if (process->pid == leader || process->inside)
			return true;
		process = seen_above(seen, n, process);
	}
	return false;
}

static bool are_known(const uint64_t namespaces[static NAMESPACE_KIND_MAX])
{
	for (NamespaceKind kind = 0; kind < NAMESPACE_KIND_MAX; kind++)
		if (namespaces[kind] == 0)
			return false;
	return true;
}

/* Return: 1 with *ret to be freed; 0 when it has ended; a negative errno. */
static int process_look(pid_t pid, ExpectedProcess *ret)
{
	/* One that ends loses its namespaces first: then it is looked at once more. */
	for (unsigned look = 0;; look++) {
		ExpectedProcess process = { 0 };
		bool ended = false;
		int r = process_read(pid, &process, &ended);

		if (r == 0 && !ended) {
			namespaces_read(pid, process.namespaces);
			if (look > 0 || are_known(process.namespaces)) {
				*ret = process;
				return 1;
			}
		}
		free(process.name);
		if (r < 0 || ended)
			return r == -ENOENT || r == -ESRCH ? 0 : r;
	}
}

static int processes_add(JailProcesses *processes, pid_t pid, const uint64_t *users, pid_t leader)
{
	ExpectedProcess process = { 0 }, *larger;
	uint64_t user;
	int r;

	if (processes->n >= JAIL_PROCESSES_MAX)
		return -E2BIG;
	r = process_look(pid, &process);
	if (r <= 0)
		return r;
	user = process.namespaces[NAMESPACE_USER];
	process.below = pid != leader && user != 0 && user != *users;
	larger = reallocarray(processes->items, processes->n + 1, sizeof(process));
	if (!larger) {
		free(process.name);
		return -ENOMEM;
	}
	processes->items = larger;
	processes->items[processes->n++] = process;
	return 0;
}

/* The numbers of NSpid that are the session's own count for nothing. Return: 0 or a negative errno. */
static int own_depth(unsigned *ret)
{
	ExpectedProcess process = { 0 };
	bool ended;
	int r = process_read(getpid(), &process, &ended);

	free(process.name);
	*ret = process.pid_depth;
	return r;
}

int jail_processes_read(pid_t leader, JailProcesses *ret)
{
	_cleanup_(jail_processes_done) JailProcesses processes = { 0 };
	uint64_t namespaces[NAMESPACE_KIND_MAX];
	_cleanup_free_ Seen *seen = NULL;
	unsigned depth = 0;
	size_t n = 0;
	int r;

	namespaces_read(leader, namespaces);
	r = own_depth(&depth);
	if (r == 0)
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
