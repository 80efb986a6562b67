/* SPDX-License-Identifier: MIT */

/* 17, 18, 21 and 22: what can be written. The attempts leave nothing: files without a name, and files of the
 * machine opened for writing without a byte being written. */

#include "service/inside/checks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "service/inside/measure.h"
#include "service/inside/mounts.h"

/* Could something be written in the directory, or to the file? Return: 1; 0; a negative errno: it cannot be
 * told. */
static int is_writable(const char *path, mode_t mode)
{
	int fd;

	if (S_ISDIR(mode))
		fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	else if (S_ISREG(mode))
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	else
		return 0;
	if (fd >= 0) {
		(void)close(fd);
		return 1;
	}
	switch (errno) {
	case EROFS:
	case EACCES:
	case EPERM:
	case ETXTBSY:
		return 0;
	/* It would, but for the room. */
	case ENOSPC:
	case EDQUOT:
		return 1;
	case EOPNOTSUPP:
	case EISDIR:
		/* A file system without nameless files: what it says of access has to do. */
		return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
	default:
		return -errno;
	}
}

static void expect_unwritable(Battery *b, const char *path, const char *what)
{
	ObjectIdentity object = measure_object(path);
	int r = object.known ? is_writable(path, object.mode) : -errno;

	if (r > 0)
		battery_fail(b, "%s %s can be written", what, path);
	else
		battery_starved(b, r, "whether %s can be written", path);
}

/* ---- 17 ---- */

static bool is_allowed(const ExpectedEntry *entry)
{
	return entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW;
}

/* Each bind is tried as the plan has it: read-only ones refuse, read-write ones take. */
static void try_entry(Battery *b, const Expectations *e, const ExpectedEntry *entry)
{
	ObjectIdentity object = measure_object(entry->path);
	int r;

	if (!object.known || expectations_covering(e, entry->path) != entry || entry->device)
		return;
	r = is_writable(entry->path, object.mode);
	if (r < 0)
		battery_starved(b, r, "whether %s can be written", entry->path);
	if (r > 0 && !is_allowed(entry) && entry->mode != ENTRY_PRIVATE && entry->kind != ENTRY_TMPFS)
		battery_fail(b, "%s can be written, and the plan has it read-only", entry->path);
	/* Who may write there is the machine's to say. */
	if (r <= 0 && is_allowed(entry) && streq(entry->path, e->workspace))
		battery_note(b, "the workspace %s cannot be written: %s", entry->path,
			     r < 0 ? strerror(-r) : "it belongs to somebody else, or is read-only");
}

/* Places that everybody may write on an ordinary machine. */
static void try_usual(Battery *b, const Expectations *e)
{
	static const char *const places[] = {
		"/",    "/etc",   "/usr",     "/usr/local", "/usr/local/bin", "/opt",
		"/srv", "/var",   "/var/tmp", "/var/lib",   "/var/log",       "/var/spool",
		"/mnt", "/media", "/boot",    "/sys",       "/var/crash",     "/var/mail"
	};

	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		_cleanup_free_ char *path = measure_real_path(places[i]);
		const ExpectedEntry *covering = path && e ? expectations_covering(e, path) : NULL;

		if (!path)
			battery_starved(b, errno, "whether %s can be written", places[i]);
		if (path && (!e || (covering && covering->kind == ENTRY_BIND && !is_allowed(covering))))
			expect_unwritable(b, path, "the directory");
	}
}

static void expect_workspace(Battery *b, const Expectations *e)
{
	const ExpectedEntry *covering = expectations_covering(e, e->workspace);

	if (!covering || !is_allowed(covering))
		battery_fail(b, "the workspace %s is not what the plan shows there", e->workspace);
}

void check_scope(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	size_t n = 0;

	try_usual(b, e);
	if (!e) {
		battery_note(b, "what else may be written is not known here");
		return;
	}
	if (battery_leaked(b) > 0)
		battery_fail(b, "%u descriptors beside 0, 1 and 2 were open at the start", battery_leaked(b));
	expect_workspace(b, e);
	for (size_t i = 0; i < e->n_entries; i++) {
		try_entry(b, e, &e->entries[i]);
		n += is_allowed(&e->entries[i]) && !e->entries[i].device && !e->entries[i].pin;
	}
	battery_pass(b, "%zu %s can be written", n, n == 1 ? "place" : "places");
	mounts_judge(b, "17");
	mounts_judge_others(b);
	check_anchors(b, "17");
}

/* ---- 18 ---- */

static void judge_own_file(Battery *b, const Expectations *e, const ExpectedFile *file)
{
	const ObjectIdentity *outside = &file->object;
	ObjectIdentity inside = measure_target(file->path);
	int r;

	if (!outside->known)
		return;
	if (outside->uid != 0)
		battery_fail(b, "%s belongs to uid %u and has to be root's", file->path,
			     (unsigned)outside->uid);
	/* Debian has given directories of /usr/local to a group for long. */
	if (S_ISDIR(outside->mode) && (outside->mode & (S_IWGRP | S_IWOTH)) == S_IWGRP)
		battery_note(b, "%s may be written by a group outside (mode %04o)", file->path,
			     (unsigned)outside->mode & 07777);
	else if (outside->mode & (S_IWGRP | S_IWOTH))
		battery_fail(b, "%s may be written by others than root (mode %04o)", file->path,
			     (unsigned)outside->mode & 07777);
	if (!inside.known) {
		/* Where only root looks in. */
		if (errno != EACCES)
			battery_fail(b, "%s is not in sight: %s", file->path, strerror(errno));
		return;
	}
	if (inside.device != outside->device || inside.inode != outside->inode) {
		battery_fail(b, "%s is not the machine's file here", file->path);
		return;
	}
	r = is_writable(file->path, inside.mode);
	if (r > 0)
		battery_fail(b, "%s can be written from here", file->path);
	else
		battery_starved(b, r, "whether %s can be written", file->path);
}

void check_own_files(Battery *b)
{
	static const char *const usual[] = { CS_CONFIG_PATH, CS_LIBEXEC_DIR, CS_BIN_DIR, CS_ENTRY_PATH,
					     CS_INIT_PATH };
	const Expectations *e = battery_expectations(b);
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(usual); i++)
		expect_unwritable(b, usual[i], "the sandbox's own");
	for (size_t i = 0; e && i < e->n_files; i++) {
		judge_own_file(b, e, &e->files[i]);
		n += e->files[i].object.known;
	}
	if (e && n == 0)
		battery_fail(b, "which files are the sandbox's own was not told");
	mounts_judge(b, "18");
	if (e)
		battery_pass(b, "%zu files, all root's", n);
	else
		battery_note(b, "whose they are cannot be told from here");
}

/* ---- 21 ---- */

void check_agent(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *program = NULL;

	if (!e) {
		battery_note(b, "which program is the agent's is not known here");
		return;
	}
	program = measure_real_path(e->program);
	if (!program || access(e->program, X_OK) < 0)
		battery_fail(b, "the agent's program %s cannot be executed: %s", e->program, strerror(errno));
	else {
		expect_unwritable(b, e->program, "the agent's program");
		expect_unwritable(b, program, "the agent's program");
	}
	battery_pass(b, "%s", e->program);
	mounts_judge(b, "21");
	check_contents(b, "21");
	check_anchors(b, "21");
}

/* ---- 22 ---- */

static void judge_variable(Battery *b, const Expectations *e)
{
	const char *found = measure_variable("CLAUDE_SANDBOX_ENTRY_GUARD");
	const char *rest = found;

	for (size_t i = 0; rest && e->guarded && e->guarded[i]; i++) {
		rest = starts_with(rest, e->guarded[i]);
		if (rest && e->guarded[i + 1])
			rest = starts_with(rest, ":");
	}
	if (!found || !rest || *rest)
		battery_fail(b, "CLAUDE_SANDBOX_ENTRY_GUARD does not name the directories that are held");
}

void check_entry_guard(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	size_t names = 0;

	if (!e) {
		battery_note(b, "which directories have to be held is not known here");
		return;
	}
	judge_variable(b, e);
	for (size_t i = 0; i < e->n_entries; i++) {
		const ExpectedEntry *entry = &e->entries[i];

		names += entry->placeholder;
		if (entry->placeholder && expectations_covering(e, entry->path) == entry)
			expect_unwritable(b, entry->path, "the entry point");
	}
	if (e->guarded && e->guarded[0] && names == 0)
		battery_fail(b, "no name is held in %s", e->guarded[0]);
	battery_pass(b, names > 0 ? "%zu names are held" : "no directory of agents is ahead on PATH", names);
	mounts_judge(b, "22");
	check_anchors(b, "22");
}
