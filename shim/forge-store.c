/* SPDX-License-Identifier: MIT */
#include "shim/forge-store.h"

#include <fcntl.h>
#include <sys/stat.h>

#define CONFIG ".config"
#define NEW_FILE ".claude-sandbox.new"

void forge_text_done(ForgeText *text)
{
	if (text->bytes)
		explicit_bzero(text->bytes, text->n);
	free(text->bytes);
	*text = (ForgeText){ 0 };
}

static int refuse_errno(char **reterr, int error, const char *what)
{
	if (error == -ELOOP)
		return refuse(reterr, error, "%s is a link, which may lead anywhere; put the real one there",
			      what);
	if (error == -EPERM)
		return refuse(
			reterr, error,
			"%s is not your own plain one, or others may write there; look at its owner and mode",
			what);
	if (error == -E2BIG)
		return refuse(reterr, error, "%s is larger than any that its program writes; move it away",
			      what);
	return refuse(reterr, error, "%s cannot be used (%s); look at it", what, strerrordesc_np(-error));
}

/* Return: 0 with *ret_fd; -ELOOP for a link; another errno. */
static int enter(int parent_fd, const char *name, bool *made, int *ret_fd)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;

	if (mkdirat(parent_fd, name, 0700) == 0)
		*made = true;
	else if (errno != EEXIST)
		return -errno;
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* With O_DIRECTORY a link is ENOTDIR, as a file is (open(2)). */
	if (fd < 0)
		return errno == ENOTDIR && fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				       S_ISLNK(st.st_mode)
			       ? -ELOOP
			       : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != getuid() || (st.st_mode & S_IWOTH))
		return -EPERM;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int forge_store_open(const char *home, const char *name, int *ret_fd, bool *ret_made, char **reterr)
{
	_cleanup_close_ int home_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int config_fd = FD_NONE;
	_cleanup_free_ char *path = NULL;
	bool made = false;
	int r;

	if (home_fd < 0)
		return refuse_errno(reterr, -errno, home);
	r = enter(home_fd, CONFIG, &made, &config_fd);
	if (r < 0)
		return refuse_errno(reterr, r, "~/" CONFIG);
	if (asprintf(&path, "~/" CONFIG "/%s", name) < 0) {
		path = NULL;
		return refuse(reterr, -ENOMEM, "not enough memory");
	}
	made = false;
	r = enter(config_fd, name, &made, ret_fd);
	if (r < 0)
		return refuse_errno(reterr, r, path);
	*ret_made = made;
	return 0;
}

/* A file that was opened without following or waiting. Return: 0; -EPERM, -E2BIG, another errno. */
static int take(int fd, ForgeText *ret)
{
	ForgeText text = { 0 };
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != getuid())
		return -EPERM;
	text.bytes = malloc(FORGE_FILE_MOST + 1);
	if (!text.bytes)
		return -ENOMEM;
	while (n > 0 && text.n <= FORGE_FILE_MOST) {
		n = read(fd, text.bytes + text.n, FORGE_FILE_MOST + 1 - text.n);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			text.n += (size_t)n;
	}
	if (n < 0 || text.n > FORGE_FILE_MOST) {
		int error = n < 0 ? -errno : -E2BIG;

		forge_text_done(&text);
		return error;
	}
	*ret = text;
	return 0;
}

int forge_store_read(int directory_fd, const char *file, const char *what, ForgeText *ret, char **reterr)
{
	_cleanup_close_ int fd =
		openat(directory_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT) {
		*ret = (ForgeText){ 0 };
		return 0;
	}
	r = fd < 0 ? -errno : take(fd, ret);
	return r < 0 ? refuse_errno(reterr, r, what) : 0;
}

static int put(int fd, const ForgeText *text)
{
	for (size_t done = 0; done < text->n;) {
		ssize_t n = write(fd, text->bytes + done, text->n - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int forge_store_write(int directory_fd, const char *file, const char *what, const ForgeText *text,
		      char **reterr)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	/* What a killed predecessor or an agent left under this name is of no use to anybody. */
	if (unlinkat(directory_fd, NEW_FILE, 0) < 0 && errno != ENOENT)
		return refuse(reterr, -errno, "%s/%s in its directory: %s; remove it", what, NEW_FILE,
			      strerrordesc_np(errno));
	fd = openat(directory_fd, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : put(fd, text);
	if (r == 0 && renameat(directory_fd, NEW_FILE, directory_fd, file) < 0)
		r = -errno;
	if (r == 0)
		(void)fsync(directory_fd);
	else if (fd >= 0)
		(void)unlinkat(directory_fd, NEW_FILE, 0);
	return r < 0 ? refuse(reterr, r, "%s cannot be written (%s); nothing was stored", what,
			      strerrordesc_np(-r))
		     : 0;
}
