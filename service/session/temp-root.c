/* SPDX-License-Identifier: MIT */
#include "service/session/temp-root.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "service/session/workspace-key.h"

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

int temp_root_make(const char *root, uid_t uid, const char *workspace, char **ret, char **ret_problem)
{
	_cleanup_close_ int root_fd = FD_NONE, user_fd = FD_NONE, fd = FD_NONE;
	_cleanup_free_ char *user = NULL, *path = NULL;
	char name[WORKSPACE_KEY_LENGTH + 1];
	struct stat st;
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

	r = workspace_key(user_fd, uid, workspace, name);
	if (r < 0)
		return refuse(ret_problem, r, "%s/" WORKSPACE_KEY_FILE " cannot be used (%s); remove it",
			      path, strerror(-r));
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
