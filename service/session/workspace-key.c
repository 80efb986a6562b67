/* SPDX-License-Identifier: MIT */
#include "service/session/workspace-key.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "service/link/siphash.h"

#define KEY_BYTES 16u

/* Two sessions may start at once: the key appears whole, by link(2), or was there. */
static int key_make(int directory_fd)
{
	_cleanup_free_ char *name = NULL;
	uint8_t bytes[KEY_BYTES + 8];
	_cleanup_close_ int fd = FD_NONE;
	int r = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	if (asprintf(&name, WORKSPACE_KEY_FILE ".%02x%02x%02x%02x%02x%02x%02x%02x", bytes[16], bytes[17],
		     bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, bytes, KEY_BYTES) != (ssize_t)KEY_BYTES)
		r = -EIO;
	if (r == 0 && linkat(directory_fd, name, directory_fd, WORKSPACE_KEY_FILE, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlinkat(directory_fd, name, 0);
	return r;
}

static int key_read(int directory_fd, uid_t uid, uint8_t key[static KEY_BYTES])
{
	_cleanup_close_ int fd =
		openat(directory_fd, WORKSPACE_KEY_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != uid || st.st_size != KEY_BYTES)
		return -EPERM;
	return read(fd, key, KEY_BYTES) == (ssize_t)KEY_BYTES ? 0 : -EIO;
}

int workspace_key(int directory_fd, uid_t uid, const char *workspace,
		  char ret[static WORKSPACE_KEY_LENGTH + 1])
{
	uint8_t key[KEY_BYTES];
	uint64_t hash;
	int r = key_read(directory_fd, uid, key);

	if (r == -ENOENT) {
		r = key_make(directory_fd);
		if (r == 0)
			r = key_read(directory_fd, uid, key);
	}
	if (r < 0)
		return r;
	hash = siphash(key, workspace, strlen(workspace));
	for (size_t i = 0; i < WORKSPACE_KEY_LENGTH; i++, hash >>= 5)
		ret[i] = "abcdefghijklmnopqrstuvwxyz234567"[hash & 31];
	ret[WORKSPACE_KEY_LENGTH] = 0;
	return 0;
}
