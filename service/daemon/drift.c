/* SPDX-License-Identifier: MIT */
#include "service/daemon/drift.h"

#include <sys/stat.h>

#include "service/daemon/config-file.h"
#include "service/daemon/run-dir.h"
#include "service/plan/config-drift.h"

#define UNKNOWN "what it was started with is not known any more; start it anew"

static PolicyStamp stamp_now(void)
{
	struct stat st;

	if (lstat(CS_CONFIG_PATH, &st) < 0)
		return (PolicyStamp){ .known = true };
	return (PolicyStamp){ .known = true,
			      .device = st.st_dev,
			      .inode = st.st_ino,
			      .size = st.st_size,
			      .changed_nsec = st.st_ctim.tv_sec * 1000000000ll + st.st_ctim.tv_nsec };
}

static bool stamps_equal(const PolicyStamp *a, const PolicyStamp *b)
{
	return a->known == b->known && a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed_nsec == b->changed_nsec;
}

static bool strings_equal(char *const *a, char *const *b)
{
	size_t n = a ? strings_count(a) : 0;

	if (n != (b ? strings_count(b) : 0))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!streq(a[i], b[i]))
			return false;
	return true;
}

bool drift_refresh(Session *session)
{
	_cleanup_(config_done) Config then = CONFIG_INIT;
	const Config *now;
	_cleanup_(strings_freep) char **marks = NULL;
	PolicyStamp stamp = stamp_now();
	bool differ;
	int r;

	if (stamps_equal(&stamp, &session->marks_stamp))
		return false;
	/* With a mistake in it, it says nothing yet. */
	r = config_file_last(CS_CONFIG_PATH, &now, NULL);
	if (r >= 0) {
		r = run_dir_read_policy(session->id, &then);
		if (r >= 0)
			r = config_drift(&then, now, &marks);
		else if (r != -ENOMEM)
			r = strings_append(&marks, UNKNOWN);
	} else {
		session->marks_stamp = stamp;
		return false;
	}
	if (r < 0)
		return false;
	session->marks_stamp = stamp;
	differ = !strings_equal(marks, session->marks);
	strings_free(session->marks);
	session->marks = TAKE_PTR(marks);
	return differ;
}

void drift_refresh_all(Manager *manager)
{
	for (Session *s = registry_first(manager->registry); s; s = s->next)
		if (drift_refresh(s))
			signals_session_changed(&manager->signals, s, KEEPER_WARNINGS | KEEPER_POSTURE);
}
