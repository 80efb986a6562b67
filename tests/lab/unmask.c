/* SPDX-License-Identifier: MIT */
/*
 * unmask DIRECTORY NAME: tries to put something of its own in the place of DIRECTORY/NAME, which a mount
 * hides, by a descriptor of DIRECTORY, from every mount namespace that can be made. One line for each
 * attempt: how the namespace was made, what was tried in it, and what the kernel answered ("done", or the
 * name of an error). "no-namespace" with an error: it could not be made. Arguments that begin with "-" are
 * skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLANTED "planted-by-a-test"
#define AWAY "away-by-a-test"

/* Flags of Linux 7 (linux/mount.h, linux/sched.h), which older headers lack. */
#define TREE_NAMESPACE 2u
#define MOUNT_NAMESPACE 2u
#define UNSHARE_EMPTY 0x00100000ul
#define CLONE_EMPTY (1ull << 37)
#define BENEATH 0x200u
#define NUMBER_OPEN_TREE_ATTR 467

static int directory_fd;
static const char *name;

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	(void)close(fd);
	return r;
}

static int map(uid_t uid, gid_t gid)
{
	char text[64];

	if (put("/proc/self/setgroups", "deny") < 0 && errno != EPERM)
		return -1;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)uid, (unsigned)uid);
	if (put("/proc/self/uid_map", text) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)gid, (unsigned)gid);
	return put("/proc/self/gid_map", text);
}

static int own_namespace(unsigned long more)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS | more) < 0)
		return -1;
	/* Without a /proc of the new root nothing can be mapped, and nothing need be. */
	return map(uid, gid) < 0 && errno != ENOENT ? -1 : 0;
}

/* What programs that make sandboxes do: a new root, then the old one and all its mounts are taken down. */
static int leave_root(void)
{
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0 ||
	    (mkdir("old", 0700) < 0 && errno != EEXIST) || mkdir("tmp", 0700) < 0 || mkdir("proc", 0700) < 0)
		return -1;
	/* For the next one. */
	if (mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    syscall(SYS_pivot_root, ".", "old") < 0)
		return -1;
	return umount2("old", MNT_DETACH);
}

static int way_jail(void)
{
	return 0;
}

static int way_copy(void)
{
	return own_namespace(0);
}

static int way_pivot(void)
{
	return own_namespace(0) < 0 ? -1 : leave_root();
}

static int way_pivot_in_place(void)
{
	if (own_namespace(0) < 0 || mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0)
		return -1;
	return umount2(".", MNT_DETACH);
}

static int way_twice(void)
{
	return way_pivot() < 0 || own_namespace(0) < 0 ? -1 : leave_root();
}

/* The directory itself as the new root, with nothing mounted in it, where the kernel allows that. */
static int way_bare_bind(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", directory_fd);
	if (own_namespace(0) < 0 || mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 ||
	    mkdir("/tmp/new", 0700) < 0 || mount(path, "/tmp/new", NULL, MS_BIND, NULL) < 0)
		return -1;
	directory_fd = open("/tmp/new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory_fd < 0 ? -1 : 0;
}

/* Above the root, and everything that is found there taken away. Whatever fails: it is an attempt. */
static int way_above(void)
{
	int root, tree;

	if (way_pivot() < 0)
		return -1;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || mkdir("/below", 0700) < 0 || chroot("/below") < 0)
		return -1;
	for (int i = 0; i < 8; i++) {
		if (chdir("..") < 0)
			return -1;
		(void)umount2(".", MNT_DETACH);
		(void)umount2("..", MNT_DETACH);
		(void)umount2("/..", MNT_DETACH);
	}
	if (fchdir(root) < 0 || chroot(".") < 0)
		return -1;
	/* Something of ours beneath the root, then the root off it. */
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0) {
		tree = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
		(void)syscall(SYS_move_mount, tree, "", AT_FDCWD, "/", BENEATH | 4u);
		(void)syscall(SYS_move_mount, AT_FDCWD, "/", AT_FDCWD, "/tmp", 0u);
		(void)syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/", 0u);
		(void)mount("/", "/tmp", NULL, MS_MOVE, NULL);
		(void)umount2("/", MNT_DETACH);
		(void)umount2("/..", MNT_DETACH);
		(void)close(tree);
	}
	if (chroot("/..") < 0)
		return -1;
	(void)umount2("/", MNT_DETACH);
	(void)syscall(SYS_pivot_root, "/", "/");
	(void)syscall(SYS_pivot_root, "/..", "/..");
	(void)umount2("/", MNT_DETACH);
	return 0;
}

/* A file that is a mount namespace: go there. */
static int enter(long fd)
{
	return fd < 0 ? -1 : setns((int)fd, CLONE_NEWNS);
}

static int way_open_tree(void)
{
	if (own_namespace(0) < 0)
		return -1;
	return enter(syscall(SYS_open_tree, directory_fd, "",
			     OPEN_TREE_CLONE | TREE_NAMESPACE | AT_EMPTY_PATH | AT_RECURSIVE));
}

static int way_open_tree_plain(void)
{
	return enter(syscall(SYS_open_tree, directory_fd, "", TREE_NAMESPACE | AT_EMPTY_PATH | AT_RECURSIVE));
}

static int way_open_tree_attr(void)
{
	if (own_namespace(0) < 0)
		return -1;
	return enter(syscall(NUMBER_OPEN_TREE_ATTR, directory_fd, "",
			     OPEN_TREE_CLONE | TREE_NAMESPACE | AT_EMPTY_PATH | AT_RECURSIVE, NULL, 0));
}

static int way_fsmount(void)
{
	long fd;

	if (own_namespace(0) < 0)
		return -1;
	fd = syscall(SYS_fsopen, "tmpfs", 0);
	if (fd < 0 || syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return enter(syscall(SYS_fsmount, fd, MOUNT_NAMESPACE, 0));
}

static int way_unshare_empty(void)
{
	return own_namespace(UNSHARE_EMPTY);
}

static int way_unshare_empty_plain(void)
{
	return (int)syscall(SYS_unshare, CLONE_NEWNS | UNSHARE_EMPTY);
}

static int way_clone_empty(void)
{
	struct clone_args arguments = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_EMPTY,
					.exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	int status;

	if (pid < 0)
		return -1;
	if (pid == 0)
		return 0;
	(void)waitpid((pid_t)pid, &status, 0);
	_exit(0);
}

static int try_exchange(void)
{
	return (int)syscall(SYS_renameat2, directory_fd, PLANTED, directory_fd, name, RENAME_EXCHANGE);
}

static int try_exchange_back(void)
{
	return (int)syscall(SYS_renameat2, directory_fd, name, directory_fd, PLANTED, RENAME_EXCHANGE);
}

static int try_rename_over(void)
{
	return renameat(directory_fd, PLANTED, directory_fd, name);
}

static int try_rename_away(void)
{
	return renameat(directory_fd, name, directory_fd, AWAY);
}

static int try_remove(void)
{
	int r = unlinkat(directory_fd, name, AT_REMOVEDIR);

	return r < 0 && errno == ENOTDIR ? unlinkat(directory_fd, name, 0) : r;
}

typedef struct Named {
	const char *what;
	int (*function)(void);
} Named;

static const Named ways[] = {
	{ "jail", way_jail },
	{ "copy", way_copy },
	{ "pivot", way_pivot },
	{ "pivot-in-place", way_pivot_in_place },
	{ "twice", way_twice },
	{ "bare-bind", way_bare_bind },
	{ "above", way_above },
	{ "open-tree", way_open_tree },
	{ "open-tree-plain", way_open_tree_plain },
	{ "open-tree-attr", way_open_tree_attr },
	{ "fsmount", way_fsmount },
	{ "unshare-empty", way_unshare_empty },
	{ "unshare-empty-plain", way_unshare_empty_plain },
	{ "clone-empty", way_clone_empty },
};

static const Named tries[] = {
	{ "exchange", try_exchange },       { "exchange-back", try_exchange_back },
	{ "rename-over", try_rename_over }, { "rename-away", try_rename_away },
	{ "remove", try_remove },
};

static void attempt(const Named *way, const Named *try)
{
	const char *what = try->what;
	int r = way->function();

	if (r < 0)
		what = "no-namespace";
	else
		r = try->function();
	printf("%s %s %s\n", way->what, what, r == 0 ? "done" : strerrorname_np(errno));
	fflush(stdout);
	_exit(0);
}

/* What an attempt needs; also what an earlier one that succeeded took away. */
static void plant(const struct stat *st, const char *path)
{
	int r = S_ISDIR(st->st_mode) ? mkdirat(directory_fd, path, 0755)
				     : mknodat(directory_fd, path, S_IFREG | 0755, 0);

	if (r < 0 && errno != EEXIST)
		perror(path);
}

int main(int argc, char **argv)
{
	struct stat st;
	int at = 1;

	while (at < argc && argv[at][0] == '-')
		at++;
	if (argc - at != 2)
		return 2;
	directory_fd = open(argv[at], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	name = argv[at + 1];
	if (directory_fd < 0 || fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		perror(argv[at]);
		return 1;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		for (size_t j = 0; j < sizeof(tries) / sizeof(*tries); j++) {
			int status;
			pid_t pid;

			plant(&st, name);
			plant(&st, PLANTED);
			pid = fork();
			if (pid == 0)
				attempt(&ways[i], &tries[j]);
			if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
				printf("%s %s failed\n", ways[i].what, tries[j].what);
		}
	if (unlinkat(directory_fd, PLANTED, AT_REMOVEDIR) < 0)
		(void)unlinkat(directory_fd, PLANTED, 0);
	return 0;
}
