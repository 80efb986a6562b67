/* SPDX-License-Identifier: MIT */
#include "service/daemon/run-dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "dbus/names.h"
#include "service/daemon/cgroup-text.h"
#include "service/link/bait-name.h"

/* A file and a caller's environment, each value with comment and origin. */
#define POLICY_BYTES_MAX (4u << 20)

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/*
 * Make name below parent_fd, or take the one that is there if uid owns it; then give it mode. path is for
 * messages. Return: its descriptor, or a negative errno with *ret_problem.
 */
static int directory_make(int parent_fd, const char *name, const char *path, uid_t uid, gid_t gid,
			  mode_t mode, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	bool made = false;
	struct stat st;

	if (mkdirat(parent_fd, name, 0700) == 0)
		made = true;
	else if (errno != EEXIST)
		return refuse(ret_problem, -errno, "%s cannot be made: %s", path, strerror(errno));

	fd = openat(parent_fd, name, DIRECTORY_FLAGS);
	if (fd < 0) {
		int r = errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;

		fd = FD_NONE;
		return refuse(ret_problem, r, "%s cannot be used: %s; remove what is there", path,
			      r == -EPERM ? "it is not a directory" : strerror(-r));
	}
	/* root alone writes the parent, so this is the very directory that was just made */
	if (made && (uid != 0 || gid != 0) && fchown(fd, uid, gid) < 0)
		return refuse(ret_problem, -errno, "%s cannot be given to uid %u: %s", path, uid,
			      strerror(errno));
	if (fstat(fd, &st) < 0)
		return refuse(ret_problem, -errno, "%s cannot be examined: %s", path, strerror(errno));
	if (st.st_uid != uid)
		return refuse(ret_problem, -EPERM, "%s belongs to uid %u instead of %u; remove it", path,
			      st.st_uid, uid);
	if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return refuse(ret_problem, -errno, "%s cannot be given mode %04o: %s", path, mode,
			      strerror(errno));
	return TAKE_FD(fd);
}

static int directory_open(const char *path)
{
	int fd = open(path, DIRECTORY_FLAGS);

	return fd < 0 ? -errno : fd;
}

/* A directory whose parent only root writes, or which is sticky and then checked for its owner. */
static int root_directory(const char *path, mode_t mode, char **ret_problem)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = strndup(path, (size_t)(slash - path));
	_cleanup_close_ int parent_fd = FD_NONE;

	if (!parent)
		return -ENOMEM;
	parent_fd = directory_open(parent);
	if (parent_fd < 0)
		return refuse(ret_problem, parent_fd, "%s cannot be opened: %s", parent,
			      strerror(-parent_fd));
	return directory_make(parent_fd, slash + 1, path, 0, 0, mode, ret_problem);
}

int run_dir_prepare(char **ret_problem)
{
	static const struct {
		const char *path;
		mode_t mode;
	} directories[] = {
		{ CS_RUN_DIR, 0755 },
		{ CS_SESSIONS_DIR, 0711 },
		{ CS_RUN_DIR "/users", 0711 },
	};

	bool first = access(CS_SESSIONS_DIR, F_OK) < 0 && errno == ENOENT;

	for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
		int fd = root_directory(directories[i].path, directories[i].mode, ret_problem);

		if (fd < 0)
			return fd;
		close_fd(fd);
	}
	return first;
}

/* As directory_make() for a user's directory below one of ours. Return: its descriptor, or a negative errno.
 */
static int user_directory(int parent_fd, const char *parent, uid_t user, uid_t uid, gid_t gid, mode_t mode,
			  char **ret_problem)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%u", parent, user) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return directory_make(parent_fd, path + strlen(parent) + 1, path, uid, gid, mode, ret_problem);
}

/* Return: a lock file in the user's directory, or a negative errno. */
static int open_lock(int directory_fd, uid_t uid, const char *name, char **ret_problem)
{
	_cleanup_close_ int fd =
		openat(directory_fd, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(ret_problem, -errno, "%s/users/%u/%s cannot be made: %s", CS_RUN_DIR, uid, name,
			      strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != 0)
		return refuse(ret_problem, -EPERM, "%s/users/%u/%s is not a file of root's; remove it",
			      CS_RUN_DIR, uid, name);
	return TAKE_FD(fd);
}

int run_dir_open_locks(uid_t uid, int *ret_guard_fd, int *ret_state_fd, char **ret_problem)
{
	_cleanup_close_ int users_fd = FD_NONE, fd = FD_NONE, guard_fd = FD_NONE, state_fd = FD_NONE;

	users_fd = directory_open(CS_RUN_DIR "/users");
	if (users_fd < 0)
		return refuse(ret_problem, users_fd, "%s cannot be opened: %s", CS_RUN_DIR "/users",
			      strerror(-users_fd));
	fd = user_directory(users_fd, CS_RUN_DIR "/users", uid, 0, 0, 0711, ret_problem);
	if (fd < 0)
		return fd;
	guard_fd = open_lock(fd, uid, "guard", ret_problem);
	if (guard_fd < 0)
		return guard_fd;
	state_fd = open_lock(fd, uid, "state", ret_problem);
	if (state_fd < 0)
		return state_fd;
	*ret_guard_fd = TAKE_FD(guard_fd);
	*ret_state_fd = TAKE_FD(state_fd);
	return 0;
}

int run_dir_make_temp(uid_t uid, gid_t gid, char **ret_problem)
{
	_cleanup_close_ int root_fd = FD_NONE, fd = FD_NONE;

	root_fd = root_directory(CS_TEMP_ROOT, 0711, ret_problem);
	if (root_fd < 0)
		return root_fd;
	fd = user_directory(root_fd, CS_TEMP_ROOT, uid, uid, gid, 0700, ret_problem);
	return fd < 0 ? fd : 0;
}

int run_dir_open_log(bool make, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;

	if (make)
		return root_directory(CS_LOG_DIR, 0700, ret_problem);
	fd = directory_open(CS_LOG_DIR);
	if (fd < 0)
		return TAKE_FD(fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == 0 ? TAKE_FD(fd) : -EPERM;
}

static int session_directory_open(const char *id)
{
	_cleanup_close_ int fd = FD_NONE;
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (asprintf(&path, CS_SESSIONS_DIR "/%s", id) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = directory_open(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != 0 || (st.st_mode & 022))
		return -EBADMSG;
	return TAKE_FD(fd);
}

int run_dir_make_session(const char *id)
{
	_cleanup_close_ int sessions_fd = FD_NONE, fd = FD_NONE;

	sessions_fd = directory_open(CS_SESSIONS_DIR);
	if (sessions_fd < 0)
		return sessions_fd;
	if (mkdirat(sessions_fd, id, 0700) < 0)
		return -errno;
	fd = openat(sessions_fd, id, DIRECTORY_FLAGS);
	if (fd < 0 || fchmod(fd, 0711) < 0) {
		int r = -errno;

		(void)unlinkat(sessions_fd, id, AT_REMOVEDIR);
		return r;
	}
	return 0;
}

/*
 * The address goes through the directory's descriptor: the kernel shows it to everybody, as it was given
 * (proc_net(5), unix), and an id is its user's business.
 */
static int link_address(int directory_fd, struct sockaddr_un *ret, socklen_t *ret_size)
{
	int n;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" RUN_DIR_LINK, directory_fd);
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	return 0;
}

int run_dir_bind_link(const char *id)
{
	_cleanup_close_ int directory_fd = session_directory_open(id), fd = FD_NONE;
	struct sockaddr_un address;
	socklen_t size;
	mode_t before;
	int r;

	if (directory_fd < 0)
		return directory_fd;
	r = link_address(directory_fd, &address, &size);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* unix(7): the socket's file takes the umask; connecting needs to write it. */
	before = umask(0177);
	r = bind(fd, (struct sockaddr *)&address, size) < 0 ? -errno : 0;
	umask(before);
	return r < 0 ? r : TAKE_FD(fd);
}

int run_dir_connect_link(const char *id)
{
	_cleanup_close_ int directory_fd = session_directory_open(id), fd = FD_NONE;
	struct sockaddr_un address;
	socklen_t size;
	int r;

	if (directory_fd < 0)
		return directory_fd;
	r = link_address(directory_fd, &address, &size);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, size) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int run_dir_write_group(const char *id, const char *path)
{
	_cleanup_close_ int directory_fd = session_directory_open(id);

	if (directory_fd < 0)
		return directory_fd;
	if (unlinkat(directory_fd, RUN_DIR_GROUP, 0) < 0 && errno != ENOENT)
		return -errno;
	return symlinkat(path, directory_fd, RUN_DIR_GROUP) < 0 ? -errno : 0;
}

int run_dir_read_group(const char *id, char **ret)
{
	_cleanup_close_ int directory_fd = session_directory_open(id);
	_cleanup_free_ char *path = malloc(CS_PATH_BYTES_MAX);
	ssize_t n;

	if (directory_fd < 0)
		return directory_fd;
	if (!path)
		return -ENOMEM;
	n = readlinkat(directory_fd, RUN_DIR_GROUP, path, CS_PATH_BYTES_MAX);
	if (n < 0)
		return -errno;
	if (n == CS_PATH_BYTES_MAX)
		return -EBADMSG;
	path[n] = '\0';
	if (!cgroup_path_is_sessions(path))
		return -EBADMSG;
	*ret = TAKE_PTR(path);
	return 0;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Whole or not at all. */
static int write_file(const char *id, const char *name, const char *new_name, const uint8_t *data,
		      size_t size)
{
	_cleanup_close_ int directory_fd = session_directory_open(id), fd = FD_NONE;
	int r;

	if (directory_fd < 0)
		return directory_fd;
	fd = openat(directory_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	if (r >= 0 && renameat(directory_fd, new_name, directory_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory_fd, new_name, 0);
	return r;
}

/* Only what root can have written. Return: 0 with *ret to be freed, -ENOENT, -EBADMSG, others. */
static int read_file(const char *id, const char *name, size_t max, uint8_t **ret, size_t *ret_size)
{
	_cleanup_close_ int directory_fd = session_directory_open(id), fd = FD_NONE;
	_cleanup_free_ uint8_t *data = NULL;
	struct stat st;
	ssize_t n;

	if (directory_fd < 0)
		return directory_fd;
	fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 077) || (uint64_t)st.st_size > max)
		return -EBADMSG;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	n = read(fd, data, (size_t)st.st_size + 1);
	if (n < 0)
		return -errno;
	*ret = TAKE_PTR(data);
	*ret_size = (size_t)n;
	return 0;
}

int run_dir_write_record(const char *id, const Record *record)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	int r;

	r = record_encode(record, &data, &size);
	return r < 0 ? r : write_file(id, RUN_DIR_RECORD, RUN_DIR_RECORD ".new", data, size);
}

int run_dir_read_record(const char *id, Record *ret)
{
	_cleanup_(record_done) Record record = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	int r;

	r = read_file(id, RUN_DIR_RECORD, RECORD_BYTES_MAX, &data, &size);
	if (r >= 0)
		r = record_decode(data, size, &record);
	if (r < 0)
		return r;
	if (!streq(record.id, id))
		return -EBADMSG;
	*ret = record;
	record = (Record){ 0 };
	return 0;
}

int run_dir_write_policy(const char *id, const Config *config)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	pack_init(&w, POLICY_BYTES_MAX);
	config_pack(config, &w);
	return w.error ?: write_file(id, RUN_DIR_POLICY, RUN_DIR_POLICY ".new", w.data, w.size);
}

int run_dir_read_policy(const char *id, Config *ret)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_free_ uint8_t *data = NULL;
	PackReader reader;
	size_t size = 0;
	int r;

	r = read_file(id, RUN_DIR_POLICY, POLICY_BYTES_MAX, &data, &size);
	if (r < 0)
		return r;
	unpack_init(&reader, data, size);
	r = config_unpack(&reader, &config);
	if (r >= 0)
		r = unpack_finish(&reader);
	if (r < 0)
		return r;
	*ret = config;
	config = CONFIG_INIT;
	return 0;
}

/* Of a session that was killed in the midst of its checks. A name of ours, whatever lies there. */
static void remove_bait(const char *id)
{
	_cleanup_free_ char *path = bait_path(id);

	if (path)
		(void)unlink(path);
}

int run_dir_remove_session(const char *id)
{
	static const char *const files[] = { RUN_DIR_LINK,          RUN_DIR_GROUP,  RUN_DIR_POLICY,
					     RUN_DIR_POLICY ".new", RUN_DIR_RECORD, RUN_DIR_RECORD ".new" };
	_cleanup_close_ int sessions_fd = FD_NONE, fd = FD_NONE;

	sessions_fd = directory_open(CS_SESSIONS_DIR);
	if (sessions_fd < 0)
		return sessions_fd;
	fd = openat(sessions_fd, id, DIRECTORY_FLAGS);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (unlinkat(fd, files[i], 0) < 0 && errno != ENOENT)
			return -errno;
	remove_bait(id);
	return unlinkat(sessions_fd, id, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int run_dir_each_session(void (*each)(void *userdata, const char *id), void *userdata)
{
	struct dirent *entry;
	DIR *directory;

	directory = opendir(CS_SESSIONS_DIR);
	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		if (session_id_valid(entry->d_name))
			each(userdata, entry->d_name);
	closedir(directory);
	return 0;
}
