/* SPDX-License-Identifier: MIT */
#include "service/session/state-files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/paths.h"
#include "service/link/pack.h"
#include "service/link/siphash.h"
#include "service/plan/workspace-rules.h"
#include "service/session/state-directory.h"
#include "service/session/state-lock.h"

/* File systems keep times in steps of some milliseconds: what was changed this short before it was read may
 * be changed once more without a sign. */
#define UNCERTAIN_NSEC (50 * 1000000LL)
#define SEEN_FORMAT "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n"
#define SEEN_SCAN "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " "
#define SEEN_BYTES_MAX 512

static char *join(const char *directory, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

const char *state_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- the list ---- */

void state_files_done(StateFiles *files)
{
	for (size_t i = 0; i < files->n_names; i++) {
		free(files->names[i].agent);
		free(files->names[i].host);
		free(files->names[i].record);
	}
	for (size_t i = 0; i < files->n_locks; i++) {
		free(files->locks[i].agent);
		free(files->locks[i].host);
	}
	free(files->names);
	free(files->locks);
	free(files->home);
	free(files->agent);
	free(files->records);
	free(files->state);
	free(files->link);
	*files = (StateFiles){ .lock_fd = FD_NONE };
}

/* One name for a path: "agent/auth.json" is "agent%2fauth.json". */
static char *flatten(const char *path)
{
	_cleanup_free_ char *text = malloc(3 * strlen(path) + 1);
	char *at = text;

	if (!text)
		return NULL;
	for (; *path; path++)
		if (*path == '/' || *path == '%')
			at += snprintf(at, 4, "%%%02x", (unsigned)*path);
		else
			*at++ = *path;
	*at = 0;
	return TAKE_PTR(text);
}

static bool is_lock_of(const char *lock, const char *name)
{
	const char *rest = starts_with(lock, name);

	return rest && streq(rest, STATE_LOCK_SUFFIX);
}

static bool is_locked(const Profile *profile, const char *name)
{
	for (const char *const *lock = profile->account_locks; *lock; lock++)
		if (is_lock_of(*lock, name))
			return true;
	return false;
}

static bool is_home_file(const Profile *profile, const char *name)
{
	return profile->home_file && streq(profile->home_file, name);
}

static int add_name(StateFiles *files, const Profile *profile, const char *name)
{
	StateName *added = &files->names[files->n_names++];
	size_t n = strlen(name);

	*added =
		(StateName){ .agent = strdup(name),
			     .host = is_home_file(profile, name) ? strdup(name) : profile_path(profile, name),
			     .record = flatten(name),
			     .json = n > 5 && streq(name + n - 5, ".json"),
			     .locked = is_locked(profile, name) };
	return added->agent && added->host && added->record ? 0 : -ENOMEM;
}

static int add_lock(StateFiles *files, const Profile *profile, const char *name)
{
	StateLockName *added = &files->locks[files->n_locks++];

	*added = (StateLockName){ .agent = strdup(name), .host = profile_path(profile, name) };
	return added->agent && added->host ? 0 : -ENOMEM;
}

static int fill_lists(StateFiles *files, const StateFilesOptions *options)
{
	const Profile *profile = options->profile;
	size_t n_names = strings_count((char *const *)profile->account_files),
	       n_locks = strings_count((char *const *)profile->account_locks);
	int r = 0;

	files->names = calloc(n_names + 1, sizeof(*files->names));
	files->locks = calloc(n_locks + 1, sizeof(*files->locks));
	if (!files->names || !files->locks)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n_names; i++)
		if (!options->home_file_alone || is_home_file(profile, profile->account_files[i]))
			r = add_name(files, profile, profile->account_files[i]);
	/* What is merged by key needs nobody to wait, and Claude saves the home's file several times a second. */
	for (size_t i = 0; r == 0 && !options->home_file_alone && i < n_locks; i++)
		if (!profile->home_file || !is_lock_of(profile->account_locks[i], profile->home_file))
			r = add_lock(files, profile, profile->account_locks[i]);
	return r;
}

int state_files_init(StateFiles *ret, const StateFilesOptions *options)
{
	const Profile *profile = options->profile;
	StateFiles files = { .view = options->view,
			     .home = strdup(options->home),
			     .agent = strdup(options->agent),
			     .records = strdup(options->records),
			     .state = strdup(profile->state),
			     .link = profile->home_file ? strdup(profile->home_file) : NULL,
			     .uid = options->uid,
			     .lock_fd = options->lock_fd };
	int r = 0;

	if (!files.home || !files.agent || !files.records || !files.state ||
	    (profile->home_file && !files.link))
		r = -ENOMEM;
	if (r == 0)
		r = fill_lists(&files, options);
	if (r < 0) {
		state_files_done(&files);
		return r;
	}
	*ret = files;
	return 0;
}

/* ---- directories ---- */

void state_places_done(StatePlaces *places)
{
	close_fdp(&places->root_fd);
	close_fdp(&places->agent_fd);
	close_fdp(&places->host_fd);
	close_fdp(&places->lock_fd);
	close_fdp(&places->record_fd);
	freep(&places->host_name);
	freep(&places->host_path);
	freep(&places->next_name);
	freep(&places->seen_name);
}

/* For reading where that is allowed, so that it can be synchronised. */
static int open_directory(const PlanNode *node)
{
	int fd = openat(node->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = openat(node->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* node: may be NULL. */
static int open_path(const StateFiles *files, const char *path, bool own, PlanNode *ret_node, int *ret_fd,
		     char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = files->view.resolve(files->view.userdata, path, &node), fd;

	if (r == 0 && !S_ISDIR(node.mode))
		r = -ENOTDIR;
	if (r == 0 && own && node.uid != files->uid)
		return refuse(ret_problem, -EPERM, "%s is another user's; give it back with chown", path);
	if (r < 0)
		return refuse(ret_problem, r, "%s cannot be used: %s", path, strerror(-r));
	fd = open_directory(&node);
	if (fd < 0)
		return refuse(ret_problem, fd, "%s cannot be opened: %s", path, strerror(-fd));
	*ret_fd = fd;
	if (ret_node) {
		*ret_node = node;
		node = PLAN_NODE_INIT;
	}
	return 0;
}

/* The directory of the last name of path; "/" for one right below it. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int state_agent_directory(int root_fd, const char *name)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	const char *slash = strrchr(name, '/');
	_cleanup_free_ char *directory = slash ? strndup(name, (size_t)(slash - name)) : strdup(".");
	int fd;

	if (!directory)
		return -ENOMEM;
	fd = (int)syscall(SYS_openat2, root_fd, directory, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int open_agent(const StateFiles *files, const StateName *name, StatePlaces *places, char **ret_problem)
{
	int r = open_path(files, files->agent, true, NULL, &places->root_fd, ret_problem);

	if (r == -ENOENT && ret_problem)
		freep(ret_problem);
	if (r < 0)
		return r;
	places->agent_name = state_base_name(name->agent);
	r = state_agent_directory(places->root_fd, name->agent);
	if (r >= 0)
		places->agent_fd = r;
	else if (r != -ENOENT)
		return refuse(ret_problem, r, "%s/%s cannot be used: %s", files->agent, name->agent,
			      strerror(-r));
	return 0;
}

/* Return: 0; 1 with the text of the link that name is; a negative errno. */
static int read_link(int directory_fd, const char *name, char **ret)
{
	_cleanup_free_ char *text = malloc(PATH_MAX);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = readlinkat(directory_fd, name, text, PATH_MAX);
	if (n < 0)
		return errno == EINVAL || errno == ENOENT ? 0 : -errno;
	if (n == 0 || n == PATH_MAX)
		return -ENAMETOOLONG;
	text[n] = 0;
	*ret = TAKE_PTR(text);
	return 1;
}

/* Before agents had a directory of their own they could write the person's: a link may be theirs. */
static bool is_credential(const StateFiles *files, const char *path)
{
	_cleanup_(plan_node_done) PlanNode home = PLAN_NODE_INIT;
	_cleanup_free_ char *own = NULL;

	if (files->view.resolve(files->view.userdata, files->home, &home) < 0 ||
	    !(own = join(home.path, files->state)))
		return true;
	if (path_is_within(path, own))
		return false;
	for (const char *const *name = credential_paths(); *name; name++) {
		_cleanup_free_ char *hidden = join(home.path, *name);

		if (!hidden || path_is_within(path, hidden))
			return true;
	}
	return false;
}

/* directory: where the link lies. Return: 0 with an absolute path that no link of ours is in; -ELOOP; ... */
static int follow(const StateFiles *files, const char *directory, const char *text, char **ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = text[0] == '/' ? strdup(text) : join(directory, text);
	const char *name;
	int r;

	if (!path)
		return -ENOMEM;
	name = state_base_name(path);
	if (*name == 0 || streq(name, ".") || streq(name, ".."))
		return -EISDIR;
	r = files->view.resolve(files->view.userdata, path, &node);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret = r == 0 ? TAKE_PTR(node.path) : TAKE_PTR(path);
	return 0;
}

static int open_target(const StateFiles *files, const char *own, const char *target, StatePlaces *places,
		       char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *directory = parent_of(target), *path = NULL;
	int r;

	if (!directory)
		return -ENOMEM;
	r = open_path(files, directory, false, &node, &places->host_fd, ret_problem);
	if (r < 0)
		return r == -ENOENT ? -ENOLINK : r;
	path = join(streq(node.path, "/") ? "" : node.path, state_base_name(target));
	if (!path)
		return -ENOMEM;
	if (is_credential(files, path))
		return refuse(ret_problem, -EPERM, "%s leads to %s, where credentials lie; replace the link",
			      own, path);
	freep(&places->host_path);
	places->host_path = TAKE_PTR(path);
	return 0;
}

/* The person's file may be a link into a collection of such files: what is replaced is the file there. */
static int open_host(const StateFiles *files, const StateName *name, StatePlaces *places, char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = join(files->home, name->host), *directory = NULL, *text = NULL,
			    *target = NULL;
	int r;

	if (!path || !(directory = parent_of(path)))
		return -ENOMEM;
	places->lock_name = state_base_name(name->host);
	r = open_path(files, directory, true, &node, &places->lock_fd, ret_problem);
	if (r == -ENOENT) {
		/* It is made when there is something to put in it. */
		if (ret_problem)
			freep(ret_problem);
		places->host_name = strdup(places->lock_name);
		places->host_path = TAKE_PTR(path);
		return places->host_name ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	r = read_link(places->lock_fd, places->lock_name, &text);
	if (r > 0)
		r = follow(files, node.path, text, &target);
	if (r < 0)
		return refuse(ret_problem, r, "%s cannot be followed: %s", path, strerror(-r));
	places->host_name = strdup(target ? state_base_name(target) : places->lock_name);
	if (!places->host_name)
		return -ENOMEM;
	if (target)
		return open_target(files, path, target, places, ret_problem);
	places->host_path = TAKE_PTR(path);
	places->host_fd = fcntl(places->lock_fd, F_DUPFD_CLOEXEC, 3);
	return places->host_fd < 0 ? -errno : 0;
}

/* The directory above it is the session's, as ~/.local/state/claude-sandbox is, which is made here. */
static int open_records(const StateFiles *files, bool make, PlanNode *ret)
{
	_cleanup_free_ char *parent = parent_of(files->records);
	_cleanup_(plan_node_done) PlanNode state = PLAN_NODE_INIT, node = PLAN_NODE_INIT;
	int r = own_directory_open(&files->view, files->records, files->uid, ret);

	if (r != -ENOENT || !make)
		return r;
	if (!parent)
		return -ENOMEM;
	r = state_directory_open(&files->view, files->home, files->uid, true, &state);
	if (r == 0)
		r = own_directory_open(&files->view, parent, files->uid, &node);
	if (r == 0 && mkdirat(node.fd, state_base_name(files->records), 0700) < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? r : own_directory_open(&files->view, files->records, files->uid, ret);
}

static int open_record(const StateFiles *files, const StateName *name, bool make, StatePlaces *places,
		       char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r;

	if (asprintf(&places->next_name, "%s.next", name->record) < 0) {
		places->next_name = NULL;
		return -ENOMEM;
	}
	if (asprintf(&places->seen_name, "%s.seen", name->record) < 0) {
		places->seen_name = NULL;
		return -ENOMEM;
	}
	r = open_records(files, make, &node);
	if (r == -ENOENT && !make)
		return 0;
	if (r == 0)
		r = places->record_fd = open_directory(&node);
	return r < 0 ? refuse(ret_problem, r, "%s cannot be made: %s", files->records, strerror(-r)) : 0;
}

int state_places_open(const StateFiles *files, const StateName *name, bool make, StatePlaces *ret,
		      char **ret_problem)
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	int r;

	r = open_agent(files, name, &places, ret_problem);
	if (r == 0)
		r = open_host(files, name, &places, ret_problem);
	if (r == 0)
		r = open_record(files, name, make, &places, ret_problem);
	if (r < 0)
		return r;
	*ret = places;
	places = STATE_PLACES_INIT;
	return 0;
}

/* The directories on the way to name from directory_fd. Return: the last one's descriptor; a negative errno. */
static int make_way(int directory_fd, const char *name)
{
	_cleanup_close_ int fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 3);

	for (const char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		_cleanup_free_ char *part = strndup(name, (size_t)(slash - name));
		int next;

		if (!part)
			return -ENOMEM;
		if (mkdirat(fd, part, 0700) < 0 && errno != EEXIST)
			return -errno;
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close_fdp(&fd);
		fd = next;
	}
	return fd < 0 ? -errno : TAKE_FD(fd);
}

int state_places_make_agent(const StateName *name, StatePlaces *places)
{
	if (places->agent_fd < 0)
		places->agent_fd = make_way(places->root_fd, name->agent);
	return places->agent_fd < 0 ? places->agent_fd : 0;
}

int state_places_make_host(const StateFiles *files, const StateName *name, StatePlaces *places)
{
	_cleanup_close_ int home_fd = FD_NONE;
	int r;

	if (places->host_fd >= 0)
		return 0;
	r = open_path(files, files->home, true, NULL, &home_fd, NULL);
	if (r == 0)
		r = places->host_fd = make_way(home_fd, name->host);
	if (r >= 0)
		r = places->lock_fd = fcntl(places->host_fd, F_DUPFD_CLOEXEC, 3);
	return r < 0 ? r : 0;
}

/* ---- what was seen last ---- */

static int seen_read(const StatePlaces *places, StateStamp *ret_agent, StateStamp *ret_host)
{
	_cleanup_close_ int fd = FD_NONE;
	char text[SEEN_BYTES_MAX + 1];
	StateStamp a, h;
	ssize_t n;

	if (places->record_fd < 0)
		return -ENOENT;
	fd = openat(places->record_fd, places->seen_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, SEEN_BYTES_MAX);
	if (n < 0)
		return -errno;
	text[n] = 0;
	if (sscanf(text, SEEN_SCAN SEEN_SCAN, &a.device, &a.inode, &a.size, &a.modified_nsec, &a.changed_nsec,
		   &h.device, &h.inode, &h.size, &h.modified_nsec, &h.changed_nsec) != 10)
		return -EBADMSG;
	*ret_agent = a;
	*ret_host = h;
	return 0;
}

static StateStamp certain(const StateStamp *stamp)
{
	StateStamp kept = *stamp;
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (kept.inode != 0 &&
	    (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - kept.changed_nsec < UNCERTAIN_NSEC)
		kept.changed_nsec = -1; /* like nothing that is there */
	return kept;
}

int state_seen_write(const StatePlaces *places, const StateStamp *agent, const StateStamp *host)
{
	const StateStamp a = certain(agent), h = certain(host);
	char text[SEEN_BYTES_MAX];
	int n = snprintf(text, sizeof(text), SEEN_FORMAT SEEN_FORMAT, a.device, a.inode, a.size,
			 a.modified_nsec, a.changed_nsec, h.device, h.inode, h.size, h.modified_nsec,
			 h.changed_nsec);

	return state_file_put(places->record_fd, places->seen_name, text, (size_t)n, false);
}

static int stamp_read(int directory_fd, const char *name, StateStamp *ret)
{
	*ret = (StateStamp){ 0 };
	return directory_fd < 0 ? 0 : state_file_stamp(directory_fd, name, ret);
}

/* Return: is nothing changed? *stamps: of both, zero for what cannot be looked at. */
static bool look(const StateFiles *files, const StateName *name, StateStamp stamps[static 2])
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	StateStamp seen_agent = { 0 }, seen_host = { 0 };
	int r;

	stamps[0] = stamps[1] = (StateStamp){ 0 };
	r = state_places_open(files, name, false, &places, NULL);
	if (r == -ENOENT)
		return true;
	if (r < 0 || stamp_read(places.agent_fd, places.agent_name, &stamps[0]) < 0 ||
	    stamp_read(places.host_fd, places.host_name, &stamps[1]) < 0)
		return false;
	(void)seen_read(&places, &seen_agent, &seen_host);
	return state_stamp_equal(&stamps[0], &seen_agent) && state_stamp_equal(&stamps[1], &seen_host);
}

bool state_file_unchanged(const StateFiles *files, const StateName *name)
{
	StateStamp stamps[2];

	return look(files, name, stamps);
}

bool state_files_unchanged(const StateFiles *files)
{
	for (size_t i = 0; i < files->n_names; i++)
		if (!state_file_unchanged(files, &files->names[i]))
			return false;
	return true;
}

uint64_t state_files_digest(const StateFiles *files)
{
	static const uint8_t key[16];
	uint64_t digest = 0;

	for (size_t i = 0; i < files->n_names; i++) {
		struct {
			uint64_t before;
			StateStamp stamps[2];
		} all = { .before = digest };

		(void)look(files, &files->names[i], all.stamps);
		digest = siphash(key, &all, sizeof(all));
	}
	return digest;
}
