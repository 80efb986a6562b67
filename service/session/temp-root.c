/* SPDX-License-Identifier: MIT */
#include "service/session/temp-root.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "service/link/siphash.h"

#define KEY_NAME ".key"
#define KEY_BYTES 16u
#define NAME_LENGTH 13u /* 64 bits in digits of five */

static int check_directory(int fd, const char *path, uid_t uid, char **ret_problem)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != uid || (st.st_mode & 07777) != 0700)
		return refuse(ret_problem, -EPERM,
			      "%s is not a directory of user %u with mode 0700; remove it, and the service "
			      "makes it anew",
			      path, (unsigned)uid);
	return 0;
}

static int open_directory(int at_fd, const char *name, const char *path, uid_t uid, int *ret_fd,
			  char **ret_problem)
{
	_cleanup_close_ int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return refuse(ret_problem, -EPERM, "%s is not a directory; remove it", path);
	if (fd < 0)
		return -errno;
	r = check_directory(fd, path, uid, ret_problem);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Two sessions may start at once: the key appears whole, by link(2), or was there. */
static int key_make(int directory_fd)
{
	_cleanup_free_ char *name = NULL;
	uint8_t bytes[KEY_BYTES + 8];
	_cleanup_close_ int fd = FD_NONE;
	int r = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	if (asprintf(&name, KEY_NAME ".%02x%02x%02x%02x%02x%02x%02x%02x", bytes[16], bytes[17], bytes[18],
		     bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, bytes, KEY_BYTES) != (ssize_t)KEY_BYTES)
		r = -EIO;
	if (r == 0 && linkat(directory_fd, name, directory_fd, KEY_NAME, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlinkat(directory_fd, name, 0);
	return r;
}

static int key_read(int directory_fd, uid_t uid, uint8_t key[static KEY_BYTES])
{
	_cleanup_close_ int fd =
		openat(directory_fd, KEY_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != uid || st.st_size != KEY_BYTES)
		return -EPERM;
	return read(fd, key, KEY_BYTES) == (ssize_t)KEY_BYTES ? 0 : -EIO;
}

int temp_root_make(const char *root, uid_t uid, const char *workspace, char **ret, char **ret_problem)
{
	_cleanup_close_ int root_fd = FD_NONE, user_fd = FD_NONE, fd = FD_NONE;
	_cleanup_free_ char *user = NULL, *path = NULL;
	char name[NAME_LENGTH + 1];
	uint8_t key[KEY_BYTES];
	struct stat st;
	uint64_t hash;
	int r;

	root_fd = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root_fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (root_fd < 0)
		return refuse(ret_problem, -errno,
			      "%s is no directory; remove it, and the service makes it anew", root);
	if (fstat(root_fd, &st) < 0)
		return -errno;
	if ((st.st_uid != 0 && st.st_uid != uid) || (st.st_mode & 0022))
		return refuse(ret_problem, -EPERM,
			      "%s is somebody else's; let root remove it, and the service makes it anew",
			      root);
	if (asprintf(&user, "%u", (unsigned)uid) < 0) {
		user = NULL;
		return -ENOMEM;
	}
	if (asprintf(&path, "%s/%s", root, user) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = open_directory(root_fd, user, path, uid, &user_fd, ret_problem);
	if (r < 0)
		return r;

	r = key_read(user_fd, uid, key);
	if (r == -ENOENT) {
		r = key_make(user_fd);
		if (r == 0)
			r = key_read(user_fd, uid, key);
	}
	if (r < 0)
		return refuse(ret_problem, r, "%s/" KEY_NAME " cannot be used (%s); remove it", path,
			      strerror(-r));

	hash = siphash(key, workspace, strlen(workspace));
	for (size_t i = 0; i < NAME_LENGTH; i++, hash >>= 5)
		name[i] = "abcdefghijklmnopqrstuvwxyz234567"[hash & 31];
	name[NAME_LENGTH] = 0;
	freep(&path);
	if (asprintf(&path, "%s/%s/%s", root, user, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (mkdirat(user_fd, name, 0700) < 0 && errno != EEXIST)
		return refuse(ret_problem, -errno, "%s cannot be made: %s", path, strerror(errno));
	r = open_directory(user_fd, name, path, uid, &fd, ret_problem);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(path);
	return 0;
}
