/* SPDX-License-Identifier: MIT */

/*
 * Names of users who are not in /etc/passwd: 5 of the order in mounts.c. The sockets of name-services.h lead to the programs
 * that know them. The person's own name is told without any program: systemd's module for nsswitch.conf(5) reads records
 * (JSON, https://systemd.io/USER_RECORD) in /run/host/userdb, which is where who runs a container puts its users.
 */

#include "service/plan/name-services.h"
#include "service/plan/plan-build.h"

#define PASSWD_MAX (256u * 1024)
#define RECORDS "/run/host/userdb"

static const char reason[] = "names of users: no other program knows this user's in the jail";

static int add_sockets(PlanBuild *build)
{
	const char *path;
	int r = 0;

	for (size_t i = 0; r == 0 && (path = name_service_at(i)); i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		/* What is in sight anyway is left as it is. */
		if (!name_service_is(path, build->request->uid) || !plan_hides(build->plan, path))
			continue;
		r = build->view->resolve(build->view->userdata, path, &node);
		if (r == 0 && S_ISSOCK(node.mode) && streq(node.path, path))
			r = plan_add_bind(build->plan, &node, path, ENTRY_RO, "system",
					  "names of users, asked of a program of the machine's");
		r = r == -ENOMEM || r == -E2BIG ? r : 0;
	}
	return r;
}

/* Return: 1 where /etc/passwd has the user, or is not to be read; 0 or a negative errno. */
static int is_listed(const PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *text = malloc(PASSWD_MAX + 2);
	size_t name = strlen(build->request->user);
	ssize_t n;
	int r;

	if (!text)
		return -ENOMEM;
	r = build->view->resolve(build->view->userdata, "/etc/passwd", &node);
	if (r < 0)
		return r == -ENOMEM ? r : 1;
	text[0] = '\n';
	n = build->view->read_head(build->view->userdata, &node, text + 1, PASSWD_MAX);
	if (n < 0)
		return 1;
	text[n + 1] = '\0';
	for (const char *line = text; line; line = strchr(line + 1, '\n'))
		if (strncmp(line + 1, build->request->user, name) == 0 && line[1 + name] == ':')
			return 1;
	return 0;
}

/* Nothing that JSON would have to escape, and no part of a path. */
static bool is_plain(const char *text, const char *refused)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c == 0x7f || strchr(refused, *c))
			return false;
	return *text;
}

static int add_record(PlanBuild *build)
{
	const SessionRequest *request = build->request;
	_cleanup_free_ char *by_name = NULL, *by_number = NULL, *target = NULL, *text = NULL;
	int n, r;

	if (!is_plain(request->user, "\"\\/") || !is_plain(request->home, "\"\\") ||
	    !is_plain(request->login_shell, "\"\\"))
		return 0;
	n = asprintf(&text,
		     "{\"userName\":\"%s\",\"uid\":%u,\"gid\":%u,\"homeDirectory\":\"%s\",\"shell\":\"%s\","
		     "\"disposition\":\"regular\"}\n",
		     request->user, (unsigned)request->uid, (unsigned)request->gid, request->home,
		     request->login_shell);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	if (asprintf(&target, "%s.user", request->user) < 0)
		target = NULL;
	if (asprintf(&by_name, RECORDS "/%s.user", request->user) < 0)
		by_name = NULL;
	if (asprintf(&by_number, RECORDS "/%u.user", (unsigned)request->uid) < 0)
		by_number = NULL;
	if (!target || !by_name || !by_number)
		return -ENOMEM;
	r = plan_add_file(build->plan, by_name, text, (size_t)n, "system", reason);
	return r < 0 ? r : plan_add_link(build->plan, by_number, target, "system", reason);
}

int build_names(PlanBuild *build)
{
	int r = add_sockets(build), listed;

	if (r < 0)
		return r;
	listed = is_listed(build);
	return listed == 0 ? add_record(build) : MIN_OF(listed, 0);
}
