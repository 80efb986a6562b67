/* SPDX-License-Identifier: MIT */
#include "service/daemon/users.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

#define NSS_BUFFER_MAX (1u << 20)

typedef struct KeptUser {
	User user;
	uint64_t until_usec;
	struct KeptUser *next;
} KeptUser;

typedef struct KeptGroup {
	char *name;
	bool exists;
	gid_t gid;
	uint64_t until_usec;
	struct KeptGroup *next;
} KeptGroup;

/* Which file it was; all zero for none. */
typedef struct FileStamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
} FileStamp;

struct Users {
	FileStamp passwd, group;
	KeptUser *users;
	KeptGroup *groups;
	size_t n_users, n_groups;
};

bool shell_is_login(const char *shell)
{
	static const char *const none[] = { "nologin", "false", "true", "sync", "halt", "shutdown" };
	const char *name = strrchr(shell, '/');

	/* passwd(5): an empty field is /bin/sh. */
	if (shell[0] == '\0')
		return true;
	name = name ? name + 1 : shell;
	for (size_t i = 0; i < ELEMENTSOF(none); i++)
		if (streq(name, none[i]))
			return false;
	return true;
}

static void kept_user_free(KeptUser *kept)
{
	free(kept->user.name);
	free(kept->user.home);
	free(kept->user.shell);
	free(kept);
}

static void kept_group_free(KeptGroup *kept)
{
	free(kept->name);
	free(kept);
}

/* Return: has it changed since it was looked at last? */
static bool file_has_changed(const char *path, FileStamp *stamp)
{
	FileStamp now;
	struct stat st;

	/* All of it is compared, and whatever lies between the members. */
	memset(&now, 0, sizeof(now));
	if (stat(path, &st) == 0) {
		now.device = st.st_dev;
		now.inode = st.st_ino;
		now.size = st.st_size;
		now.modified = st.st_mtim;
		now.changed = st.st_ctim;
	}
	if (memcmp(&now, stamp, sizeof(now)) == 0)
		return false;
	memcpy(stamp, &now, sizeof(now));
	return true;
}

/* What has become old goes; so does the oldest when there are too many, and all when a file says something else. */
static void users_trim(Users *users, uint64_t now)
{
	for (KeptUser **k = &users->users; *k;) {
		KeptUser *kept = *k;

		if (kept->until_usec > now && (kept->next || users->n_users < USERS_KEPT_MAX)) {
			k = &kept->next;
			continue;
		}
		*k = kept->next;
		users->n_users--;
		kept_user_free(kept);
	}
	for (KeptGroup **k = &users->groups; *k;) {
		KeptGroup *kept = *k;

		if (kept->until_usec > now && (kept->next || users->n_groups < USERS_KEPT_MAX)) {
			k = &kept->next;
			continue;
		}
		*k = kept->next;
		users->n_groups--;
		kept_group_free(kept);
	}
}

static int passwd_ask(uid_t uid, KeptUser **ret)
{
	KeptUser *kept;

	for (size_t size = 4096; size <= NSS_BUFFER_MAX; size *= 4) {
		_cleanup_free_ char *buffer = malloc(size);
		struct passwd entry, *found = NULL;
		int r;

		if (!buffer)
			return -ENOMEM;
		r = getpwuid_r(uid, &entry, buffer, size, &found);
		if (r == ERANGE)
			continue;
		if (r != 0)
			return -r;
		if (!found)
			return -ENOENT;
		if (!entry.pw_name || !entry.pw_name[0] || !entry.pw_dir || entry.pw_dir[0] != '/')
			return -EINVAL;

		kept = calloc(1, sizeof(*kept));
		if (!kept)
			return -ENOMEM;
		kept->user = (User){
			.uid = uid,
			.gid = entry.pw_gid,
			.name = strdup(entry.pw_name),
			.home = strdup(entry.pw_dir),
			.shell = strdup(entry.pw_shell && entry.pw_shell[0] ? entry.pw_shell : "/bin/sh"),
		};
		if (!kept->user.name || !kept->user.home || !kept->user.shell) {
			kept_user_free(kept);
			return -ENOMEM;
		}
		*ret = kept;
		return 0;
	}
	return -ERANGE;
}

/* Return: what time it is. After a change of the files nothing is kept. */
static uint64_t users_now(Users *users)
{
	bool passwd = file_has_changed("/etc/passwd", &users->passwd),
	     group = file_has_changed("/etc/group", &users->group);

	if (passwd || group)
		users_trim(users, UINT64_MAX);
	return clock_usec(CLOCK_MONOTONIC);
}

int users_find(Users *users, uid_t uid, const User **ret)
{
	uint64_t now = users_now(users);
	KeptUser *kept = NULL;
	int r;

	users_trim(users, now);
	for (KeptUser *k = users->users; k; k = k->next)
		if (k->user.uid == uid) {
			*ret = &k->user;
			return 0;
		}
	r = passwd_ask(uid, &kept);
	if (r < 0)
		return r;
	/* What refuses is asked again the next time: somebody may be mending it. */
	kept->until_usec =
		shell_is_login(kept->user.shell) ? clock_usec(CLOCK_MONOTONIC) + USERS_KEPT_USEC : now;
	kept->next = users->users;
	users->users = kept;
	users->n_users++;
	*ret = &kept->user;
	return 0;
}

static int group_ask(const char *name, bool *ret_exists, gid_t *ret_gid)
{
	for (size_t size = 4096; size <= NSS_BUFFER_MAX; size *= 4) {
		_cleanup_free_ char *buffer = malloc(size);
		struct group entry, *found = NULL;
		int r;

		if (!buffer)
			return -ENOMEM;
		r = getgrnam_r(name, &entry, buffer, size, &found);
		if (r == ERANGE)
			continue;
		if (r != 0)
			return -r;
		*ret_exists = found != NULL;
		*ret_gid = found ? entry.gr_gid : (gid_t)-1;
		return 0;
	}
	return -ERANGE;
}

int users_group(Users *users, const char *name, gid_t *ret)
{
	uint64_t now = users_now(users);
	KeptGroup *kept = NULL;
	int r;

	users_trim(users, now);
	for (KeptGroup *k = users->groups; k && !kept; k = k->next)
		if (streq(k->name, name))
			kept = k;
	if (!kept) {
		bool exists = false;
		gid_t gid = (gid_t)-1;

		r = group_ask(name, &exists, &gid);
		if (r < 0)
			return r;
		kept = calloc(1, sizeof(*kept));
		if (!kept)
			return -ENOMEM;
		kept->name = strdup(name);
		if (!kept->name) {
			kept_group_free(kept);
			return -ENOMEM;
		}
		kept->exists = exists;
		kept->gid = gid;
		kept->until_usec = exists ? clock_usec(CLOCK_MONOTONIC) + USERS_KEPT_USEC : now;
		kept->next = users->groups;
		users->groups = kept;
		users->n_groups++;
	}
	if (!kept->exists)
		return -ENOENT;
	*ret = kept->gid;
	return 0;
}

int users_new(Users **ret)
{
	Users *users = calloc(1, sizeof(*users));

	if (!users)
		return -ENOMEM;
	*ret = users;
	return 0;
}

Users *users_free(Users *users)
{
	if (users)
		users_trim(users, UINT64_MAX);
	free(users);
	return NULL;
}
