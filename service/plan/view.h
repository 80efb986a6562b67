/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The file system as the plan sees it: one small table of functions, so that the plan is pure and tests run
 * it on an invented tree. The real one is service/session/view.c.
 */

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "dbus/base.h"

typedef struct PlanNode {
	char *path;  /* canonical: absolute, no links, no "." or ".." */
	mode_t mode; /* st_mode: type and permission */
	uid_t uid;
	gid_t gid;
	dev_t device; /* st_rdev: which device the node is, where it is one */
	int fd;       /* O_PATH on exactly this object, to be handed to bwrap; FD_NONE in tests */
} PlanNode;

#define PLAN_NODE_INIT ((PlanNode){ .fd = FD_NONE })

static inline void plan_node_done(PlanNode *node)
{
	free(node->path);
	*node = (PlanNode){ .fd = close_fd(node->fd) };
}

/* Another descriptor of the same object. Return: 0 or -ENOMEM. */
static inline int plan_node_copy(const PlanNode *from, PlanNode *to)
{
	PlanNode copy = *from;

	copy.fd = from->fd < 0 ? FD_NONE : fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
	copy.path = strdup(from->path);
	if (!copy.path || (from->fd >= 0 && copy.fd < 0)) {
		plan_node_done(&copy);
		return -ENOMEM;
	}
	plan_node_done(to);
	*to = copy;
	return 0;
}

typedef struct PlanView {
	void *userdata;
	/*
	 * Follow path from "/" to its object. A link is followed only when root owns it or it lies in the top
	 * level of the caller's home; in a session of root, whose agents make root's links, only in that top
	 * level and in places of the system; never a magic link; at most 40. Return: 0; -ENOENT, -ENOTDIR,
	 * -EACCES; -ELOOP for a link that may not be followed.
	 */
	int (*resolve)(void *userdata, const char *path, PlanNode *ret);
	/* The text of the link at path itself. Return: 0, -EINVAL when it is none, -ENOENT, -ENOMEM. */
	int (*read_link)(void *userdata, const char *path, char **ret);
	/* The first bytes of the regular file that node holds, at most size. Return: how many; -errno. */
	ssize_t (*read_head)(void *userdata, const PlanNode *node, void *buffer, size_t size);
	/* Could the caller open path for reading? */
	bool (*readable)(void *userdata, const char *path);
	/* Could the caller make names in the directory at path, as its mode is or after changing it? */
	bool (*can_create)(void *userdata, const char *path);
	/*
	 * Call each for every other place at which the machine has what is at the canonical path: something
	 * is mounted twice, as a whole or in part. Return: 0, a negative errno, or what each returned if not
	 * 0.
	 */
	int (*aliases)(void *userdata, const char *path, int (*each)(void *each_userdata, const char *alias),
		       void *each_userdata);
	/*
	 * Call each for every name in directory (no "." or ".."), in byte order, at most max. Return: 0,
	 * -ENOENT, -E2BIG, or what each returned if not 0.
	 */
	int (*list)(void *userdata, const char *directory, size_t max,
		    int (*each)(void *each_userdata, const char *name), void *each_userdata);
	/* The same for the names that are links alone; max still counts all. */
	int (*links)(void *userdata, const char *directory, size_t max,
		     int (*each)(void *each_userdata, const char *name), void *each_userdata);
} PlanView;
