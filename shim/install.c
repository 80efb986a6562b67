/* SPDX-License-Identifier: MIT */
#include "shim/install.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <sys/stat.h>

#include "shim/install-lock.h"
#include "shim/install-tree.h"

/*
 * The order, and why:
 *
 * 1. npm only decides (`install --package-lock-only`): nothing is fetched but the registry's own records.
 * 2. What it decided is held against what may be (install-lock). For an agent with a native program the main
 *    package is a stub whose install script would fetch or link the program; no script runs here. So its
 *    record says which package has the program, npm decides again about that one alone, and is checked again.
 *    It is then no optional dependency any more: one that cannot be had or has another digest is a failure
 *    instead of being left out.
 * 3. npm fetches exactly that (`ci`), and compares each archive with the digest that was checked.
 * 4. The tree is settled (install-tree): from here on it can hurt nobody by its owners, modes and links.
 * 5. It is moved below .versions and reaches the disk before the link leads to it.
 *
 * Nothing of what was fetched is executed: that is for sessions, as their user, in a jail.
 */

#define PROJECT "project"
#define HOME "home"
#define MANIFEST "package.json"
#define LOCK "package-lock.json"
#define MODULES "node_modules"

typedef struct Work {
	InstallStore *store;
	const InstallNpm *npm;
	const InstallAgent *agent;
	char *const *environment;
	char *project, *home; /* absolute */
	int project_fd;
	char **reterr;
} Work;

static void work_done(Work *work)
{
	free(work->project);
	free(work->home);
	close_fdp(&work->project_fd);
}

void installed_done(Installed *installed)
{
	free(installed->version);
	free(installed->path);
	*installed = (Installed){ 0 };
}

static int no_memory(Work *work)
{
	return refuse(work->reterr, -ENOMEM, "not enough memory");
}

static int work_begin(Work *work)
{
	_cleanup_close_ int staging_fd = install_store_stage(work->store, work->reterr);

	if (staging_fd < 0)
		return staging_fd;
	if (asprintf(&work->project, "%s/" INSTALL_STAGING "/" PROJECT, work->store->path) < 0) {
		work->project = NULL;
		return no_memory(work);
	}
	if (asprintf(&work->home, "%s/" INSTALL_STAGING "/" HOME, work->store->path) < 0) {
		work->home = NULL;
		return no_memory(work);
	}
	if (mkdirat(staging_fd, PROJECT, 0755) < 0 || mkdirat(staging_fd, HOME, 0700) < 0 ||
	    (work->project_fd = openat(staging_fd, PROJECT, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return refuse(work->reterr, -errno, "%s: %s", work->project, strerrordesc_np(errno));
	return 0;
}

static int write_file(int directory_fd, const char *name, mode_t mode, const char *text)
{
	_cleanup_close_ int fd =
		openat(directory_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);

	for (size_t n = strlen(text); fd >= 0 && n > 0;) {
		ssize_t done = write(fd, text, n);

		if (done < 0)
			return -errno;
		text += done;
		n -= (size_t)done;
	}
	return fd < 0 ? -errno : 0;
}

/* {"private":true,"dependencies":{PACKAGE:VERSION,...}}: pairs of both, ends with NULL */
static int write_manifest(Work *work, const char *const *pairs)
{
	json_object *manifest = json_object_new_object(), *packages = json_object_new_object();
	int r = -ENOMEM;

	if (manifest && packages) {
		(void)json_object_object_add(manifest, "private", json_object_new_boolean(true));
		(void)json_object_object_add(manifest, "dependencies", packages);
		for (; pairs[0]; pairs += 2)
			(void)json_object_object_add(packages, pairs[0], json_object_new_string(pairs[1]));
		r = write_file(work->project_fd, MANIFEST, 0644, json_object_to_json_string(manifest));
	}
	json_object_put(manifest);
	return r < 0 ? refuse(work->reterr, r, "%s/" MANIFEST ": %s", work->project, strerrordesc_np(-r)) : 0;
}

static int read_lock(Work *work, InstallLock **ret)
{
	_cleanup_close_ int fd = openat(work->project_fd, LOCK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return refuse(work->reterr, -EBADMSG, "npm wrote no " LOCK "; is this npm 7 or newer?");
	if (st.st_size > (off_t)INSTALL_LOCK_BYTES_MAX)
		return refuse(work->reterr, -EBADMSG, LOCK " is longer than %u bytes",
			      INSTALL_LOCK_BYTES_MAX);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return no_memory(work);
	while (n < (size_t)st.st_size) {
		ssize_t some = read(fd, text + n, (size_t)st.st_size - n);

		if (some <= 0)
			return refuse(work->reterr, -EIO, LOCK " cannot be read");
		n += (size_t)some;
	}
	text[n] = '\0';
	return install_lock_parse(text, n, ret, work->reterr);
}

/* Let npm decide about these packages, and check it. */
static int decide(Work *work, const char *const *pairs, InstallLock **ret)
{
	static const char *const arguments[] = { "install", "--package-lock-only", NULL };
	int r;

	r = write_manifest(work, pairs);
	if (r == 0 && unlinkat(work->project_fd, LOCK, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0)
		r = install_npm_run(work->npm, work->project, work->home, arguments, work->environment,
				    work->reterr);
	return r < 0 ? r : read_lock(work, ret);
}

/* A version of the package itself: "VERSION", or "npm:PACKAGE@VERSION" (npm's manual, package specifiers). */
static bool is_version_of(const InstallAgent *agent, const char *asked, const char *version)
{
	const char *rest = starts_with(asked, "npm:");

	if (rest) {
		rest = starts_with(rest, agent->package);
		rest = rest ? starts_with(rest, "@") : NULL;
	} else {
		rest = asked;
	}
	if (!rest || !install_version_is_valid(rest))
		return false;
	rest = starts_with(rest, version);
	return rest && (*rest == '\0' || *rest == '-');
}

/* What to fetch, decided and checked. */
static int resolve(Work *work, const char *asked, char **ret_version)
{
	const InstallAgent *agent = work->agent;
	const char *pairs[] = { agent->package, asked, agent->node, agent->node_versions, NULL };
	_cleanup_(install_lock_freep) InstallLock *lock = NULL, *native_lock = NULL;
	_cleanup_free_ char *version = NULL;
	const char *text;
	int r;

	r = decide(work, pairs, &lock);
	if (r < 0)
		return r;
	text = install_lock_version(lock, agent->package);
	if (!text || !install_version_is_valid(text))
		return refuse(work->reterr, -EBADMSG, "npm found no version of %s", agent->package);
	version = strdup(text);
	if (!version)
		return no_memory(work);

	if (agent->native) {
		text = install_lock_optional(lock, agent->package, agent->native);
		if (!text)
			return refuse(work->reterr, -EBADMSG,
				      "%s %s has no program for this machine; choose a newer version",
				      agent->package, version);
		if (!is_version_of(agent, text, version))
			return refuse(work->reterr, -EBADMSG, "%s %s takes its program from elsewhere: %s",
				      agent->package, version, text);
		r = decide(work, (const char *const[]){ agent->native, text, NULL }, &native_lock);
		if (r < 0)
			return r;
	}
	*ret_version = TAKE_PTR(version);
	return 0;
}

static int missing(Work *work, const char *path)
{
	return refuse(work->reterr, -EBADMSG, "%s is not in what npm fetched; choose another version", path);
}

/* The first of the agent's programs that is a file in the directory. */
static const char *find_program(const InstallAgent *agent, int directory_fd)
{
	struct stat st;

	for (const char *const *program = agent->programs; *program; program++)
		if (fstatat(directory_fd, *program, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			return *program;
	return NULL;
}

/* A native program: its package is the version's directory, and NAME in it the program. */
static int arrange_native(Work *work, char **ret_source)
{
	_cleanup_close_ int fd = FD_NONE;
	_cleanup_free_ char *source = NULL;
	const char *program;

	if (asprintf(&source, MODULES "/%s", work->agent->native) < 0) {
		source = NULL;
		return no_memory(work);
	}
	fd = openat(work->project_fd, source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	program = fd < 0 ? NULL : find_program(work->agent, fd);
	if (!program)
		return missing(work, work->agent->programs[0]);
	if (fchmodat(fd, program, 0755, 0) < 0)
		return refuse(work->reterr, -errno, "%s: %s", program, strerrordesc_np(errno));
	if (!streq(program, work->agent->name)) {
		int r = install_tree_remove(fd, work->agent->name);

		if (r == 0 && symlinkat(program, fd, work->agent->name) < 0)
			r = -errno;
		if (r < 0)
			return refuse(work->reterr, r, "%s: %s", work->agent->name, strerrordesc_np(-r));
	}
	*ret_source = TAKE_PTR(source);
	return 0;
}

/*
 * A program for Node.js: beside node_modules lie the node, and NAME, which the kernel starts with that node.
 * Its places are those of the version, so that a session stays with one version to its end.
 */
static int arrange_node(Work *work, const char *entry, char **ret_source)
{
	_cleanup_free_ char *package = NULL, *node = NULL, *starter = NULL, *source = strdup("version");
	_cleanup_close_ int package_fd = FD_NONE, version_fd = FD_NONE;
	const InstallAgent *agent = work->agent;
	const char *program;
	int r;

	if (asprintf(&package, MODULES "/%s", agent->package) < 0)
		package = NULL;
	if (asprintf(&node, MODULES "/%s/bin/node", agent->node) < 0)
		node = NULL;
	if (!package || !node || !source)
		return no_memory(work);
	package_fd = openat(work->project_fd, package, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	program = package_fd < 0 ? NULL : find_program(agent, package_fd);
	if (!program)
		return missing(work, agent->programs[0]);
	/* The names are a closed set of harmless characters: agents, versions, our own places. */
	if (asprintf(&starter, "#!%s/.versions/%s/node\nimport(\"%s/.versions/%s/" MODULES "/%s/%s\");\n",
		     work->store->path, entry, work->store->path, entry, agent->package, program) < 0) {
		starter = NULL;
		return no_memory(work);
	}

	if (mkdirat(work->project_fd, source, 0755) < 0 ||
	    (version_fd = openat(work->project_fd, source, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return refuse(work->reterr, -errno, "%s: %s", source, strerrordesc_np(errno));
	if (renameat(work->project_fd, node, version_fd, "node") < 0 ||
	    fchmodat(version_fd, "node", 0755, 0) < 0)
		return missing(work, node);
	*strrchr(node, '/') = '\0';
	*strrchr(node, '/') = '\0';
	r = install_tree_remove(work->project_fd, node);
	if (r == 0 && renameat(work->project_fd, MODULES, version_fd, MODULES) < 0)
		r = -errno;
	if (r == 0)
		r = write_file(version_fd, agent->name, 0755, starter);
	if (r < 0)
		return refuse(work->reterr, r, "%s: %s", work->project, strerrordesc_np(-r));
	*ret_source = TAKE_PTR(source);
	return 0;
}

static int fetch(Work *work)
{
	static const char *const arguments[] = { "ci", NULL };

	return install_npm_run(work->npm, work->project, work->home, arguments, work->environment,
			       work->reterr);
}

static int put_in_place(Work *work, const char *version)
{
	_cleanup_free_ char *entry = NULL, *source = NULL;
	_cleanup_close_ int fd = FD_NONE;
	int r;

	r = install_store_choose(work->store, work->agent->name, version, &entry);
	if (r < 0)
		return refuse(work->reterr, r, "%s: %s", work->store->path, strerrordesc_np(-r));
	r = work->agent->native ? arrange_native(work, &source) : arrange_node(work, entry, &source);
	if (r < 0)
		return r;
	fd = openat(work->project_fd, source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return refuse(work->reterr, -errno, "%s: %s", source, strerrordesc_np(errno));
	r = install_tree_settle(fd, work->reterr);
	if (r < 0)
		return r;
	return install_store_publish(work->store, work->project_fd, source, work->agent->name, entry,
				     work->reterr);
}

static int install(Work *work, const char *asked, InstallSay say, void *say_userdata, Installed *installed)
{
	_cleanup_free_ char *line = NULL;
	int r;

	r = work_begin(work);
	if (r == 0)
		r = resolve(work, asked, &installed->version);
	if (r < 0)
		return r;
	if (asprintf(&line, "fetching %s %s", work->agent->package, installed->version) < 0)
		line = NULL;
	if (asprintf(&installed->path, "%s/%s/%s", work->store->path, work->agent->name, work->agent->name) <
	    0)
		installed->path = NULL;
	if (!line || !installed->path)
		return no_memory(work);
	say(say_userdata, line);
	r = fetch(work);
	return r < 0 ? r : put_in_place(work, installed->version);
}

int install_agent(InstallStore *store, const InstallNpm *npm, const InstallAgent *agent, const char *version,
		  char *const *environment, InstallSay say, void *say_userdata, Installed *ret, char **reterr)
{
	_cleanup_(work_done) Work work = { .store = store,
					   .npm = npm,
					   .agent = agent,
					   .environment = environment,
					   .project_fd = FD_NONE,
					   .reterr = reterr };
	_cleanup_(installed_done) Installed installed = { 0 };
	int r, swept;

	swept = install_store_sweep(store);
	if (swept < 0)
		return refuse(reterr, swept, "what an earlier installation left in %s cannot be removed: %s",
			      store->path, strerrordesc_np(-swept));
	r = install(&work, version, say, say_userdata, &installed);
	/* Also takes the version that was just replaced, unless a session has it. */
	swept = install_store_sweep(store);
	if (r < 0)
		return r;
	installed.old_in_use = MAX_OF(swept, 0);
	*ret = installed;
	installed = (Installed){ 0 };
	return 0;
}
