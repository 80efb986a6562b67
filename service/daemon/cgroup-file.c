/* SPDX-License-Identifier: MIT */
/*
 * A GROUP THAT IS NOT OURS IS LOOKED AT BEFORE IT IS CHANGED. A group with controllers for its groups takes no
 * process, and one that has processes refuses +memory (EBUSY), but takes +pids: it then is "domain threaded",
 * all of its groups are "domain invalid", which take no process either, and so they stay, for other programs
 * too. In a container such a group is the root of its cgroup namespace, where its processes are. So:
 *  1. the machine's own root, which has no cgroup.type, may have both;
 *  2. any other must be a plain "domain", and empty, and offer memory: with pids alone it would take a process
 *     later and become threaded by that;
 *  3. both are asked for in one write, which the kernel does as a whole or not at all;
 *  4. what it is afterwards is looked at, and undone unless it is what it was.
 */
#include "service/daemon/cgroup-file.h"

#include <fcntl.h>

#include "service/daemon/cgroup-text.h"

#define FILE_BYTES_MAX 4096u
#define TYPE "cgroup.type"
#define SUBTREE "cgroup.subtree_control"
#define TYPE_DOMAIN "domain\n"
#define TYPE_DOMAIN_THREADED "domain threaded\n"

static const char *const controllers[] = { "memory", "pids" };

char *cgroup_file_read(const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = malloc(FILE_BYTES_MAX);
	_cleanup_close_ int fd = FD_NONE;
	ssize_t n;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		path = NULL;
	if (!path || !text)
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fd = FD_NONE;
		return NULL;
	}
	n = read(fd, text, FILE_BYTES_MAX - 1);
	if (n < 0)
		return NULL;
	text[n] = '\0';
	return TAKE_PTR(text);
}

int cgroup_file_write(const char *directory, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = FD_NONE;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		int r = -errno;

		fd = FD_NONE;
		return r;
	}
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

bool cgroup_file_takes_processes(const char *directory)
{
	_cleanup_free_ char *type = cgroup_file_read(directory, TYPE);

	return !type || streq(type, TYPE_DOMAIN) || streq(type, TYPE_DOMAIN_THREADED);
}

void cgroup_file_hand_down(const char *directory)
{
	for (size_t i = 0; i < ELEMENTSOF(controllers); i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "+%s", controllers[i]);
		(void)cgroup_file_write(directory, SUBTREE, text);
	}
}

/* Those that it offers and does not hand down, each with a sign before it. Return: to be freed; NULL for none. */
static char *missing(const char *directory, char sign)
{
	_cleanup_free_ char *offered = cgroup_file_read(directory, "cgroup.controllers");
	_cleanup_free_ char *given = cgroup_file_read(directory, SUBTREE), *text = NULL;

	for (size_t i = 0; offered && given && i < ELEMENTSOF(controllers); i++) {
		_cleanup_free_ char *before = TAKE_PTR(text);

		if (!cgroup_text_has(offered, controllers[i]) || cgroup_text_has(given, controllers[i]))
			text = TAKE_PTR(before);
		else if (asprintf(&text, "%s%s%c%s", before ?: "", before ? " " : "", sign, controllers[i]) <
			 0)
			text = NULL;
	}
	return TAKE_PTR(text);
}

/* Is it, and does it stay, one to which controllers can be given? */
static bool can_lend(const char *directory, const char *type)
{
	_cleanup_free_ char *processes = cgroup_file_read(directory, "cgroup.procs");
	_cleanup_free_ char *offered = cgroup_file_read(directory, "cgroup.controllers");

	return streq(type, TYPE_DOMAIN) && processes && processes[0] == '\0' && offered &&
	       cgroup_text_has(offered, "memory");
}

char *cgroup_file_borrow(const char *directory)
{
	_cleanup_free_ char *type = cgroup_file_read(directory, TYPE), *wanted = NULL, *undo = NULL;
	_cleanup_free_ char *after = NULL;

	if (!type) {
		cgroup_file_hand_down(directory);
		return NULL;
	}
	if (!can_lend(directory, type))
		return NULL;
	wanted = missing(directory, '+');
	undo = missing(directory, '-');
	if (!wanted || !undo || cgroup_file_write(directory, SUBTREE, wanted) < 0)
		return NULL;
	after = cgroup_file_read(directory, TYPE);
	if (after && streq(after, type))
		return TAKE_PTR(undo);
	cgroup_file_undo(directory, undo);
	return NULL;
}

void cgroup_file_undo(const char *directory, const char *undo)
{
	(void)cgroup_file_write(directory, SUBTREE, undo);
}
