/* SPDX-License-Identifier: MIT */

/* 10: /dev holds a few harmless nodes and terminals of its own, and the session's terminal is no other's. */

#include "base/paths.h"
#include "service/inside/checks.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "service/inside/measure.h"
#include "service/inside/mounts.h"

/* Documentation/admin-guide/devices.txt of the kernel; what bwrap(1) puts into a fresh /dev. */
static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static const char *const others[] = { "console", "core",  "fd",     "ptmx",  "pts",
				      "shm",     "stdin", "stdout", "stderr" };

static bool is_usual(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
		if (streq(nodes[i].name, name))
			return true;
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		if (streq(others[i], name))
			return true;
	return false;
}

static bool is_planned(const Expectations *e, const char *path)
{
	for (size_t i = 0; e && i < e->n_entries; i++)
		if (path_is_within(e->entries[i].path, path))
			return true;
	return false;
}

static int judge_name(void *userdata, const char *name)
{
	Battery *b = userdata;
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *path = battery_path(b, "/dev", name);

	if (!path)
		return -ENOMEM;
	if (is_planned(e, path) && !is_usual(name))
		battery_note(b, "%s is in sight, as allow-device or gpu says", path);
	else if (streq(name, "console") && e && !is_planned(e, path))
		battery_fail(b, "/dev/console is in sight, and the session has no terminal");
	else if (!is_usual(name)) {
		ObjectIdentity object = measure_object(path);

		/* /dev is the agent's own: it may make files there, and never a node. */
		if (!e || !e->joined || !object.known || S_ISCHR(object.mode) || S_ISBLK(object.mode))
			battery_fail(b, "%s is in sight, which the plan does not have", path);
	}
	return 0;
}

/* In a session of root's the nodes are the machine's own to uid 0: nobody may change their modes. */
static void judge_nodes(Battery *b, const Mounts *mounts)
{
	const Expectations *e = battery_expectations(b);

	for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
		_cleanup_free_ char *path = battery_path(b, "/dev", nodes[i].name);
		ObjectIdentity object;
		const Mount *mount;

		if (!path)
			return;
		object = measure_object(path);
		mount = mounts_at(mounts, path);
		if (!object.known || !S_ISCHR(object.mode) || major(object.node) != nodes[i].major ||
		    minor(object.node) != nodes[i].minor)
			battery_fail(b, "%s is not the device that it has to be", path);
		else if (e && e->uid == 0 && (!mount || !(mount->flags & MS_RDONLY)))
			battery_fail(b,
				     "%s is root's and mounted read-write: its mode can be changed for all",
				     path);
	}
}

/* Those of a new instance are of programs that run here. */
static int judge_terminal(void *userdata, const char *name)
{
	Battery *b = userdata;
	const Expectations *e = battery_expectations(b);

	if (!streq(name, "ptmx") && (!e || !e->joined))
		battery_fail(b, "/dev/pts/%s is in sight: a terminal of another program", name);
	return 0;
}

static void judge_terminals(Battery *b, const Mounts *mounts)
{
	const Expectations *e = battery_expectations(b);
	ObjectIdentity pts = measure_object("/dev/pts"), shm = measure_object("/dev/shm"),
		       dev = measure_object("/dev");
	const Mount *mount = mounts_at(mounts, "/dev/pts");
	int r;

	if (!mount || !streq(mount->type, "devpts") || !pts.known)
		battery_fail(b, "/dev/pts is no instance of its own");
	else if (e && e->terminal.known && pts.device == e->terminal.device)
		battery_fail(b, "/dev/pts shows the machine's terminals");
	r = measure_list("/dev/pts", judge_terminal, b);
	if (r < 0)
		battery_fail(b, "/dev/pts cannot be listed: %s", strerror(-r));
	/* /dev is the agent's own, which may take away what is no mount. */
	if (shm.known ? shm.device != dev.device : !e || !e->joined)
		battery_fail(b, "/dev/shm is not the jail's own");
}

/* What is the controlling terminal? By its number, as the kernel has it (tty_ioctl.c, TIOCGDEV). */
static void judge_controlling(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_close_ int fd = FD_NONE;
	unsigned number = 0;
	struct stat st;

	if (!e || e->joined)
		return;
	fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (!e->terminal.known) {
		if (fd >= 0)
			battery_fail(b, "there is a controlling terminal, and the session has none");
		return;
	}
	if (fd < 0 || ioctl(fd, TIOCGDEV, &number) < 0)
		battery_fail(b, "the session's terminal is not the controlling one: %s", strerror(errno));
	else if (number != (unsigned)e->terminal.node)
		battery_fail(b, "the controlling terminal is not the session's own");
	if (fstat(STDERR_FILENO, &st) < 0)
		battery_fail(b, "descriptor 2: %s", strerror(errno));
	else if (isatty(STDERR_FILENO) && (st.st_rdev != e->terminal.node || st.st_dev != e->terminal.device))
		battery_fail(b, "descriptor 2 is a terminal, and not the session's own");
}

/* Typing into it is refused whatever the terminal is. An answer of the kernel's instead of the filter's is
 * EIO or ENOTTY. */
static void judge_typing(Battery *b)
{
	_cleanup_close_ int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	char nothing = 0;

	if (ioctl(fd >= 0 ? fd : STDERR_FILENO, TIOCSTI, &nothing) == 0)
		battery_fail(b, "TIOCSTI types into the terminal");
	else if (errno != EPERM)
		battery_fail(b, "TIOCSTI is answered by the kernel (%s) and not by the filter",
			     strerror(errno));
}

void check_devices(Battery *b)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };
	int r = mounts_read(&mounts);

	if (r == 0)
		r = measure_list("/dev", judge_name, b);
	if (r < 0) {
		battery_fail(b, "/dev cannot be listed: %s", strerror(-r));
		return;
	}
	judge_nodes(b, &mounts);
	judge_terminals(b, &mounts);
	judge_controlling(b);
	judge_typing(b);
	battery_pass(b, "a few nodes and terminals of its own; TIOCSTI is refused");
	mounts_judge(b, "10");
}
