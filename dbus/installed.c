/* SPDX-License-Identifier: MIT */
#include "dbus/installed.h"

#include <sys/stat.h>

#include "dbus/causes.h"
#include "dbus/names.h"

#define LINE_MAX_BYTES 4096

/* follow: a link is what it leads to. */
static int check_owner(const char *path, bool follow, char **ret_problem)
{
	struct stat st;

	if ((follow ? stat(path, &st) : lstat(path, &st)) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? refuse(ret_problem, -ENOENT, BECAUSE(FILE_MISSING), path)
			       : refuse(ret_problem, -errno, BECAUSE(FILE_HIDDEN), path, strerror(errno));
	if (st.st_uid != 0 || (!S_ISLNK(st.st_mode) && (st.st_mode & (S_IWGRP | S_IWOTH))))
		return refuse(ret_problem, -EPERM, BECAUSE(FILE_OWNER), path, (unsigned)st.st_uid,
			      (unsigned)(st.st_mode & 07777), path, path);
	return 0;
}

int installed_check_policy(char **ret_problem)
{
	_cleanup_free_ char *problem = NULL;
	int r = check_owner(CS_BUS_POLICY_PATH, true, &problem);

	return r == -ENOENT ? refuse(ret_problem, r, BECAUSE(POLICY_MISSING), CS_BUS_POLICY_PATH)
	       : r < 0      ? refuse(ret_problem, r, "%s", problem ?: strerror(-r))
			    : 0;
}

/* The program of a line Exec=PROGRAM (D-Bus specification, "Message Bus Starting Services"). */
static int check_program(FILE *f, char **ret_problem)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, f)) > 0 && n < LINE_MAX_BYTES) {
		const char *program = starts_with(line, "Exec=");

		if (!program)
			continue;
		line[strcspn(line, " \n")] = '\0';
		if (access(program, F_OK) < 0)
			return refuse(ret_problem, -ENOENT, BECAUSE(ACTIVATION_BROKEN), CS_ACTIVATION_PATH,
				      program, strerror(errno));
		return check_owner(program, true, ret_problem);
	}
	return refuse(ret_problem, -EBADMSG, BECAUSE(ACTIVATION_BROKEN), CS_ACTIVATION_PATH, "no program",
		      "there is no line Exec=");
}

int installed_check_activation(char **ret_problem)
{
	_cleanup_fclose_ FILE *f = NULL;
	int r = check_owner(CS_ACTIVATION_PATH, true, ret_problem);

	if (r < 0)
		return r;
	f = fopen(CS_ACTIVATION_PATH, "re");
	return f ? check_program(f, ret_problem)
		 : refuse(ret_problem, -errno, BECAUSE(FILE_HIDDEN), CS_ACTIVATION_PATH, strerror(errno));
}

int installed_check_entries(char **ret_problem)
{
	static const char *const names[] = { CS_BIN_DIR "/claude", CS_BIN_DIR "/codex", CS_BIN_DIR "/pi" };
	struct stat entry, st;
	int r = check_owner(CS_ENTRY_PATH, true, ret_problem);

	if (r < 0)
		return r;
	if (stat(CS_ENTRY_PATH, &entry) < 0)
		return refuse(ret_problem, -errno, BECAUSE(FILE_HIDDEN), CS_ENTRY_PATH, strerror(errno));
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		if (stat(names[i], &st) < 0)
			return refuse(ret_problem, -errno, BECAUSE(FILE_MISSING), names[i]);
		if (st.st_dev != entry.st_dev || st.st_ino != entry.st_ino)
			return refuse(ret_problem, -EPERM, BECAUSE(ENTRY_OTHER), names[i]);
	}
	return 0;
}

static int check_owners(const char *const *paths, size_t n, char **ret_problem)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = check_owner(paths[i], true, ret_problem);
	return r;
}

int installed_check_files(char **ret_problem)
{
	static const char *const paths[] = { CS_LAUNCH_PATH, CS_SESSION_PATH, CS_INIT_PATH,
					     CS_VERIFY_PATH, CS_COMMAND_PATH, CS_GITCONFIG_PATH };

	return check_owners(paths, ELEMENTSOF(paths), ret_problem);
}

int installed_check_directories(char **ret_problem)
{
	static const char *const paths[] = { "/usr", "/usr/libexec", CS_LIBEXEC_DIR, "/usr/local",
					     CS_BIN_DIR };

	return check_owners(paths, ELEMENTSOF(paths), ret_problem);
}
