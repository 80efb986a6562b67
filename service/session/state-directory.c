/* SPDX-License-Identifier: MIT */
#include "service/session/state-directory.h"

int own_directory_open(const PlanView *view, const char *path, uid_t uid, PlanNode *ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = view->resolve(view->userdata, path, &node);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || !S_ISDIR(node.mode) || node.uid != uid || node.fd < 0)
		return -ENOENT;
	*ret = node;
	node = PLAN_NODE_INIT;
	return 0;
}

int state_directory_open(const PlanView *view, const char *home, uid_t uid, bool make, PlanNode *ret)
{
	_cleanup_free_ char *path = strdup(home);
	const char *rest = STATE_DIRECTORY;

	if (!path)
		return -ENOMEM;
	for (;;) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *name = NULL, *parent = NULL;
		size_t n = strcspn(rest, "/");
		int r = own_directory_open(view, path, uid, &node);

		if (r < 0)
			return r;
		if (*rest == 0) {
			*ret = node;
			node = PLAN_NODE_INIT;
			return 0;
		}
		name = strndup(rest, n);
		if (!name)
			return -ENOMEM;
		if (make && mkdirat(node.fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		parent = TAKE_PTR(path);
		if (asprintf(&path, "%s/%s", parent, name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		rest += n + (rest[n] == '/');
	}
}
