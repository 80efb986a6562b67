/* SPDX-License-Identifier: MIT */
#include "tests/unit/state-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>

#include "service/link/pack.h"

char *state_path(const StateFixture *f, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", f->home, name) > 0);
	return path;
}

int state_fixture_make(void **state)
{
	StateFixture *f = calloc(1, sizeof(*f));
	_cleanup_free_ char *agent = NULL;

	assert_non_null(f);
	(void)umask(077); /* as the session has it */
	/* In memory where that can be had: everything is synchronised with the disk. */
	f->root = strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/state-test.XXXXXX"
						       : "/tmp/state-test.XXXXXX");
	assert_non_null(f->root);
	assert_non_null(mkdtemp(f->root));
	assert_true(asprintf(&f->home, "%s/home", f->root) > 0);
	assert_return_code(mkdir(f->home, 0700), errno);
	agent = state_path(f, ".claude");
	assert_return_code(mkdir(agent, 0700), errno);
	assert_return_code(view_init(&f->view, getuid(), f->home), 0);
	state_fixture_list(f, "claude", true);
	*state = f;
	return 0;
}

void state_fixture_list(StateFixture *f, const char *agent, bool home_file_alone)
{
	_cleanup_free_ char *directory = NULL, *project = NULL, *records = NULL;
	const Profile *profile = profile_find(agent);
	int lock_fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_return_code(lock_fd, errno);
	assert_non_null(profile);
	records = state_path(f, home_file_alone ? RECORD : PROJECT "/account");
	directory = state_path(f, home_file_alone ? ".claude" : PROJECT);
	if (!home_file_alone) {
		project = directory;
		assert_true(asprintf(&directory, "%s/%s", project, profile->state) > 0);
	}
	if (f->files.home)
		(void)close(f->files.lock_fd);
	state_files_done(&f->files);
	assert_return_code(
		state_files_init(&f->files, &(StateFilesOptions){ .profile = profile,
								  .view = view_functions(&f->view),
								  .home = f->home,
								  .agent = directory,
								  .records = records,
								  .home_file_alone = home_file_alone,
								  .uid = getuid(),
								  .lock_fd = lock_fd }),
		0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

int state_fixture_remove(void **state)
{
	StateFixture *f = *state;

	(void)close(f->files.lock_fd);
	state_files_done(&f->files);
	view_done(&f->view);
	(void)nftw(f->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	(void)strings_free(f->warnings);
	free(f->home);
	free(f->root);
	free(f);
	return 0;
}

static void write_new(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

void state_put(const StateFixture *f, const char *name, const char *text)
{
	_cleanup_free_ char *path = state_path(f, name), *beside = NULL;

	assert_true(asprintf(&beside, "%s.tmp.%d", path, getpid()) > 0);
	write_new(beside, text);
	assert_return_code(rename(beside, path), errno);
}

char *state_get(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name), *text = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	return TAKE_PTR(text);
}

void state_holds(const StateFixture *f, const char *name, const char *text)
{
	_cleanup_free_ char *found = state_get(f, name);

	if (!found || !streq(found, text))
		fail_msg("%s holds %s, not %s", name, found ?: "nothing", text);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void state_lists(const StateFixture *f, const char *directory, const char *names)
{
	_cleanup_free_ char *path = state_path(f, directory), *found = NULL;
	_cleanup_(strings_freep) char **list = NULL;
	const struct dirent *entry;
	size_t size = 0;
	DIR *dir = opendir(path);
	FILE *out = open_memstream(&found, &size);

	assert_non_null(dir);
	assert_non_null(out);
	while ((entry = readdir(dir)))
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			assert_return_code(strings_append(&list, entry->d_name), 0);
	(void)closedir(dir);
	if (list)
		qsort(list, strings_count(list), sizeof(char *), compare);
	for (size_t i = 0; list && list[i]; i++)
		(void)fprintf(out, "%s%s", i ? " " : "", list[i]);
	assert_int_equal(fclose(out), 0);
	if (!streq(found, names))
		fail_msg("%s has '%s', not '%s'", directory, found, names);
}

bool state_save(const StateFixture *f, const char *directory, const char *key)
{
	_cleanup_free_ char *name = NULL, *lock_name = NULL, *lock = NULL, *old = NULL, *text = NULL;

	assert_true(asprintf(&name, "%s/.claude.json", directory) > 0);
	assert_true(asprintf(&lock_name, "%s.lock", name) > 0);
	lock = state_path(f, lock_name);
	if (mkdir(lock, 0777) < 0) {
		assert_int_equal(errno, EEXIST);
		return false;
	}
	old = state_get(f, name);
	assert_non_null(old);
	assert_int_equal(old[0], '{');
	assert_true(asprintf(&text, "{\"%s\":1%s%s", key, streq(old, "{}") ? "" : ",", old + 1) > 0);
	state_put(f, name, text);
	assert_return_code(rmdir(lock), errno);
	return true;
}
