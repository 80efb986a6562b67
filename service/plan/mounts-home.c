/* SPDX-License-Identifier: MIT */

/* The homes and what is seen of them: 6, 8 to 10, and 15, of the order in mounts.c. */

#include "base/paths.h"
#include "service/plan/plan-build.h"

static char *below(const char *home, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", home, name) < 0 ? NULL : path;
}

/* May a private directory lie over this home? Hiding what programs need would only break the jail. */
static int check_home(PlanBuild *build, const char *path, const char *whose)
{
	static const char *const needed[] = {
		"/bin",   "/boot",   "/dev",  "/etc",  "/lib", "/lib32",
		"/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr",
	};
	bool bad = path_is_within("/var/lib", path) || path_is_within(CS_TEMP_ROOT, path);

	for (size_t i = 0; i < ELEMENTSOF(needed); i++)
		bad = bad || path_is_within(needed[i], path) || path_is_within(path, needed[i]);
	if (!bad)
		return 0;
	return build_refuse(
		build, CS_ERROR_PLAN_REFUSED,
		"%s %s lies in or around a system directory and cannot be hidden from the agent; give the "
		"person a directory of their own%s",
		whose, path, streq(whose, "HOME") ? ", or unset HOME" : "");
}

/* Keep the list sorted by length, so that what lies in another comes after it. Takes path. */
static int insert_home(PlanBuild *build, char *path)
{
	for (size_t i = 0; build->homes && build->homes[i]; i++)
		if (streq(build->homes[i], path)) {
			free(path);
			return 0;
		}

	int r = strings_append(&build->homes, path);
	free(path);
	if (r < 0)
		return r;
	for (size_t i = strings_count(build->homes) - 1;
	     i > 0 && strlen(build->homes[i]) < strlen(build->homes[i - 1]); i--) {
		char *other = build->homes[i];

		build->homes[i] = build->homes[i - 1];
		build->homes[i - 1] = other;
	}
	return 0;
}

/* The home of passwd must be known exactly: it is what the jail is for. It may be missing inside another one.
 */
static int find_own_home(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const char *home = build->request->home;

	if (!home || home[0] != '/')
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "the account's home directory '%s' is no absolute path; correct it with "
				    "usermod --home",
				    home ?: "");
	int r = build->view->resolve(build->view->userdata, home, &node);
	if (r < 0 || !S_ISDIR(node.mode))
		return build_refuse(
			build, CS_ERROR_PLAN_REFUSED,
			"the account's home directory %s cannot be used: %s; create it, or correct it with "
			"usermod --home",
			home, r < 0 ? strerror(-r) : "it is no directory");
	r = check_home(build, node.path, "the account's home directory");
	if (r < 0)
		return r;
	build->home = TAKE_PTR(node.path);
	char *copy = strdup(build->home);
	return copy ? insert_home(build, copy) : -ENOMEM;
}

static const char *environment_home(const PlanBuild *build)
{
	for (size_t i = 0; build->request->environment && build->request->environment[i]; i++) {
		const char *value = starts_with(build->request->environment[i], "HOME=");

		if (value)
			return value;
	}
	return NULL;
}

/* Another place at which the machine has a home: a second mount of it, or of the file system that it is on.
 */
static int add_alias(void *userdata, const char *alias)
{
	PlanBuild *build = userdata;

	/* What contains the system cannot be hidden; then the home itself was refused already. */
	if (path_is_within("/usr", alias) || path_is_within("/etc", alias))
		return 0;
	char *copy = strdup(alias);
	return copy ? insert_home(build, copy) : -ENOMEM;
}

static int find_aliases(PlanBuild *build)
{
	_cleanup_(strings_freep) char **found = NULL;
	int r = 0;

	/* The list grows. */
	for (size_t i = 0; r == 0 && build->homes[i]; i++)
		r = strings_append(&found, build->homes[i]);
	for (size_t i = 0; r == 0 && found[i]; i++)
		r = build->view->aliases(build->view->userdata, found[i], add_alias, build);
	return r == -E2BIG ? build_refuse(build, CS_ERROR_PLAN_REFUSED,
					  "the machine has too many mounts to find the second ones of homes "
					  "among them; unmount what is not needed")
			   : r;
}

int build_find_homes(PlanBuild *build)
{
	const struct {
		const char *path, *whose;
	} others[] = {
		{ "/home", "/home" },
		{ "/var/home", "/var/home" },
		{ "/root", "/root" },
		{ environment_home(build), "HOME" },
	};

	int r = find_own_home(build);
	if (r < 0)
		return r;

	for (size_t i = 0; i < ELEMENTSOF(others); i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		if (!others[i].path || others[i].path[0] != '/')
			continue;
		r = build->view->resolve(build->view->userdata, others[i].path, &node);
		if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
			continue;
		if (r == -ELOOP)
			return build_refuse(build, CS_ERROR_PLAN_REFUSED,
					    "%s %s has to be hidden from the agent, and the way there is a "
					    "link of another "
					    "user; name the directory itself",
					    others[i].whose, others[i].path);
		if (r < 0)
			return r;
		if (!S_ISDIR(node.mode))
			continue;
		r = check_home(build, node.path, others[i].whose);
		if (r >= 0)
			r = insert_home(build, TAKE_PTR(node.path));
		if (r < 0)
			return r;
	}
	return find_aliases(build);
}

int build_homes(PlanBuild *build)
{
	for (size_t i = 0; build->homes[i]; i++) {
		const char *home = build->homes[i];
		int r;

		if (!plan_hides(build->plan, home))
			r = plan_add_tmpfs(build->plan, home, streq(home, build->home) ? 0700 : 0755,
					   ENTRY_PRIVATE, "homes",
					   "hides keys, tokens, histories and other projects");
		else if (streq(home, build->home))
			r = plan_add_special(build->plan, ENTRY_DIRECTORY, home, ENTRY_PRIVATE, "homes",
					     "the person's home, empty");
		else
			r = 0;
		if (r < 0)
			return r;
	}

	int r = build_links(build, build->request->home, "homes");
	return r < 0 ? r : build_hide_stores(build);
}

static int expose(PlanBuild *build, const char *name, ExposeTypes types, EntryMode mode, const char *origin,
		  const char *reason)
{
	/* Spelled as the person does: the home of passwd, whose links are then recreated. */
	_cleanup_free_ char *path = below(build->home, name);

	return path ? build_expose(build, path, types, mode, origin, reason) : -ENOMEM;
}

/*
 * Can name be covered, a path below the home whose last component lies in a directory that agents write? What
 * is missing needs no cover. A link there could not hold one: a mount would lie on what it leads to, and the
 * link itself could be replaced. What lies behind a mode is not missing: an agent may have set the mode, and
 * may change it again. Return: 1 and *ret, 0 when it is missing, -ELOOP for a link, -EACCES when that cannot
 * be told, another negative errno.
 */
static int find_mask(PlanBuild *build, const char *name, PlanNode *ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT, parent = PLAN_NODE_INIT;
	_cleanup_free_ char *path = below(build->home, name), *directory = NULL, *expected = NULL;
	const PlanView *view = build->view;

	if (!path || !(directory = strndup(path, (size_t)(strrchr(path, '/') - path))))
		return -ENOMEM;
	int r = view->resolve(view->userdata, path, &node);
	if (r >= 0)
		r = view->resolve(view->userdata, directory, &parent);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	if (!(expected = below(parent.path, strrchr(path, '/') + 1)))
		return -ENOMEM;
	if (!streq(node.path, expected))
		return -ELOOP;
	*ret = node;
	node = PLAN_NODE_INIT;
	return 1;
}

#define TOOLS_MAX 24u
#define TOOLS_LISTED_MAX 1024u

typedef struct Tools {
	PlanBuild *build;
	const char *directory, *origin, *reason;
	unsigned shown, more;
} Tools;

static int show_tool(void *userdata, const char *name)
{
	Tools *tools = userdata;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = below(tools->directory, name);
	const PlanView *view = tools->build->view;
	int r;

	if (!path)
		return -ENOMEM;
	r = view->resolve(view->userdata, path, &node);
	/* Locks and the like. */
	if (r < 0 || !S_ISDIR(node.mode))
		return r == -ENOMEM ? r : 0;
	if (tools->shown == TOOLS_MAX) {
		tools->more++;
		return 0;
	}
	r = build_expose(tools->build, path, EXPOSE_DIRECTORY, ENTRY_RO, tools->origin, tools->reason);
	tools->shown += r > 0;
	return r < 0 && r != -ENOENT && r != -ENOTDIR ? r : 0;
}

/*
 * Each directory in it, read-only, in one that is private: what uses them keeps locks beside them, and agents may install
 * more for their session.
 */
static int show_tools(PlanBuild *build, const char *directory, const char *origin, const char *reason)
{
	Tools tools = { .build = build, .directory = directory, .origin = origin, .reason = reason };
	int r = plan_add_tmpfs(build->plan, directory, 0700, ENTRY_PRIVATE, origin, reason);

	if (r == 0)
		r = build->view->list(build->view->userdata, directory, TOOLS_LISTED_MAX, show_tool, &tools);
	if (r == -E2BIG || (r == 0 && tools.more > 0))
		return plan_warn(build->plan, "not all in %s is shown to agents: it has more than %u tools",
				 directory, TOOLS_MAX);
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES ? 0 : r;
}

static int mask(PlanBuild *build, const char *name, EntryMode mode, const char *origin, const char *reason)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

	int r = find_mask(build, name, &node);
	if (r == -ELOOP)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "%s/%s is a link, and what the person's own session runs from there "
				    "cannot be kept from "
				    "the agent; put the directory itself there",
				    build->home, name);
	if (r == -EACCES)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "%s/%s could not be kept from the agent: the mode of a directory above "
				    "it keeps everybody out, and can be changed; chmod u+rwx that",
				    build->home, name);
	if (r <= 0 || plan_hides(build->plan, node.path))
		return r < 0 ? r : 0;
	if (mode == ENTRY_PRIVATE && S_ISDIR(node.mode))
		return show_tools(build, node.path, origin, reason);
	return build_mask(build, node.path, node.mode, origin, reason);
}

/* What every profile brings back of the home, read-write. */
static const struct {
	const char *name;
	const char *reason;
	bool forge;
} shared[] = {
	{ ".agents/skills", "skills of all agents", false },
	{ ".cache", "caches of package managers", false },
	{ ".config/gh", "the GitHub token", true },
	{ ".config/glab-cli", "the GitLab token", true },
};

/*
 * ~/.local/share is hidden with the home: programs keep keys, tokens and code of the person's there, under names
 * that no list has. These come back. A mask, and a private place for tools, is of the row before it: agents write around it, so
 * it has to be there and to hold.
 */
static const struct {
	const char *name;
	EntryMode mode;
	const char *reason;
} share[] = {
	{ ".local/share/uv", ENTRY_RW, "Python versions that uv installs" },
	{ ".local/share/uv/credentials", ENTRY_MASKED, "logins that uv keeps" },
	{ ".local/share/uv/tools", ENTRY_PRIVATE,
	  "tools that uv installed: the person's own session runs them" },
	{ ".local/share/pnpm/store", ENTRY_RW, "packages that pnpm links into projects" },
	{ ".local/share/virtualenv", ENTRY_RW, "what virtualenv makes environments from" },
	{ ".local/share/virtualenvs", ENTRY_RW, "environments of pipenv's projects" },
	{ ".local/share/pipx", ENTRY_RO, "programs that pipx installed" },
	{ ".local/pipx", ENTRY_RO, "the same, of older versions" },
};

static bool is_mask(size_t row)
{
	return share[row].mode == ENTRY_MASKED || share[row].mode == ENTRY_PRIVATE;
}

const char *const *plan_shared_directories(void)
{
	static const char *names[ELEMENTSOF(shared) + ELEMENTSOF(share) + 1];
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(shared); i++)
		names[n++] = shared[i].name;
	for (size_t i = 0; i < ELEMENTSOF(share); i++)
		if (!is_mask(i))
			names[n++] = share[i].name;
	names[n] = NULL;
	return names;
}

const char *const *plan_share_masks(void)
{
	static const char *names[ELEMENTSOF(share) + 1];
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(share); i++)
		if (is_mask(i))
			names[n++] = share[i].name;
	names[n] = NULL;
	return names;
}

static int expose_shared(PlanBuild *build, const char *name, EntryMode mode, const char *reason)
{
	int r = expose(build, name, EXPOSE_DIRECTORY, mode, "every profile", reason);

	return r == -ENOENT ? 0 : r;
}

int build_shared(PlanBuild *build)
{
	int r;

	bool no_forge = config_flag(&build->request->config, CONFIG_NO_FORGE);
	for (size_t i = 0; i < ELEMENTSOF(shared); i++) {
		if (shared[i].forge && no_forge)
			continue;
		r = expose_shared(build, shared[i].name, ENTRY_RW, shared[i].reason);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * No session writes in ~/.local/bin, so a link there is the person's own, which package managers make; it is
 * followed once. What it leads to is bound in its place. Return: 0 or a negative errno.
 */
static int expose_tool(PlanBuild *build, const char *name)
{
	static const char origin[] = "every profile", reason[] = "Python's installer";
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT, parent = PLAN_NODE_INIT;
	_cleanup_free_ char *path = below(build->home, name), *text = NULL, *target = NULL, *place = NULL;
	_cleanup_free_ char *directory = NULL;
	const PlanView *view = build->view;

	if (!path || !(directory = strndup(path, (size_t)(strrchr(path, '/') - path))))
		return -ENOMEM;
	int r = view->resolve(view->userdata, path, &node);
	if (r != -ELOOP || view->read_link(view->userdata, path, &text) < 0) {
		r = build_expose(build, path, EXPOSE_FILE, ENTRY_RO, origin, reason);
		return r == -ENOENT ? 0 : r;
	}

	if (asprintf(&target, "%s%s%s", text[0] == '/' ? "" : directory, text[0] == '/' ? "" : "/", text) <
	    0) {
		target = NULL;
		return -ENOMEM;
	}
	r = view->resolve(view->userdata, directory, &parent);
	if (r >= 0)
		r = view->resolve(view->userdata, target, &node);
	if (r == -ENOMEM)
		return r;
	/* An executable alone: nothing that is kept secret is one. */
	if (r < 0 || !S_ISREG(node.mode) || !(node.mode & S_IXUSR))
		return plan_warn(build->plan,
				 "%s stays hidden: it is a link to %s, which is no program or "
				 "leads on by other links; put the program itself there",
				 path, target);
	place = below(parent.path, strrchr(path, '/') + 1);
	return place ? plan_add_bind(build->plan, &node, place, ENTRY_RO, origin, reason) : -ENOMEM;
}

/*
 * Can all masks of share[row] be laid? Return: 1; 0 with a warning, and nothing of it may be shown; -ENOMEM or
 * another negative errno.
 */
static int can_be_masked(PlanBuild *build, size_t row)
{
	for (size_t i = row + 1; i < ELEMENTSOF(share) && is_mask(i); i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		int r = find_mask(build, share[i].name, &node);

		if (r == -EACCES)
			r = plan_warn(
				build->plan,
				"%s/%s stays hidden: its mode keeps even its owner out, and what is in it "
				"could not be kept from the agent; chmod u+rwx it",
				build->home, share[row].name);
		else if (r == -ELOOP)
			r = plan_warn(
				build->plan,
				"%s/%s stays hidden: %s in it is a link, and could not be kept from the "
				"agent; put the directory itself there",
				build->home, share[row].name, strrchr(share[i].name, '/') + 1);
		else if (r >= 0)
			continue;
		return r;
	}
	return 1;
}

int build_share(PlanBuild *build)
{
	static const char *const tools[] = { ".local/bin/uv", ".local/bin/uvx" };
	int whole = 1, r = 0;

	for (size_t i = 0; i < ELEMENTSOF(share); i++) {
		if (!is_mask(i)) {
			whole = can_be_masked(build, i);
			if (whole > 0)
				r = expose_shared(build, share[i].name, share[i].mode, share[i].reason);
		} else if (whole > 0)
			r = mask(build, share[i].name, share[i].mode, "every profile", share[i].reason);
		if (whole < 0 || r < 0)
			return r < 0 ? r : whole;
	}
	/* Among all the person's programs otherwise (mounts-tools.c). */
	for (size_t i = 0; i < ELEMENTSOF(tools) && !build_shows_programs(build); i++) {
		r = expose_tool(build, tools[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int build_dotfiles(PlanBuild *build)
{
	static const char *const names[] = { ".netrc", ".Xauthority", ".ICEauthority" };

	for (size_t i = 0; build->homes[i]; i++)
		for (size_t j = 0; j < ELEMENTSOF(names); j++) {
			_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
			_cleanup_free_ char *path = below(build->homes[i], names[j]);

			if (!path)
				return -ENOMEM;
			int r = build->view->resolve(build->view->userdata, path, &node);
			if (r == -ENOMEM)
				return r;
			if (r < 0)
				continue;
			/* Whatever brought the home, or what the link leads to, back into sight: not these.
			 */
			if (!plan_hides(build->plan, node.path) &&
			    (r = build_mask(build, node.path, node.mode, "homes",
					    "a credential of the person")) < 0)
				return r;
		}
	return 0;
}
