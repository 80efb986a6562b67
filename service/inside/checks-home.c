/* SPDX-License-Identifier: MIT */

/* 03, 11, 14 and 15: what is hidden of the person. */

#include "base/paths.h"
#include "service/inside/checks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "service/inside/measure.h"
#include "service/inside/mounts.h"

/* ---- 03 ---- */

typedef struct ConfigNames {
	Battery *b;
	const char *directory;
} ConfigNames;

static bool is_allowed(const Expectations *e, const char *path)
{
	for (size_t i = 0; e->allowed_write && e->allowed_write[i]; i++)
		if (path_is_within(path, e->allowed_write[i]) || path_is_within(e->allowed_write[i], path))
			return true;
	return false;
}

/* Of .config there are only the stores of the forges, whatever the plan has. */
static int judge_config_name(void *userdata, const char *name)
{
	const ConfigNames *names = userdata;
	const Expectations *e = battery_expectations(names->b);
	_cleanup_free_ char *path = NULL;

	if (streq(name, "gh") || streq(name, "glab-cli"))
		return 0;
	path = battery_path(names->b, names->directory, name);
	if (!path)
		return -ENOMEM;
	if (is_allowed(e, path))
		battery_note(names->b, "%s is in sight, as allow-write says", path);
	else if (!e->joined)
		battery_fail(names->b, "%s is in sight: of .config only gh and glab-cli may be", path);
	return 0;
}

static void judge_config(Battery *b, const char *home)
{
	_cleanup_free_ char *directory = battery_path(b, home, ".config");
	ConfigNames names = { .b = b, .directory = directory };
	const Expectations *e = battery_expectations(b);
	const ExpectedEntry *covering;
	int r;

	if (!directory)
		return;
	covering = expectations_covering(e, directory);
	/* As a whole, it is allow-write's, or part of a workspace. */
	if (covering && covering->kind == ENTRY_BIND && covering->mode == ENTRY_RW) {
		if (!path_is_within(directory, e->workspace))
			battery_note(b, "%s is in sight (%s)", directory, covering->origin);
		return;
	}
	r = measure_list(directory, judge_config_name, &names);
	if (r < 0 && r != -ENOENT)
		battery_fail(b, "%s cannot be listed: %s", directory, strerror(-r));
}

/* Of the home itself nothing may be seen but what the plan puts there. */
static void judge_home(Battery *b, const char *home)
{
	const ExpectedEntry *covering = expectations_covering(battery_expectations(b), home);

	/* A directory of ours lies in a private one of its own. */
	if (!covering || (covering->kind != ENTRY_TMPFS && covering->kind != ENTRY_DIRECTORY &&
			  covering->mode != ENTRY_RW))
		battery_fail(b, "the home %s is not hidden", home);
}

void check_home(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *home = NULL;

	if (!e) {
		battery_note(b, "what the home may hold is not known here");
		return;
	}
	home = measure_real_path(e->home);
	if (!home)
		battery_fail(b, "the home %s is not there: %s", e->home, strerror(errno));
	else {
		judge_home(b, home);
		judge_config(b, home);
	}
	mounts_judge(b, "03");
	check_anchors(b, "03");
	check_contents(b, "03");
}

/* ---- 11 ---- */

static int judge_tmp_name(void *userdata, const char *name)
{
	Battery *b = userdata;
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *path = battery_path(b, "/tmp", name);
	struct stat st;

	if (!path)
		return -ENOMEM;
	if (lstat(path, &st) < 0)
		/* It went since it was listed. */
		return errno == ENOENT ? 0 : -errno;
	if (S_ISSOCK(st.st_mode) && (!e || !e->joined))
		battery_fail(b, "the socket %s is in sight", path);
	return 0;
}

void check_tmp(Battery *b)
{
	int r = measure_list("/tmp", judge_tmp_name, b);

	if (r < 0)
		battery_fail(b, "/tmp cannot be listed: %s", strerror(-r));
	battery_pass(b, "nothing of other programs is there");
	mounts_judge(b, "11");
	check_contents(b, "11");
}

/* ---- 14, 15 ---- */

/* What a person has there is hidden by the home or by an empty file; nothing opens these. */
static void judge_dotfile(Battery *b, const char *home, const char *name)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *path = battery_path(b, home, name);
	struct stat st;
	char byte;
	int fd;

	if (!path)
		return;
	if (lstat(path, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			battery_fail(b, "%s: %s", path, strerror(errno));
		return;
	}
	/* In the private home of a session that runs the agent may have one of its own. */
	if (mounts_is_agents(e, path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		battery_starved(b, errno, "whether %s can be read", path);
	else if (S_ISREG(st.st_mode) && read(fd, &byte, 1) != 0)
		battery_fail(b, "%s can be read", path);
	(void)close_fd(fd);
}

static void judge_dotfiles(Battery *b, const char *const *names)
{
	const Expectations *e = battery_expectations(b);
	const char *own = e ? e->home : measure_variable("HOME");
	_cleanup_free_ char *home = own ? measure_real_path(own) : NULL;

	if (own && !home)
		battery_fail(b, "the home %s is not there: %s", own, strerror(errno));
	for (size_t i = 0; names[i]; i++) {
		if (home)
			judge_dotfile(b, home, names[i]);
		judge_dotfile(b, "/root", names[i]);
	}
}

void check_netrc(Battery *b)
{
	static const char *const names[] = { ".netrc", NULL };

	judge_dotfiles(b, names);
	battery_pass(b, "absent or empty");
	mounts_judge(b, "14");
}

void check_xauthority(Battery *b)
{
	static const char *const names[] = { ".Xauthority", ".ICEauthority", NULL };

	judge_dotfiles(b, names);
	battery_pass(b, "absent or empty");
	mounts_judge(b, "15");
}
