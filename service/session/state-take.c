/* SPDX-License-Identifier: MIT */
#include "service/session/state-take.h"

#include <fcntl.h>
#include <sys/file.h>

#include "service/link/pack.h"
#include "service/session/state-lock.h"

/* The agents' file := the text. */
static int take_text(const StateFiles *files, const StateText *taken)
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	_cleanup_(state_text_done) StateText agent = { 0 };
	StateLock lock;
	int r;

	r = state_places_open(files, false, &places, NULL);
	if (r == 0)
		r = state_file_read(places.agent_fd, files->name, files->uid, true, &agent);
	if (r < 0)
		return r;
	if (agent.text && agent.size == taken->size && memcmp(agent.text, taken->text, agent.size) == 0)
		return 0;
	r = state_lock_take(&lock, places.agent_fd, files->name);
	if (r == 0)
		r = state_file_replace(places.agent_fd, files->name, 0600, taken->text, taken->size,
				       &agent.stamp);
	state_lock_drop(&lock);
	return r;
}

/* The link is made beside the file and changes places with it, so that the name is always there. */
static int link_restore(const StateFiles *files, int home_fd, const StateText *taken)
{
	_cleanup_free_ char *text = NULL, *beside = NULL;
	StateStamp found;
	int r;

	if (asprintf(&text, "%s/%s", files->directory, files->name) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	if (asprintf(&beside, "%s" STATE_SUCCESSOR_SUFFIX, files->name) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	if (unlinkat(home_fd, beside, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(text, home_fd, beside) < 0)
		return -errno;
	r = renameat2(home_fd, beside, home_fd, files->name, RENAME_EXCHANGE) < 0 ? -errno : 0;
	if (r == 0)
		r = state_file_stamp(home_fd, beside, &found);
	if (r == 0) {
		found.changed_nsec = taken->stamp.changed_nsec;
		if (!state_stamp_equal(&found, &taken->stamp)) {
			/* A newer one: back with it, and it is taken next. */
			(void)renameat2(home_fd, beside, home_fd, files->name, RENAME_EXCHANGE);
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

	r = state_file_read(home_fd, files->name, files->uid, true, &taken);
	if (r < 0 || taken.mode == 0 || S_ISLNK(taken.mode))
		return r;
	if (!taken.text)
		return strings_appendf(warnings,
				       "what a program inside saved in %s/%s was not kept: it is not a JSON "
				       "object, has a key twice, or is larger than 16 MiB",
				       files->home, files->name);
	r = take_text(files, &taken);
	if (r == 0)
		r = link_restore(files, home_fd, &taken);
	return r < 0 ? r : 1;
}

int state_take(const StateFiles *files, int home_fd, char ***warnings)
{
	int r;

	while (flock(files->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	r = take(files, home_fd, warnings);
	if (r < 0 && r != -EAGAIN && r != -ENOMEM)
		(void)strings_appendf(warnings, "what a program inside saved in %s/%s was not kept: %s",
				      files->home, files->name, strerror(-r));
	(void)flock(files->lock_fd, LOCK_UN);
	return r;
}
