/* SPDX-License-Identifier: MIT */
#include "service/session/project-dated.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>

#include "base/paths.h"
#include "service/link/pack.h"
#include "service/session/project-names.h"
#include "service/session/state-file.h"
#include "service/session/state-json.h"

#define PREFIX "rollout-"
#define SUFFIX ".jsonl"
#define NAME_LENGTH_MAX 128u
#define NAMES_MAX 4096u /* of one directory */
#define LINE_MAX_BYTES (256u * 1024)
#define SETTLED_FILE "transcripts"
#define LEVELS 3u /* year, month, day */

typedef struct Walk {
	const ProjectState *state;
	CopyBudget *budget;
	char *line;                    /* LINE_MAX_BYTES */
	bool durable, replace, counts; /* counts: what is there already is within the bounds as well */
	struct timespec
		known; /* what is not newer than this, and gone on the other side, was deleted there */
	int to_fds[LEVELS + 1]; /* the other side, as far as it is open */
	char *path[LEVELS];     /* borrowed */
} Walk;

static bool has_digits(const char *name, size_t n)
{
	return strlen(name) == n && strspn(name, "0123456789") == n;
}

static bool is_name(const char *name, unsigned level)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	if (level < LEVELS)
		return has_digits(name, level == 0 ? 4 : 2);
	if (n > NAME_LENGTH_MAX || n <= strlen(PREFIX) + suffix || !starts_with(name, PREFIX) ||
	    !streq(name + n - suffix, SUFFIX))
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.:", *p))
			return false;
	return true;
}

static int compare_newest(const void *a, const void *b)
{
	return strcmp(*(char *const *)b, *(char *const *)a);
}

static char **list_names(int fd, unsigned level)
{
	int copy_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy_fd < 0 ? NULL : fdopendir(copy_fd);
	char **names = NULL;

	if (!directory) {
		(void)close_fd(copy_fd);
		return NULL;
	}
	for (const struct dirent *entry; (entry = readdir(directory)) && strings_count(names) < NAMES_MAX;)
		if (is_name(entry->d_name, level) && strings_append(&names, entry->d_name) < 0)
			break;
	(void)closedir(directory);
	if (names)
		qsort(names, strings_count(names), sizeof(*names), compare_newest);
	return names;
}

/* Where the agent ran, by a first line. Return: 0 or a negative errno. */
static int read_cwd(const char *line, size_t size, char **ret)
{
	_cleanup_(state_object_done) StateObject object = { 0 }, payload = { 0 };
	const StateMember *member;
	int r = state_json_check(line, size);

	if (r == 0)
		r = state_object_read(line, size, &object);
	member = r == 0 ? state_object_find(&object, "\"payload\"") : NULL;
	if (!member)
		return r < 0 ? r : -EBADMSG;
	r = state_object_read(member->value, member->value_size, &payload);
	member = r == 0 ? state_object_find(&payload, "\"cwd\"") : NULL;
	return r < 0 ? r : member ? state_json_string(member, ret) : -EBADMSG;
}

static bool leads_up(const char *path)
{
	for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
		if (p[3] == '/' || p[3] == 0)
			return true;
	return false;
}

static bool is_of_workspace(const Walk *walk, int fd)
{
	const char *workspace = walk->state->options.workspace, *end = NULL;
	_cleanup_free_ char *cwd = NULL;
	size_t size = 0;

	while (!end && size < LINE_MAX_BYTES) {
		size_t wanted = MIN_OF(LINE_MAX_BYTES - size, (size_t)16 * 1024);
		ssize_t n = pread(fd, walk->line + size, wanted, (off_t)size);

		if (n <= 0)
			return false;
		end = memchr(walk->line + size, '\n', (size_t)n);
		size += (size_t)n;
	}
	/* Most are of other workspaces. No agent escapes what need not be. */
	if (!end || (!strpbrk(workspace, "\"\\") &&
		     !memmem(walk->line, (size_t)(end - walk->line), workspace, strlen(workspace))))
		return false;
	return read_cwd(walk->line, (size_t)(end - walk->line), &cwd) == 0 && cwd[0] == '/' &&
	       !leads_up(cwd) && path_is_within(cwd, workspace);
}

/* The host's directory of transcripts is made for what belongs there alone. */
static int open_first(Walk *walk, bool make)
{
	const Profile *profile = walk->state->options.profile;
	_cleanup_free_ char *path = NULL;

	if (walk->to_fds[0] >= 0)
		return 0;
	path = profile_path(profile, profile->transcripts);
	walk->to_fds[0] = path ? project_host_open(walk->state, path, make) : -ENOMEM;
	return walk->to_fds[0] < 0 ? walk->to_fds[0] : 0;
}

/* The other side's directory of this day. Return: a descriptor, borrowed, or a negative errno. */
static int open_day(Walk *walk, bool make)
{
	int r = open_first(walk, make);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < LEVELS; i++)
		if (walk->to_fds[i + 1] < 0) {
			walk->to_fds[i + 1] = copy_directory_open(walk->to_fds[i], walk->path[i],
								  walk->state->options.uid, make);
			if (walk->to_fds[i + 1] < 0)
				return walk->to_fds[i + 1];
		}
	return walk->to_fds[LEVELS];
}

static bool is_known(const Walk *walk, const struct stat *st)
{
	return st->st_ctim.tv_sec < walk->known.tv_sec ||
	       (st->st_ctim.tv_sec == walk->known.tv_sec && st->st_ctim.tv_nsec <= walk->known.tv_nsec);
}

static void copy_one(Walk *walk, int from_fd, const char *name)
{
	struct stat st, there = { 0 };
	_cleanup_close_ int fd = copy_open(from_fd, name, walk->state->options.uid, &st);
	int to_fd = fd < 0 ? fd : open_day(walk, false);
	bool exists = to_fd >= 0 && fstatat(to_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0;

	if (fd < 0 || (exists && !S_ISREG(there.st_mode)) || (!exists && is_known(walk, &st)))
		return;
	if (exists && (there.st_size >= st.st_size || !walk->replace)) {
		if (walk->counts)
			(void)copy_budget_take(walk->budget, (uint64_t)there.st_size);
		return;
	}
	if (!is_of_workspace(walk, fd) || !copy_budget_take(walk->budget, (uint64_t)st.st_size))
		return;
	to_fd = open_day(walk, true);
	if (to_fd >= 0)
		(void)copy_file(fd, &st, to_fd, name, exists, walk->durable);
}

static void walk_level(Walk *walk, int from_fd, unsigned level)
{
	_cleanup_(strings_freep) char **names = list_names(from_fd, level);

	for (size_t i = 0; names && names[i]; i++) {
		_cleanup_close_ int fd = FD_NONE;

		if (!copy_budget_lasts(walk->budget) || (walk->budget->spent && walk->budget->n_files == 0))
			return;
		if (level == LEVELS) {
			copy_one(walk, from_fd, names[i]);
			continue;
		}
		walk->path[level] = names[i];
		fd = copy_directory_open(from_fd, names[i], walk->state->options.uid, false);
		if (fd >= 0)
			walk_level(walk, fd, level + 1);
		for (unsigned below = level + 1; below <= LEVELS; below++)
			close_fdp(&walk->to_fds[below]);
	}
}

/* to_fd is taken; FD_NONE: the host's. */
static void walk_all(Walk *walk, int from_fd, int to_fd)
{
	walk->line = malloc(LINE_MAX_BYTES);
	walk->to_fds[0] = to_fd;
	for (unsigned i = 1; i <= LEVELS; i++)
		walk->to_fds[i] = FD_NONE;
	if (walk->line)
		walk_level(walk, from_fd, 0);
	close_fdp(&walk->to_fds[0]);
	free(walk->line);
}

static int open_own(const ProjectState *state, bool make)
{
	return project_directory_open(state->state_fd, state->options.profile->transcripts,
				      state->options.uid, make);
}

static int open_records(const ProjectState *state)
{
	return project_directory_open(state->key_fd, strrchr(state->records, '/') + 1, state->options.uid,
				      false);
}

bool project_dated_has(const ProjectState *state)
{
	_cleanup_close_ int own_fd = open_own(state, false);

	return own_fd >= 0 && project_directory_count(own_fd) > 0;
}

void project_dated_fetch(const ProjectState *state, int host_fd, bool replace, CopyBudget *budget)
{
	_cleanup_close_ int own_fd = open_own(state, true);
	Walk walk = { .state = state, .budget = budget, .replace = replace, .counts = true };

	if (own_fd < 0)
		return;
	walk_all(&walk, host_fd, fcntl(own_fd, F_DUPFD_CLOEXEC, 0));
	/* A session that did nothing leaves nothing. */
	if (project_directory_count(own_fd) == 0)
		(void)project_directory_remove(state->state_fd, state->options.profile->transcripts,
					       state->options.uid);
}

void project_dated_publish(const ProjectState *state, CopyBudget *budget)
{
	_cleanup_close_ int own_fd = open_own(state, false), records_fd = open_records(state);
	Walk walk = { .state = state, .budget = budget, .durable = true, .replace = true };
	struct stat st;

	if (own_fd < 0)
		return;
	if (records_fd >= 0 && fstatat(records_fd, SETTLED_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		walk.known = st.st_mtim;
	walk_all(&walk, own_fd, FD_NONE);
}

void project_dated_settle(const ProjectState *state)
{
	_cleanup_close_ int records_fd = open_records(state);

	if (records_fd >= 0)
		(void)state_file_put(records_fd, SETTLED_FILE, "", 0, false);
}
