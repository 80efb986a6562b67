/* SPDX-License-Identifier: MIT */
#include "service/session/preparation.h"

#include "base/paths.h"
#include "dbus/causes.h"
#include "dbus/names.h"
#include "service/plan/agent-find.h"
#include "service/session/descriptor-facts.h"
#include "service/session/git-config.h"
#include "service/session/git-person.h"
#include "service/session/git-places.h"
#include "service/session/project-places.h"
#include "service/session/sockets.h"
#include "service/session/system-private.h"
#include "service/session/temp-root.h"

/* As the plan decides it. */
static int find_cwd(const Preparation *preparation, char **ret)
{
	PlanView view = view_functions((View *)&preparation->view);
	_cleanup_(plan_node_done) PlanNode here = PLAN_NODE_INIT;
	const char *cwd = preparation->request->cwd;

	if (preparation->no_workspace)
		*ret = strdup(CS_NO_WORKSPACE);
	else if (cwd && view.resolve(view.userdata, cwd, &here) == 0 && S_ISDIR(here.mode) &&
		 path_is_within(here.path, preparation->workspace.path))
		*ret = TAKE_PTR(here.path);
	else
		*ret = strdup(preparation->workspace.path);
	return *ret ? 0 : -ENOMEM;
}

int preparation_make_state(Preparation *preparation)
{
	const SessionRequest *request = preparation->request;
	int r;

	/* The plan says why there is none. */
	if (!preparation->workspace.path && !preparation->no_workspace)
		return 0;
	r = find_cwd(preparation, &preparation->cwd);
	return r < 0 ? r
		     : project_state_open(
			       &(ProjectStateOptions){
				       .view = view_functions(&preparation->view),
				       .profile = preparation->profile,
				       .home = request->home,
				       .workspace = preparation->workspace.path ?: CS_NO_WORKSPACE,
				       .cwd = preparation->cwd,
				       .uid = request->uid,
				       .all_transcripts = config_history_all(&request->config) },
			       &preparation->project, &preparation->warnings);
}

int preparation_init(Preparation *preparation, const SessionRequest *request, const Profile *profile,
		     int guard_fd, char **ret_problem)
{
	const char *path = config_text(&request->config, CONFIG_WORKSPACE_ROOT) ?: request->cwd;
	const ConfigValue *value;
	PlanView functions;
	size_t index = 0;
	int r;

	*preparation = PREPARATION_INIT;
	preparation->request = request;
	preparation->profile = profile;
	preparation->placeholders.guard_fd = guard_fd;
	r = view_init(&preparation->view, request->uid, request->home);
	if (r == -ENOSYS || r == -EPERM)
		return refuse(
			ret_problem, r,
			"openat2 cannot be used (%s), without which paths cannot be followed safely; %s",
			strerror(-r),
			r == -ENOSYS ? "a kernel since 5.6, and a container that lets it through, is needed"
				     : "start the container with a seccomp filter that permits it");
	if (r < 0)
		return r;
	functions = view_functions(&preparation->view);
	if (profile_works_anywhere(profile, request->argv) &&
	    !config_text(&request->config, CONFIG_WORKSPACE_ROOT)) {
		_cleanup_free_ char *problem = NULL;

		/* An option only tells something: quicker without a look at the project. */
		preparation->no_workspace = request->argv[0][0] == '-' ||
					    agent_check_directory(request, &functions, &problem) < 0;
	}
	if (!preparation->no_workspace &&
	    functions.resolve(&preparation->view, path, &preparation->workspace) == 0)
		r = view_add_writable(&preparation->view, preparation->workspace.path);
	while (r == 0 && (value = config_next(&request->config, CONFIG_ALLOW_WRITE, &index))) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		if (functions.resolve(&preparation->view, value->text, &node) == 0)
			r = view_add_writable(&preparation->view, node.path);
	}
	return r;
}

void preparation_release(Preparation *preparation)
{
	project_state_release(&preparation->project);
	placeholders_close(&preparation->placeholders);
}

void preparation_done(Preparation *preparation)
{
	preparation_release(preparation);
	view_done(&preparation->view);
	plan_node_done(&preparation->workspace);
	git_places_done(&preparation->places);
	freep(&preparation->cwd);
	git_identity_done(&preparation->git);
	resolver_done(&preparation->names);
	preparation->warnings = strings_free(preparation->warnings);
}

int preparation_find_git(Preparation *preparation)
{
	PlanView view = view_functions(&preparation->view);

	git_places_done(&preparation->places);
	return git_places_find(&view, &preparation->workspace, preparation->request->uid,
			       &preparation->places);
}

void preparation_set_git(Preparation *preparation, GitIdentity *identity)
{
	git_identity_done(&preparation->git);
	preparation->git = *identity;
	*identity = (GitIdentity){ 0 };
}

/* A credential helper that the jail shows and no agent changes. Return: its path, static, or NULL. */
static const char *find_helper(const char *const paths[])
{
	struct stat st;

	for (size_t i = 0; paths[i]; i++)
		if (stat(paths[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
		    !(st.st_mode & (S_IWGRP | S_IWOTH)) && access(paths[i], X_OK) == 0)
			return paths[i];
	return NULL;
}

/* The file that a setting names, or git's default (gitignore(5), gitattributes(5)). Return: 0 or -ENOMEM. */
static int read_git_file(Preparation *preparation, const char *named, const char *fallback, char **ret)
{
	const SessionRequest *request = preparation->request;
	_cleanup_free_ char *usual = NULL;
	int r;

	if (!named && asprintf(&usual, "%s/.config/git/%s", request->home, fallback) < 0) {
		usual = NULL;
		return -ENOMEM;
	}
	/* An empty one: not even the default. */
	if (named && !*named)
		return 0;
	r = git_person_read(request, preparation->view.home, named ?: usual, ret);
	if (r == 0 || r == -ENOENT || r == -ENOTDIR || r == -ENOMEM || !preparation->places.directory.path)
		return r == -ENOMEM ? r : 0;
	return strings_appendf(
		&preparation->warnings,
		"git inside goes without %s, which cannot be shown (%s); write it as a file of "
		"up to %u bytes, without links on its way (one in the home itself is followed)",
		named ?: usual, strerror(-r), GIT_PERSON_BYTES_MAX);
}

static int warn_of_left(Preparation *preparation, bool has_lfs)
{
	_cleanup_free_ char *names = NULL;

	if (preparation->git.carry.lfs && !has_lfs &&
	    strings_append(&preparation->git.carry.left, "filter.lfs") < 0)
		return -ENOMEM;
	if (!preparation->git.carry.left || !preparation->git.carry.left[0] ||
	    !preparation->places.directory.path)
		return 0;
	for (char **left = preparation->git.carry.left; *left; left++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", names ?: "", names ? ", " : "", *left) < 0)
			return -ENOMEM;
		free(names);
		names = longer;
	}
	return strings_appendf(&preparation->warnings,
			       "git inside goes without your %s: keys and programs of yours stay outside; "
			       "sign and check outside what the agent has committed",
			       names);
}

static int make_git_config(Preparation *preparation, char **ret, char **ret_ignore, char **ret_attributes)
{
	static const char *const gh[] = { "/usr/local/bin/gh", "/usr/bin/gh", NULL };
	static const char *const glab[] = { "/usr/local/bin/glab", "/usr/bin/glab", NULL };
	static const char *const lfs[] = { "/usr/local/bin/git-lfs", "/usr/bin/git-lfs", NULL };
	const Config *config = &preparation->request->config;
	const GitIdentity *git = &preparation->git;
	bool forge = !config_flag(config, CONFIG_NO_FORGE), has_lfs = find_helper(lfs) != NULL;
	_cleanup_free_ const char **hosts = calloc(config->n_values + 1, sizeof(char *));
	const ConfigValue *value;
	size_t index = 0, n = 0;
	int r;

	if (!hosts)
		return -ENOMEM;
	while ((value = config_next(config, CONFIG_FORGE_HOST, &index)))
		hosts[n++] = value->text;
	r = read_git_file(preparation, git->carry.excludes, "ignore", ret_ignore);
	if (r == 0)
		r = read_git_file(preparation, git->carry.attributes, "attributes", ret_attributes);
	if (r == 0)
		r = warn_of_left(preparation, has_lfs);
	if (r < 0)
		return r;
	return git_config_render(
		&(GitConfigOptions){ .name = git->name,
				     .email = git->email,
				     .forge_hosts = hosts,
				     .default_branch = git->default_branch,
				     .top_level = git_places_trusted(&preparation->places, git),
				     .gh = forge ? find_helper(gh) : NULL,
				     .glab = forge ? find_helper(glab) : NULL,
				     .carry = &git->carry,
				     .excludes = *ret_ignore ? CS_GIT_IGNORE_PATH : NULL,
				     .attributes = *ret_attributes ? CS_GIT_ATTRIBUTES_PATH : NULL,
				     .lfs = has_lfs },
		ret);
}

int preparation_read_resolver(const PreparationNetwork *network, Resolver *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r = resolver_read(&text, &size);

	return r < 0 ? r : resolver_render(text, size, network->forwarder, !network->jailed, ret);
}

bool preparation_resolves(const PreparationNetwork *network, const Resolver *resolver)
{
	return network->jailed ? network->forwarder != 0 && resolver->n_ipv4 > 0 : resolver->n_servers > 0;
}

/* Never a refusal: a session without names of hosts still reaches addresses. */
static int make_resolver(Preparation *preparation, const PreparationNetwork *network)
{
	Resolver *names = &preparation->names;
	int r;

	resolver_done(names);
	r = preparation_read_resolver(network, names);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		r = strings_appendf(&preparation->warnings, BECAUSE(RESOLVER_UNREADABLE), strerror(-r));
		if (r == 0)
			r = resolver_render("", 0, network->forwarder, !network->jailed, names);
	}
	if (r == 0 && network->jailed && network->forwarder != 0 && names->n_ipv4 == 0)
		r = strings_append(&preparation->warnings, names->n_servers == 0 ? BECAUSE(RESOLVER_NONE)
										 : BECAUSE(RESOLVER_NO_IPV4));
	preparation->resolver = preparation_resolves(network, names);
	return r;
}

static int make_temp_root(const Preparation *preparation, char **ret, char ***warnings)
{
	_cleanup_free_ char *problem = NULL;
	int r;

	/* What outlives sessions is not made for a look. */
	if (!preparation->profile->temp_root || !preparation->workspace.path ||
	    preparation->request->purpose == PURPOSE_DOCTOR)
		return 0;
	r = temp_root_make(CS_TEMP_ROOT, preparation->request->uid, preparation->workspace.path, ret,
			   &problem);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		r = strings_appendf(warnings, "no temporary files that outlive the session: %s",
				    problem ?: strerror(-r));
	return r;
}

/* path as it is spelled, and as the file system has it: programs bind by either. */
static int add_shown(const Preparation *preparation, const char *home, const char *name, char ***shown)
{
	PlanView view = view_functions((View *)&preparation->view);
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL;
	int r;

	if (!name)
		return 0;
	if (asprintf(&path, "%s%s%s", home ?: "", home ? "/" : "", name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = strings_append(shown, path);
	if (r == 0 && view.resolve(view.userdata, path, &node) == 0)
		r = strings_append(shown, node.path);
	return r;
}

/* What the host has of the agent's state and the plan brings back. */
static int find_shown_state(const Preparation *preparation, const char *home, char ***shown)
{
	const Profile *profile = preparation->profile;
	int r = 0;

	for (size_t i = 0; r == 0 && profile->account_directories[i]; i++) {
		_cleanup_free_ char *name = profile_path(profile, profile->account_directories[i]);

		r = name ? add_shown(preparation, home, name, shown) : -ENOMEM;
	}
	if (r == 0 && profile->transcripts) {
		_cleanup_free_ char *name = profile_path(profile, profile->transcripts);

		r = name ? add_shown(preparation, home, name, shown) : -ENOMEM;
	}
	return r;
}

/* Directories in or below the private ones that the plan may bring back. One too many costs a look, no more.
 */
static int find_shown(const Preparation *preparation, const PlanFacts *facts, char ***ret)
{
	const char *const homes[] = { preparation->request->home, preparation->view.home };
	_cleanup_(strings_freep) char **shown = calloc(1, sizeof(char *));
	int r = shown ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(homes); i++) {
		const char *const *of_all = plan_shared_directories();

		r = find_shown_state(preparation, homes[i], &shown);
		for (size_t j = 0; r == 0 && of_all[j]; j++)
			r = add_shown(preparation, homes[i], of_all[j], &shown);
	}
	if (r == 0 && !preparation->no_workspace)
		r = add_shown(preparation, NULL,
			      config_text(&preparation->request->config, CONFIG_WORKSPACE_ROOT)
				      ?: preparation->request->cwd,
			      &shown);
	if (r == 0)
		r = add_shown(preparation, NULL, facts->git_directory ? facts->git_directory->path : NULL,
			      &shown);
	if (r == 0)
		r = add_shown(preparation, NULL,
			      facts->git_common_directory ? facts->git_common_directory->path : NULL, &shown);
	if (r == 0)
		*ret = TAKE_PTR(shown);
	return r;
}

/* Places of which the plan makes private ones whatever is configured, but for those that it brings back. */
static int find_sockets(Preparation *preparation, const PlanFacts *facts, char ***ret, char **ret_problem)
{
	_cleanup_(strings_freep) char **shown = NULL;
	const char *directories[] = { "/tmp",
				      "/run",
				      "/var/run",
				      "/dev",
				      "/proc",
				      "/sys",
				      "/home",
				      "/var/home",
				      "/root",
				      preparation->request->home,
				      preparation->view.home,
				      NULL };

	int r = find_shown(preparation, facts, &shown);

	return r < 0 ? r
		     : sockets_find(&(SocketPlaces){ .private_directories = directories,
						     .shown_directories = (const char *const *)shown },
				    ret, &preparation->warnings, ret_problem);
}

/* What is masked below a directory that the agent may write must exist, or the agent makes it. */
static int make_placeholder(Preparation *preparation, const char *mask, char **ret_problem)
{
	const char *slash = strrchr(mask, '/');
	const char *const names[] = { slash + 1, NULL };
	_cleanup_free_ char *directory = NULL;

	if (asprintf(&directory, "%s/%.*s", preparation->request->home, (int)(slash - mask), mask) < 0) {
		directory = NULL;
		return -ENOMEM;
	}
	return placeholders_make(&preparation->placeholders, directory, names, ret_problem);
}

static int make_placeholders(Preparation *preparation, char **ret_problem)
{
	const SessionRequest *request = preparation->request;
	const char *const *masks = plan_share_masks();
	PlanView view = view_functions(&preparation->view);
	int r;

	r = placeholders_begin(&preparation->placeholders, &view, request->home, request->uid, ret_problem);
	for (size_t i = 0; masks[i] && r == 0; i++)
		r = make_placeholder(preparation, masks[i], ret_problem);
	return r;
}

/* The descriptor of the directory in which destination lies, from the entry that shows it. */
static int directory_of(const Plan *plan, const char *destination, char **ret_path)
{
	char *path = strndup(destination, (size_t)(strrchr(destination, '/') - destination));

	*ret_path = path;
	for (size_t i = plan->n_entries; path && i > 0; i--)
		if (plan->entries[i - 1].kind == ENTRY_BIND && streq(plan->entries[i - 1].destination, path))
			return plan->entries[i - 1].source_fd;
	return path ? FD_NONE : -ENOMEM;
}

/* What the entry-point guard covers must be there, and be nothing but what we put there. */
static int make_guarded_names(Preparation *preparation, const Plan *plan, const char **ret_error,
			      char **ret_problem)
{
	for (size_t i = 0; i < plan->n_entries; i++) {
		const Entry *entry = &plan->entries[i];
		_cleanup_free_ char *directory = NULL;
		int fd, r;

		if (!entry->placeholder)
			continue;
		fd = directory_of(plan, entry->destination, &directory);
		r = fd < 0 ? fd
			   : placeholders_make_file(&preparation->placeholders, fd, directory,
						    strrchr(entry->destination, '/') + 1);
		if (r >= 0)
			continue;
		*ret_error = CS_ERROR_UNSAFE_ENTRY_POINT;
		if (r == -EEXIST)
			return refuse(ret_problem, -EPERM, BECAUSE(ENTRY_PLANTED), entry->destination);
		return refuse(
			ret_problem, -EPERM,
			"%s cannot be kept free (%s), and its directory, which agents may write, stands "
			"before /usr/local/bin on PATH; put /usr/local/bin first",
			entry->destination, strerror(-r));
	}
	return 0;
}

int preparation_plan(Preparation *preparation, const PreparationNetwork *network, const TerminalKeys *keys,
		     Plan *ret, const char **ret_error, char **ret_problem)
{
	_cleanup_free_ char *git_config = NULL, *git_ignore = NULL, *git_attributes = NULL, *temp_root = NULL;
	_cleanup_(descriptor_facts_done) DescriptorFacts descriptors = { 0 };
	_cleanup_(strings_freep) char **sockets = NULL, **private = NULL;
	PlanView view = view_functions(&preparation->view);
	_cleanup_(plan_done) Plan plan = { 0 };
	PlanFacts facts;
	int r;

	*ret_error = CS_ERROR_PLAN_REFUSED;
	r = make_placeholders(preparation, ret_problem);
	if (r == 0)
		r = make_git_config(preparation, &git_config, &git_ignore, &git_attributes);
	if (r == 0)
		r = make_resolver(preparation, network);
	if (r == 0)
		r = make_temp_root(preparation, &temp_root, &preparation->warnings);
	if (r == 0)
		r = descriptor_facts_find(keys->fds, preparation->request->further, &descriptors);
	if (r < 0)
		return r;
	facts = (PlanFacts){ .workspace = preparation->workspace.path ? &preparation->workspace : NULL,
			     .no_workspace = preparation->no_workspace,
			     .private_proc = network->private_proc,
			     .git_config = git_config,
			     .git_ignore = git_ignore,
			     .git_attributes = git_attributes,
			     .resolver = preparation->names.text,
			     .temp_root = temp_root,
			     .project_state = preparation->project.path,
			     .terminal = keys->terminal_fd >= 0,
			     .terminal_path = keys->terminal_path,
			     .descriptors = descriptors.descriptors,
			     .n_descriptors = descriptors.n };
	r = git_places_choose(&view, &preparation->places, &preparation->git, &preparation->workspace,
			      preparation->view.home, &facts, &preparation->warnings);
	if (r == 0 &&
	    git_needs_set_id(&preparation->places, &preparation->git, preparation->request->file_mode_mask))
		r = strings_append(
			&preparation->warnings,
			"git cannot write inside: for core.sharedRepository it sets "
			"set-group-ID bits, which are refused there, unless the umask already gives "
			"the others their rights; run umask 002 first");
	if (r == 0)
		r = find_sockets(preparation, &facts, &sockets, ret_problem);
	if (r < 0)
		return r;
	facts.sockets = (const char *const *)sockets;
	if (preparation->request->uid == 0) {
		r = system_private_find_all(&private, &preparation->warnings, ret_problem);
		if (r < 0)
			return r;
		facts.system_private = (const char *const *)private;
	}
	r = plan_make(preparation->request, preparation->profile, &facts, &view, &plan, ret_error,
		      ret_problem);
	if (r == 0)
		r = project_places_make(&preparation->project, &plan, ret_problem);
	if (r == 0)
		r = make_guarded_names(preparation, &plan, ret_error, ret_problem);
	if (r < 0)
		return r;
	*ret = plan;
	plan = (Plan){ 0 };
	return 0;
}
