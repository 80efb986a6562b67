/* SPDX-License-Identifier: MIT */

/* The parts of the plan that are the same for everybody: 1 to 5, and 15 to 17, of the order in mounts.c. */

#include "base/paths.h"
#include "service/plan/plan-build.h"

static int resolve(const PlanBuild *build, const char *path, PlanNode *ret)
{
	return build->view->resolve(build->view->userdata, path, ret);
}

/* "/dev/pts/" and a decimal number, which is all that ptsname(3) gives. */
static bool is_pts(const char *path)
{
	const char *number = path ? starts_with(path, "/dev/pts/") : NULL;

	return number && number[0] != '\0' && strspn(number, "0123456789") == strlen(number);
}

static int build_dev(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode terminal = PLAN_NODE_INIT;

	int r = plan_add_special(build->plan, ENTRY_DEV, "/dev", ENTRY_PRIVATE, "system",
				 "a few harmless devices");
	if (r < 0 || !build->facts->terminal)
		return r;

	if (!is_pts(build->facts->terminal_path))
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "the session's terminal is not in /dev/pts");
	r = resolve(build, build->facts->terminal_path, &terminal);
	if (r < 0 || !S_ISCHR(terminal.mode))
		return build_refuse(build, CS_ERROR_PLAN_REFUSED, "the session's terminal %s has gone: %s",
				    build->facts->terminal_path, r < 0 ? strerror(-r) : "it is no device");
	/*
	 * By path, as every device: bwrap binds with device access by path alone. Nobody can put another
	 * device there, as launch holds this pts open and its number is not given out again before it is
	 * closed.
	 */
	return plan_add_device(
		build->plan, &terminal, "/dev/console", "terminal",
		"the session's own terminal, found by ttyname() when standard output is a pipe");
}

static int build_proc(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode proc = PLAN_NODE_INIT;
	ConfigProcfs wanted = config_procfs(&build->request->config);

	if (wanted == PROCFS_PRIVATE && !build->facts->private_proc)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "procfs = private, but this kernel or container lets nobody mount a "
				    "private /proc (it "
				    "covers parts of its own); set procfs = auto");

	build->plan->private_proc = wanted != PROCFS_OUTER && build->facts->private_proc;
	/*
	 * A write to /proc/sys asks for a capability seldom and for uid 0 mostly: from root's jail
	 * core_pattern, which the kernel runs as root of the machine, could be set. Read-only as a whole,
	 * since nobody has a list of what is writable there. For others it stays: parts made read-only would
	 * forbid their nested sandboxes.
	 */
	if (build->plan->private_proc && build->request->uid == 0)
		return plan_add_special(build->plan, ENTRY_PROC, "/proc", ENTRY_RO, "system",
					"the jail's own processes; root could set the machine's kernel up");
	if (build->plan->private_proc)
		return plan_add_special(build->plan, ENTRY_PROC, "/proc", ENTRY_PRIVATE, "system",
					"the jail's own processes");

	int r = resolve(build, "/proc", &proc);
	if (r < 0)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED, "/proc cannot be bound: %s", strerror(-r));
	return plan_add_bind(build->plan, &proc, "/proc", ENTRY_RO,
			     wanted == PROCFS_OUTER ? "procfs" : "system",
			     "the outer /proc: the host's command lines, routes and sockets can be read");
}

static const char reason_tmp[] = "hides other programs' sockets and temporary files";
static const char reason_run[] = "hides buses, container services, the desktop and secrets";

int build_root(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode root = PLAN_NODE_INIT;

	int r = resolve(build, "/", &root);
	if (r < 0)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED, "/ cannot be bound: %s", strerror(-r));
	r = plan_add_bind(build->plan, &root, "/", ENTRY_RO, "system", "programs and libraries");
	if (r < 0 || (r = build_dev(build)) < 0 || (r = build_devices(build)) < 0 ||
	    (r = build_proc(build)) < 0)
		return r;
	r = plan_add_tmpfs(build->plan, "/tmp", 01777, ENTRY_PRIVATE, "system", reason_tmp);
	return r < 0 ? r : build_hide_aliases(build, "/tmp", reason_tmp);
}

/* What is mounted there is other disks and other machines; a workspace or a key brings back what it names. */
static int hide_media(PlanBuild *build)
{
	static const char *const places[] = { "/media", "/mnt" };

	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		int r = resolve(build, places[i], &node);
		/* What a link leads to is hidden by its own name, or is nothing of these. */
		if (r < 0 || !S_ISDIR(node.mode) || !streq(node.path, places[i])) {
			if (r == -ENOMEM)
				return r;
			continue;
		}
		r = plan_add_tmpfs(build->plan, node.path, 0755, ENTRY_PRIVATE, "system",
				   "hides removable disks and what else is mounted there");
		if (r < 0)
			return r;
	}
	return 0;
}

int build_run(PlanBuild *build)
{
	static const char *const back[] = { "/run/booted-system", "/run/current-system",
					    "/run/opengl-driver" };
	_cleanup_(plan_node_done) PlanNode var_run = PLAN_NODE_INIT;

	int r = hide_media(build);
	if (r >= 0)
		r = plan_add_tmpfs(build->plan, "/run", 0755, ENTRY_PRIVATE, "system", reason_run);
	if (r >= 0)
		r = build_hide_aliases(build, "/run", reason_run);
	if (r < 0)
		return r;

	r = resolve(build, "/var/run", &var_run);
	if (r >= 0 && S_ISDIR(var_run.mode) && streq(var_run.path, "/var/run")) {
		r = plan_hides(build->plan, "/var/run") ? 0
							: plan_add_tmpfs(build->plan, "/var/run", 0755,
									 ENTRY_PRIVATE, "system", reason_run);
		if (r < 0)
			return r;
	}

	for (size_t i = 0; i < ELEMENTSOF(back); i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		r = resolve(build, back[i], &node);
		if (r < 0 || !S_ISDIR(node.mode))
			continue;
		r = build_links(build, back[i], "system");
		if (r >= 0 && plan_hides(build->plan, node.path)) {
			_cleanup_free_ char *destination = strdup(node.path);

			r = destination ? plan_add_bind(build->plan, &node, destination, ENTRY_RO, "system",
							"the running system's programs and drivers")
					: -ENOMEM;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * A mask where nothing of it may come back into sight; private where the workspace lies in it, or where programs
 * keep temporary files.
 */
static int hide_private(PlanBuild *build, const PlanNode *node)
{
	static const char reason[] = "only root may read it: keys, passwords, what belongs to other users";
	const char *workspace = build->plan->workspace;
	bool temporary = S_ISDIR(node->mode) && (node->mode & S_ISVTX) && (node->mode & S_IWOTH);

	if (plan_hides(build->plan, node->path) || path_is_within(node->path, workspace))
		return 0;
	if (temporary || (S_ISDIR(node->mode) && path_is_within(workspace, node->path)))
		return plan_add_tmpfs(build->plan, node->path, temporary ? 01777 : 0755, ENTRY_PRIVATE,
				      "system", reason);
	return build_mask(build, node->path, node->mode, "system", reason);
}

static int hide_private_alias(void *userdata, const char *alias)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	PlanBuild *build = userdata;

	int r = resolve(build, alias, &node);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
		return 0;
	return r < 0 ? r : hide_private(build, &node);
}

int build_system_private(PlanBuild *build)
{
	const char *const *places = build->facts->system_private;

	for (size_t i = 0; places && places[i]; i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		int r = resolve(build, places[i], &node);
		if (r == -ENOMEM)
			return r;
		/* It went since, or is behind what nobody in the jail may enter. */
		if (r < 0)
			continue;
		r = hide_private(build, &node);
		if (r >= 0)
			r = build->view->aliases(build->view->userdata, node.path, hide_private_alias, build);
		if (r < 0)
			return r;
	}
	return 0;
}

int build_marker(PlanBuild *build)
{
	_cleanup_free_ char *text = NULL;
	int n = asprintf(&text, "%s\n%s\n", build->profile->name, build->plan->program);

	if (n < 0)
		return -ENOMEM;
	return plan_add_file(build->plan, CS_MARKER_PATH, text, (size_t)n, "system",
			     "tells a nested command that it is inside");
}

static int cover_secret(PlanBuild *build, const PlanNode *node)
{
	if (plan_hides(build->plan, node->path))
		return 0;
	return build_mask(build, node->path, node->mode, "system", "a secret that the person could read");
}

/* A second mount shows it as well. */
static int cover_alias(void *userdata, const char *alias)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	PlanBuild *build = userdata;

	int r = resolve(build, alias, &node);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
		return 0;
	return r < 0 ? r : cover_secret(build, &node);
}

/* One of the two places of mail is a link to the other, which is covered itself; root's sessions follow no
 * links of /var. */
static bool is_mail_elsewhere(PlanBuild *build, const char *path)
{
	static const char *const others[] = { "../mail", "spool/mail", "/var/mail", "/var/spool/mail" };
	_cleanup_free_ char *text = NULL;

	if (!streq(path, "/var/mail") && !streq(path, "/var/spool/mail"))
		return false;
	if (build->view->read_link(build->view->userdata, path, &text) < 0)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		if (streq(text, others[i]))
			return true;
	return false;
}

static int cover_if_readable(PlanBuild *build, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

	int r = resolve(build, path, &node);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES || (r == -ELOOP && is_mail_elsewhere(build, path)))
		return 0;
	if (r < 0)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "%s has to be covered, and where it leads cannot be told (%s); replace "
				    "the link by what "
				    "it points at",
				    path, strerror(-r));

	bool readable = build->view->readable(build->view->userdata, path);
	/* In a directory that can be searched but not listed, known names can be read all the same. */
	if (S_ISDIR(node.mode) && (node.mode & (S_IXGRP | S_IXOTH)))
		readable = true;
	if (!readable)
		return 0;
	r = cover_secret(build, &node);
	return r < 0 ? r : build->view->aliases(build->view->userdata, node.path, cover_alias, build);
}

static int cover_host_key(void *userdata, const char *name)
{
	size_t n = strlen(name);
	_cleanup_free_ char *path = NULL;

	if (!starts_with(name, "ssh_host_") || n < 4 || !streq(name + n - 4, "_key"))
		return 0;
	if (asprintf(&path, "/etc/ssh/%s", name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return cover_if_readable(userdata, path);
}

/* Keys and passwords; mail; and what crashed programs of the person's had in memory, keys too (core(5),
 * systemd-coredump(8)). */
int build_secrets(PlanBuild *build)
{
	static const char *const secrets[] = {
		"/etc/shadow",
		"/etc/shadow-",
		"/etc/gshadow",
		"/etc/gshadow-",
		"/etc/sudoers",
		"/etc/sudoers.d",
		"/etc/ssl/private",
		"/etc/wireguard",
		"/etc/NetworkManager/system-connections",
		"/etc/krb5.keytab",
		"/etc/letsencrypt",
		"/var/mail",
		"/var/spool/mail",
		"/var/crash",
		"/var/lib/systemd/coredump",
		/* Of whom the sandbox has a log of events, the service shows them theirs. */
		CS_LOG_DIR,
	};

	for (size_t i = 0; i < ELEMENTSOF(secrets); i++) {
		int r = cover_if_readable(build, secrets[i]);
		if (r < 0)
			return r;
	}

	int r = build->view->list(build->view->userdata, "/etc/ssh", 4096, cover_host_key, build);
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES ? 0 : r;
}

/*
 * /etc/resolv.conf may be a link to what is not there now, such as a file of a resolver that is not running:
 * its place is then in a directory of ours and can be made. Return: 0 and the place, -ENOENT when there is
 * none.
 */
static int resolver_place(PlanBuild *build, char **ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *text = NULL, *place = NULL;

	int r = resolve(build, "/etc/resolv.conf", &node);
	if (r >= 0) {
		*ret = TAKE_PTR(node.path);
		return S_ISREG(node.mode) ? 0 : -ENOENT;
	}
	if (r == -ENOMEM)
		return r;

	r = build->view->read_link(build->view->userdata, "/etc/resolv.conf", &text);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	const char *below = starts_with(text, "../") ?: starts_with(text, "/");
	if (!below || !starts_with(below, "run/") || strstr(below, "/../") || strstr(below, "//"))
		return -ENOENT;
	if (asprintf(&place, "/%s", below) < 0) {
		place = NULL;
		return -ENOMEM;
	}
	if (!plan_hides(build->plan, place))
		return -ENOENT;
	*ret = TAKE_PTR(place);
	return 0;
}

int build_resolver(PlanBuild *build)
{
	_cleanup_free_ char *place = NULL;

	if (!build->facts->resolver)
		return 0;

	int r = resolver_place(build, &place);
	if (r == -ENOENT)
		return plan_warn(build->plan, "names are not resolved in this session: /etc/resolv.conf is "
					      "missing or leads nowhere; make "
					      "it a file");
	if (r < 0)
		return r;
	return plan_add_file(build->plan, place, build->facts->resolver, strlen(build->facts->resolver),
			     "network", "names the session's own forwarder");
}

int build_git_config(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

	if (!build->facts->git_config)
		return 0;

	int r = resolve(build, CS_GITCONFIG_PATH, &node);
	if (r < 0 || !S_ISREG(node.mode) || !streq(node.path, CS_GITCONFIG_PATH))
		return build_refuse(
			build, CS_ERROR_PLAN_REFUSED,
			"%s is no file, and the session's git configuration is placed on it; install the "
			"sandbox again",
			CS_GITCONFIG_PATH);
	r = plan_add_file(build->plan, CS_GITCONFIG_PATH, build->facts->git_config,
			  strlen(build->facts->git_config), "git",
			  "the person's identity and the forge helpers");
	if (r == 0 && build->facts->git_ignore)
		r = plan_add_file(build->plan, CS_GIT_IGNORE_PATH, build->facts->git_ignore,
				  strlen(build->facts->git_ignore), "git",
				  "what the person's git ignores everywhere");
	if (r == 0 && build->facts->git_attributes)
		r = plan_add_file(build->plan, CS_GIT_ATTRIBUTES_PATH, build->facts->git_attributes,
				  strlen(build->facts->git_attributes), "git",
				  "the person's attributes of files");
	return r;
}
