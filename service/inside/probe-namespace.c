/* SPDX-License-Identifier: MIT */

/*
 * A user namespace for a probe, with a map of ids. The files for the map are a process's own, and those of
 * one that is not dumpable are root's (proc(5)); and an agent beside us may trace whatever is dumpable and
 * has its uid. So they are those of a second process, which knows nothing and gives nothing away:
 *
 *  1. it forgets what is not for agents and drops the memory in which findings are;
 *  2. it makes the namespace, and opens it in a table of descriptors that both share;
 *  3. the probe parts with that table, and joins: from then on nobody puts it into another namespace;
 *  4. only now the second one is dumpable and writes the map. An agent that traces it there can write another
 *     one, or none: the probe reads the map of its own namespace, which is not to be had twice;
 *  5. it is killed before the probe makes anything in that namespace.
 */

#include "service/inside/probing.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/inside/measure.h"

#define MAP_MAX 256u

static void overwrite(char *text)
{
	if (text)
		memset(text, '?', strlen(text));
}

void probing_forget(Probing *p)
{
	/* This process has a copy of its own. */
	const Expectations *e = p->expectations;

	if (!e)
		return;
	/* The pointers stay: a token that nobody gives is still a token. */
	overwrite(e->bait_token);
	overwrite(e->hostname);
	overwrite(e->host_mounts);
	overwrite(e->jail_mounts);
	if (e->n_host_addresses > 0)
		memset(e->host_addresses, 0, e->n_host_addresses * sizeof(*e->host_addresses));
}

typedef struct Maps {
	unsigned inside[2], outside[2]; /* uid, gid */
} Maps;

static const char *const map_paths[] = { "/proc/self/uid_map", "/proc/self/gid_map" };

static int maps_write(const Maps *maps)
{
	int r = probe_write("/proc/self/setgroups", "deny");

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(map_paths); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "%u %u 1\n", maps->inside[i], maps->outside[i]);
		r = probe_write(map_paths[i], text);
	}
	return r;
}

/* Return: 0; -ECHILD when they are others. */
static int maps_check(const Maps *maps)
{
	for (size_t i = 0; i < ELEMENTSOF(map_paths); i++) {
		_cleanup_free_ char *text = measure_text(map_paths[i], MAP_MAX, NULL);
		unsigned inside, outside, n, more;

		if (!text)
			return -errno;
		/* To a reader in the namespace, outside is the one above (user_namespaces(7)). */
		if (sscanf(text, " %u %u %u %u", &inside, &outside, &n, &more) != 3 ||
		    inside != maps->inside[i] || outside != maps->outside[i] || n != 1)
			return -ECHILD;
	}
	return 0;
}

_noreturn_ static void hold_namespace(Probing *p, const Maps *maps, int say_fd, int hear_fd)
{
	int32_t word;
	char go;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	probing_forget(p);
	(void)munmap(p, sizeof(*p));
	word = syscall(SYS_unshare, CLONE_NEWUSER) < 0 ? -errno
						       : open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (word == -1)
		word = -errno;
	if (write(say_fd, &word, sizeof(word)) != (ssize_t)sizeof(word) || read(hear_fd, &go, 1) != 1)
		_exit(EXIT_FAILURE);
	word = prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : maps_write(maps);
	(void)!write(say_fd, &word, sizeof(word));
	for (;;)
		(void)pause();
}

static int hear(int fd)
{
	int32_t word;

	return read(fd, &word, sizeof(word)) == (ssize_t)sizeof(word) ? word : -ECHILD;
}

/* up: what the second process says; down: what it is told. */
static int join(const Maps *maps, int up[static 2], const int down[static 2])
{
	_cleanup_close_ int namespace_fd = FD_NONE;
	int r = hear(up[0]);

	if (r < 0)
		return r;
	namespace_fd = r;
	if (syscall(SYS_unshare, CLONE_FILES) < 0)
		return -errno;
	/* From here on the second one has a table of its own, and its end is heard. */
	up[1] = close_fd(up[1]);
	if (setns(namespace_fd, CLONE_NEWUSER) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    write(down[1], "", 1) != 1)
		return -errno;
	r = hear(up[0]);
	return r < 0 ? r : maps_check(maps);
}

static int join_mapped(Probing *p, ProbeMapping mapping)
{
	const unsigned uid = geteuid(), gid = getegid();
	const Maps maps = { .inside = { mapping == PROBE_AS_ROOT ? 0 : uid,
					mapping == PROBE_AS_ROOT ? 0 : gid },
			    .outside = { uid, gid } };
	int up[2] = { FD_NONE, FD_NONE }, down[2] = { FD_NONE, FD_NONE }, r;
	pid_t pid;

	if (pipe2(up, O_CLOEXEC) < 0 || pipe2(down, O_CLOEXEC) < 0)
		return -errno;
	/* As fork(2), but for the descriptors: what one opens the other has (clone(2)). */
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		hold_namespace(p, &maps, up[1], down[0]);
	if (pid < 0)
		return -errno;
	r = join(&maps, up, down);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < 2; i++) {
		(void)close_fd(up[i]);
		(void)close_fd(down[i]);
	}
	return r;
}

bool probing_unshare(Probing *p, unsigned long flags, ProbeMapping mapping)
{
	int r = 0;

	if (mapping != PROBE_UNMAPPED)
		r = join_mapped(p, mapping);
	else
		flags |= CLONE_NEWUSER;
	if (r == 0 && flags != 0 && syscall(SYS_unshare, flags) < 0)
		r = -errno;
	if (r == -ECHILD)
		probing_unclear(p, "somebody else had a hand in making a user namespace");
	else if (r < 0)
		probing_refused(p, r, "a new user namespace");
	return r == 0;
}
