/* SPDX-License-Identifier: MIT */
#include "service/session/state-take.h"

#include <fcntl.h>
#include <sys/file.h>

#include "service/link/pack.h"
#include "service/session/state-directory.h"
#include "service/session/state-lock.h"

/* The agents' file := the text. */
static int take_text(const StateFiles *files, const StateText *taken)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_(state_text_done) StateText agent = { 0 };
	_cleanup_close_ int agent_fd = FD_NONE;
	StateLock lock;
	int r;

	r = own_directory_open(&files->view, files->agent, files->uid, &node);
	if (r == 0)
		r = agent_fd = state_agent_directory(node.fd, files->link);
	if (r >= 0)
		r = state_file_read(agent_fd, files->link, files->uid, true, &agent);
	if (r < 0)
		return r;
	if (agent.text && agent.size == taken->size && memcmp(agent.text, taken->text, agent.size) == 0)
		return 0;
	r = state_lock_take(&lock, agent_fd, files->link);
	if (r == 0)
		r = state_file_replace(agent_fd, files->link, 0600, taken->text, taken->size, &agent.stamp);
	state_lock_drop(&lock);
	return r;
}

/* The link is made beside the file and changes places with it, so that the name is always there. */
static int link_restore(const StateFiles *files, int home_fd, const StateText *taken)
{
	_cleanup_free_ char *text = NULL, *beside = NULL;
	StateStamp found;
	int r;

	if (asprintf(&text, "%s/%s", files->state, files->link) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	if (asprintf(&beside, "%s" STATE_SUCCESSOR_SUFFIX, files->link) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	if (unlinkat(home_fd, beside, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(text, home_fd, beside) < 0)
		return -errno;
	r = renameat2(home_fd, beside, home_fd, files->link, RENAME_EXCHANGE) < 0 ? -errno : 0;
	if (r == 0)
		r = state_file_stamp(home_fd, beside, &found);
	if (r == 0) {
		found.changed_nsec = taken->stamp.changed_nsec;
		if (!state_stamp_equal(&found, &taken->stamp)) {
			/* A newer one: back with it, and it is taken next. */
			(void)renameat2(home_fd, beside, home_fd, files->link, RENAME_EXCHANGE);
			r = -EAGAIN;
		}
	}
	(void)unlinkat(home_fd, beside, 0);
	return r == -ENOENT ? -EAGAIN : r;
}

static int take(const StateFiles *files, int home_fd, char ***warnings)
{
	_cleanup_(state_text_done) StateText taken = { 0 };
	int r;

	r = state_file_read(home_fd, files->link, files->uid, true, &taken);
	if (r < 0 || taken.mode == 0 || S_ISLNK(taken.mode))
		return r;
	if (!taken.text)
		return strings_appendf(warnings,
				       "what a program inside saved in %s/%s was not kept: it is not a JSON "
				       "object, has a key twice, or is larger than 16 MiB",
				       files->home, files->link);
	r = take_text(files, &taken);
	if (r == 0)
		r = link_restore(files, home_fd, &taken);
	return r < 0 ? r : 1;
}

int state_take(const StateFiles *files, int home_fd, char ***warnings)
{
	int r;

	if (!files->link)
		return 0;
	while (flock(files->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	r = take(files, home_fd, warnings);
	if (r < 0 && r != -EAGAIN && r != -ENOMEM)
		(void)strings_appendf(warnings, "what a program inside saved in %s/%s was not kept: %s",
				      files->home, files->link, strerror(-r));
	(void)flock(files->lock_fd, LOCK_UN);
	return r;
}
