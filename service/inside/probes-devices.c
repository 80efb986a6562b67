/* SPDX-License-Identifier: MIT */

/* Devices: made, found, and terminals that somebody else reads from. */

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* include/uapi/linux/major.h; Documentation/admin-guide/devices.txt */
#define MAJOR_MEMORY 1u
#define MAJOR_CONSOLES 5u
#define MAJOR_PTY_FIRST 136u
#define MAJOR_PTY_LAST 143u

static void make_nodes(Probing *p, const char *where)
{
	static const struct {
		const char *name;
		mode_t type;
		unsigned major, minor;
	} nodes[] = { { "memory", S_IFCHR, 1, 1 },     { "kernel messages", S_IFCHR, 1, 11 },
		      { "a disk", S_IFBLK, 8, 0 },     { "a virtual disk", S_IFBLK, 254, 0 },
		      { "a terminal", S_IFCHR, 4, 1 }, { "a tunnel", S_IFCHR, 10, 200 } };
	char place[PROBE_PLACE_MAX], path[PROBE_PLACE_MAX + 8];

	if (probe_place_make(place) < 0) {
		probing_unclear(p, "%s: no private place", where);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/node", place);
	for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
		probing_result(p, mknod(path, nodes[i].type | 0600, makedev(nodes[i].major, nodes[i].minor)),
			       "%s: %s", where, nodes[i].name);
		(void)unlink(path);
	}
	probe_place_remove(place);
}

static void make_nodes_in_copy(Probing *p, void *userdata)
{
	if (probing_unshare(p, CLONE_NEWNS, PROBE_AS_ROOT))
		make_nodes(p, "in a copy");
}

static void attempt_make(Probing *p)
{
	make_nodes(p, "in the jail");
	probing_apart(p, make_nodes_in_copy, NULL);
}

static bool is_harmless(const struct stat *st)
{
	unsigned major_number = major(st->st_rdev), minor_number = minor(st->st_rdev);

	if (!S_ISCHR(st->st_mode))
		return false;
	/* null, zero, full, random, urandom; tty, ptmx; terminals, which have a probe of their own */
	if (major_number == MAJOR_MEMORY)
		return minor_number == 3 || minor_number == 5 || minor_number == 7 || minor_number == 8 ||
		       minor_number == 9;
	if (major_number == MAJOR_CONSOLES)
		return minor_number == 0 || minor_number == 2;
	return major_number >= MAJOR_PTY_FIRST && major_number <= MAJOR_PTY_LAST;
}

static bool is_given(const Probing *p, const char *path)
{
	const Expectations *e = p->expectations;

	for (size_t i = 0; e && i < e->n_entries; i++)
		if (e->entries[i].device && streq(e->entries[i].path, path))
			return true;
	return false;
}

static void look_at_device(Probing *p, const char *path, unsigned *seen)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return;
	(*seen)++;
	/* Opening one can do things (watchdog(4)): whether it could be is enough. */
	if (!is_harmless(&st) && !is_given(p, path) && (access(path, R_OK) == 0 || access(path, W_OK) == 0))
		probing_escaped(p, "%s (%u:%u) can be opened", path, major(st.st_rdev), minor(st.st_rdev));
}

static void attempt_find(Probing *p)
{
	static const char *const directories[] = {
		"/dev",      "/dev/net",   "/dev/mapper", "/dev/input",      "/dev/dri",  "/dev/snd",
		"/dev/vfio", "/dev/block", "/dev/char",   "/dev/disk/by-id", "/dev/cpu/0"
	};
	unsigned seen = 0;

	for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
		DIR *d = opendir(directories[i]);
		const struct dirent *entry;

		/* What is not there is no way. */
		if (!d && errno != ENOENT)
			probing_refused(p, errno, "%s", directories[i]);
		while (d && (entry = readdir(d))) {
			char path[300];

			(void)snprintf(path, sizeof(path), "%s/%s", directories[i], entry->d_name);
			look_at_device(p, path, &seen);
		}
		if (d)
			(void)closedir(d);
	}
	if (probing_outcome(p) != PROBE_ESCAPED && seen > 0)
		probing_blocked(p, "of %u devices none leads out", seen);
}

/* The kernel's own refusal, of what is no terminal or by a setting of the machine's (tty_ioctl.c), is not the
 * jail's. */
static void judge_typing(Probing *p, long result, const char *what, const char *how)
{
	if (result < 0 && (errno == ENOTTY || errno == EIO || errno == EINVAL))
		probing_unclear(p, "%s%s: %s", what, how, probing_error(errno));
	else
		probing_result(p, result, "%s%s", what, how);
}

/* In our own terminal and in the controlling one. What would be typed is nothing to a shell. */
static void attempt_type(Probing *p)
{
	_cleanup_close_ int tty_fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	const struct {
		const char *name;
		int fd;
	} terminals[] = { { "our own terminal", 2 }, { "/dev/tty", tty_fd } };
	char blank = ' ';

	for (size_t i = 0; i < ELEMENTSOF(terminals); i++)
		if (terminals[i].fd >= 0)
			/* By number: a request whose upper half is not zero is the same one to the kernel. */
			for (unsigned j = 0; j < 2; j++)
				judge_typing(p,
					     syscall(SYS_ioctl, terminals[i].fd,
						     (unsigned long)TIOCSTI | (unsigned long)j << 32, &blank),
					     terminals[i].name, j ? ", by a longer number" : "");
}

static void attempt_paste(Probing *p)
{
	_cleanup_close_ int tty_fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	const int fds[] = { 2, tty_fd };
	static const char *const names[] = { "our own terminal", "/dev/tty" };
	/* 6: which keys are held down; changes nothing (ioctl_console(2)). */
	char subcode = 6;

	for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
		if (fds[i] < 0)
			continue;
		judge_typing(p, syscall(SYS_ioctl, fds[i], (unsigned long)TIOCLINUX, &subcode), names[i], "");
		subcode = 6;
	}
}

static bool is_same(const struct stat *st, const ObjectIdentity *object)
{
	return object->known && (uint64_t)st->st_dev == object->device &&
	       (uint64_t)st->st_ino == object->inode;
}

static void attempt_terminals(Probing *p)
{
	static const char *const names[] = { "/dev/tty0", "/dev/tty1", "/dev/ttyS0",
					     "/dev/hvc0", "/dev/vcs1", "/dev/vcsa1" };
	const Expectations *e = p->expectations;
	struct stat st;
	int fd;

	if (e && e->terminal.known && stat("/dev/pts", &st) == 0) {
		if ((uint64_t)st.st_dev == e->terminal.device)
			probing_escaped(p, "/dev/pts is the machine's, with everybody's terminals");
		else
			probing_blocked(p, "/dev/pts is the jail's own");
	}
	if (isatty(2) && fstat(2, &st) == 0 && e && e->terminal.known) {
		if (is_same(&st, &e->terminal))
			probing_blocked(p, "our terminal is the session's own");
		else
			probing_escaped(p, "our terminal is not the session's own");
	}
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		fd = open(names[i], O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
		probing_result(p, fd, "%s", names[i]);
		(void)close_fd(fd);
	}
}

const Probe probes_devices[] = {
	{ "p34", "no device nodes are made", "the machine's memory and disks", attempt_make },
	{ "p35", "no device node leads out", "what the machine's devices can do, beside what is allowed",
	  attempt_find },
	{ "p36", "nothing is typed into a terminal (TIOCSTI)", "commands in the person's shell",
	  attempt_type },
	{ "p37", "nothing is pasted into a console (TIOCLINUX)", "the same by another call", attempt_paste },
	{ "p38", "no other terminal", "what is typed and shown there", attempt_terminals },
};
const size_t probes_devices_count = ELEMENTSOF(probes_devices);
