/* SPDX-License-Identifier: MIT */
#include "tui/view.h"

/* The order of the tabs, and of the keys 1 to 9. */
static const View *const views[] = {
	&view_sessions, &view_exposure, &view_routes, &view_denied, &view_allow_ip,
	&view_policy,   &view_verify,   &view_doctor, &view_help,
};

const View *view_at(size_t index)
{
	return index < ELEMENTSOF(views) ? views[index] : NULL;
}

const View *view_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(views); i++)
		if (streq(views[i]->name, name))
			return views[i];
	return NULL;
}
