/* SPDX-License-Identifier: MIT */
#include "service/session/state-backup.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "service/link/pack.h"

#define DIRECTORY "backups"
#define LISTED_MAX 4096u /* an agent may have filled it */

typedef struct Backup {
	int directory_fd;
	char *prefix, *name;
} Backup;

static void backup_done(Backup *backup)
{
	close_fdp(&backup->directory_fd);
	freep(&backup->prefix);
	freep(&backup->name);
}

static int backup_open(int agent_fd, const char *name, const char *what, Backup *ret)
{
	_cleanup_(backup_done) Backup backup = { .directory_fd = FD_NONE };
	struct timespec now;

	if (mkdirat(agent_fd, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	backup.directory_fd = openat(agent_fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (backup.directory_fd < 0)
		return -errno;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (asprintf(&backup.prefix, "%s.%s.", name, what) < 0) {
		backup.prefix = NULL;
		return -ENOMEM;
	}
	if (asprintf(&backup.name, "%s%019" PRId64, backup.prefix,
		     (int64_t)now.tv_sec * 1000000000 + now.tv_nsec) < 0) {
		backup.name = NULL;
		return -ENOMEM;
	}
	*ret = backup;
	backup = (Backup){ .directory_fd = FD_NONE };
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	return strcmp(*(char *const *)b, *(char *const *)a);
}

/* By their names, which hold the time. What cannot be removed stays. */
static void prune(const Backup *backup)
{
	_cleanup_(strings_freep) char **names = NULL;
	const struct dirent *entry;
	int fd = openat(backup->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;

	if (!dir) {
		(void)close_fd(fd);
		return;
	}
	for (unsigned i = 0; i < LISTED_MAX && (entry = readdir(dir)); i++)
		if (starts_with(entry->d_name, backup->prefix) && strings_append(&names, entry->d_name) == 0)
			n++;
	(void)closedir(dir);
	if (n <= STATE_BACKUPS_MAX)
		return;
	qsort(names, n, sizeof(char *), newest_first);
	for (size_t i = STATE_BACKUPS_MAX; i < n; i++)
		(void)unlinkat(backup->directory_fd, names[i], 0);
}

int state_backup_text(int agent_fd, const char *name, const StateText *loser)
{
	_cleanup_(backup_done) Backup backup = { .directory_fd = FD_NONE };
	int r = backup_open(agent_fd, name, "replaced", &backup);

	if (r == 0)
		r = state_file_put(backup.directory_fd, backup.name, loser->text, loser->size, true);
	if (r == 0)
		prune(&backup);
	return r;
}

int state_backup_move(int agent_fd, int directory_fd, const char *name)
{
	_cleanup_(backup_done) Backup backup = { .directory_fd = FD_NONE };
	int r = backup_open(agent_fd, name, "unreadable", &backup);

	if (r == 0 && renameat2(directory_fd, name, backup.directory_fd, backup.name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r == 0)
		prune(&backup);
	return r;
}
