/* SPDX-License-Identifier: MIT */
#include "service/session/disturbance.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "base/paths.h"
#include "service/plan/mount-list.h"
#include "service/session/covers.h"

/*
 * bubblewrap 0.8 with --bind-fd, bubblewrap.c: a source is looked for by the path of its descriptor, and
 * what was mounted is held against the descriptor.
 */
static const char *const complaints[] = { "/proc/self/fd/", "Race condition binding" };

/* With a destination of the plan in the same line: all of those exist when the plan is made. */
static const char *const missing[] = { "Can't mkdir ", "Can't create ", "No such file or directory",
				       "Not a directory" };

static bool source_moved(const Entry *entry)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	_cleanup_close_ int fd = FD_NONE;
	struct stat held, there;

	if (entry->kind != ENTRY_BIND || entry->source_fd < 0)
		return false;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, entry->source, &how, sizeof(how));
	return fd < 0 || fstat(fd, &there) < 0 || fstat(entry->source_fd, &held) < 0 ||
	       held.st_dev != there.st_dev || held.st_ino != there.st_ino;
}

/* Can somebody other than root change what lies where entry is mounted, or what is mounted there? */
static bool is_volatile(const Plan *plan, size_t index)
{
	const Entry *entry = &plan->entries[index];

	if (entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && !entry->device)
		return true;
	for (size_t i = 0; i < index; i++)
		if (plan->entries[i].kind == ENTRY_BIND && plan->entries[i].mode == ENTRY_RW &&
		    path_is_within(entry->destination, plan->entries[i].destination))
			return true;
	return false;
}

Disturbance start_disturbance(const Plan *plan, const char *line)
{
	Disturbance disturbance = DISTURBANCE_NONE;

	if (covers_are_stale(plan))
		return DISTURBANCE_CERTAIN;
	for (size_t i = 0; i < ELEMENTSOF(complaints); i++)
		if (strstr(line, complaints[i]))
			return DISTURBANCE_CERTAIN;
	for (size_t i = 0; i < plan->n_entries; i++) {
		if (source_moved(&plan->entries[i]))
			return DISTURBANCE_CERTAIN;
		if (!strstr(line, plan->entries[i].destination) || !is_volatile(plan, i))
			continue;
		disturbance = DISTURBANCE_POSSIBLE;
		for (size_t j = 0; j < ELEMENTSOF(missing); j++)
			if (strstr(line, missing[j]))
				return DISTURBANCE_CERTAIN;
	}
	return disturbance;
}

const Entry *start_misplaced(const Plan *plan, int root_fd)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };

	for (size_t i = 0; i < plan->n_entries; i++) {
		const Entry *entry = &plan->entries[i];
		_cleanup_close_ int fd = FD_NONE;
		struct stat planned, there;

		if (entry->kind != ENTRY_BIND || entry->mode == ENTRY_MASKED || entry->source_fd < 0 ||
		    plan_covering(plan, entry->destination) != entry)
			continue;
		fd = (int)syscall(SYS_openat2, root_fd, entry->destination, &how, sizeof(how));
		if (fd < 0 || fstat(fd, &there) < 0 || fstat(entry->source_fd, &planned) < 0 ||
		    planned.st_dev != there.st_dev || planned.st_ino != there.st_ino)
			return entry;
	}
	return NULL;
}
