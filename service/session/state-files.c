/* SPDX-License-Identifier: MIT */
#include "service/session/state-files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "service/session/state-directory.h"

/* File systems keep times in steps of some milliseconds: what was changed this short before it was read may
 * be changed once more without a sign. */
#define UNCERTAIN_NSEC (50 * 1000000LL)
#define SEEN_FORMAT "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n"
#define SEEN_SCAN "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " "
#define SEEN_BYTES_MAX 512

void state_places_done(StatePlaces *places)
{
	close_fdp(&places->home_fd);
	close_fdp(&places->agent_fd);
	close_fdp(&places->host_fd);
	close_fdp(&places->record_fd);
	freep(&places->host_name);
	freep(&places->host_path);
	freep(&places->base_name);
	freep(&places->next_name);
	freep(&places->seen_name);
}

static char *join(const char *directory, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/* For reading where that is allowed, so that it can be synchronised. */
static int open_directory(const PlanNode *node)
{
	int fd = openat(node->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = openat(node->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_path(const StateFiles *files, const char *path, bool own, int *ret_fd, char **ret_problem)
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
	return 0;
}

/* Where the link at path leads when nothing is there yet. */
static int follow_dangling(const StateFiles *files, const char *path, char **ret)
{
	_cleanup_free_ char *text = NULL;
	const char *name;
	int r = files->view.read_link(files->view.userdata, path, &text);

	if (r == -EINVAL || r == -ENOENT) {
		*ret = strdup(path);
		return *ret ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	name = strrchr(text, '/');
	name = name ? name + 1 : text;
	if (*name == 0 || streq(name, ".") || streq(name, ".."))
		return -EISDIR;
	*ret = text[0] == '/' ? TAKE_PTR(text) : join(files->home, text);
	return *ret ? 0 : -ENOMEM;
}

/* The person's file may be a link into a collection of such files: what is replaced is the file there. */
static int open_host(const StateFiles *files, StatePlaces *places, char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = join(files->home, files->name), *target = NULL, *directory = NULL;
	const char *slash;
	int r;

	if (!path)
		return -ENOMEM;
	r = files->view.resolve(files->view.userdata, path, &node);
	if (r == 0)
		target = TAKE_PTR(node.path);
	else if (r == -ENOENT)
		r = follow_dangling(files, path, &target);
	if (r < 0)
		return refuse(ret_problem, r, "%s cannot be followed: %s", path, strerror(-r));
	slash = strrchr(target, '/');
	directory = strndup(target, slash == target ? 1 : (size_t)(slash - target));
	places->host_name = strdup(slash + 1);
	if (!directory || !places->host_name)
		return -ENOMEM;
	places->host_path = TAKE_PTR(target);
	return open_path(files, directory, false, &places->host_fd, ret_problem);
}

static int open_record(const StateFiles *files, bool make, StatePlaces *places, char **ret_problem)
{
	const char *name = files->name + (files->name[0] == '.');
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r;

	places->base_name = strdup(name);
	if (!places->base_name || asprintf(&places->next_name, "%s.next", name) < 0) {
		places->next_name = NULL;
		return -ENOMEM;
	}
	if (asprintf(&places->seen_name, "%s.seen", name) < 0) {
		places->seen_name = NULL;
		return -ENOMEM;
	}
	r = state_directory_open(&files->view, files->home, files->uid, make, &node);
	if (r == -ENOENT && !make)
		return 0;
	if (r == 0)
		r = places->record_fd = open_directory(&node);
	return r < 0 ? refuse(ret_problem, r, "%s/" STATE_DIRECTORY " cannot be made: %s", files->home,
			      strerror(-r))
		     : 0;
}

int state_places_open(const StateFiles *files, bool make, StatePlaces *ret, char **ret_problem)
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	_cleanup_free_ char *agent = join(files->home, files->directory);
	int r;

	if (!agent)
		return -ENOMEM;
	r = open_path(files, agent, true, &places.agent_fd, ret_problem);
	if (r == -ENOENT && ret_problem)
		freep(ret_problem);
	if (r < 0)
		return r;
	r = open_path(files, files->home, true, &places.home_fd, ret_problem);
	if (r == 0)
		r = open_host(files, &places, ret_problem);
	if (r == 0)
		r = open_record(files, make, &places, ret_problem);
	if (r < 0)
		return r;
	*ret = places;
	places = STATE_PLACES_INIT;
	return 0;
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

bool state_files_unchanged(const StateFiles *files)
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	StateStamp agent, host, seen_agent = { 0 }, seen_host = { 0 };
	int r;

	r = state_places_open(files, false, &places, NULL);
	if (r == -ENOENT)
		return true;
	if (r < 0 || state_file_stamp(places.agent_fd, files->name, &agent) < 0 ||
	    state_file_stamp(places.host_fd, places.host_name, &host) < 0)
		return false;
	(void)seen_read(&places, &seen_agent, &seen_host);
	return state_stamp_equal(&agent, &seen_agent) && state_stamp_equal(&host, &seen_host);
}
