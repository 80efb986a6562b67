/* SPDX-License-Identifier: MIT */

/*
 * The tools of the home: 10 of the order in mounts.c, and the key tools.
 *
 * A jail in which the compiler, the interpreter and the package manager are silently others is a jail that
 * people switch off. So the known directories of tools are shown, read-only; the caches that tools fill are
 * writable and survive; what may hold a secret inside a directory that is shown stays hidden. One row each.
 */

#include "service/plan/environment.h"
#include "service/plan/plan-build.h"
#include "service/plan/search-path.h"

/* A bundle of all public authorities has some 220 KiB. */
#define CERTIFICATES_BYTES_MAX (1u << 20)

typedef enum ToolKind {
	TOOL_SHOWN,  /* a directory, read-only */
	TOOL_CACHE,  /* a directory, read-write */
	TOOL_HIDDEN, /* below a directory that is shown: a file or directory that may hold secrets */
} ToolKind;

typedef struct Tool {
	const char *name; /* below the home */
	ToolKind kind;
	const char *reason;
} Tool;

/* In the order of the mounts: what is hidden follows what shows it. */
static const Tool tools[] = {
	{ ".local/bin", TOOL_SHOWN, "programs that the person installed" },
	{ ".local/lib", TOOL_SHOWN, "Python packages that the person installed" },
	{ "bin", TOOL_SHOWN, "programs of the person" },
	{ ".cargo/bin", TOOL_SHOWN, "Rust programs" },
	{ ".rustup", TOOL_SHOWN, "Rust toolchains" },
	{ ".nvm", TOOL_SHOWN, "Node.js versions (nvm)" },
	{ ".fnm", TOOL_SHOWN, "Node.js versions (fnm)" },
	{ ".local/share/fnm", TOOL_SHOWN, "Node.js versions (fnm)" },
	{ ".volta", TOOL_SHOWN, "Node.js versions (volta)" },
	{ ".n", TOOL_SHOWN, "Node.js versions (n)" },
	{ ".nodenv", TOOL_SHOWN, "Node.js versions (nodenv)" },
	{ ".npm-global", TOOL_SHOWN, "global npm packages" },
	{ ".bun", TOOL_SHOWN, "Bun" },
	{ ".deno", TOOL_SHOWN, "Deno" },
	{ ".pyenv", TOOL_SHOWN, "Python versions (pyenv)" },
	{ ".rbenv", TOOL_SHOWN, "Ruby versions (rbenv)" },
	{ ".asdf", TOOL_SHOWN, "tool versions (asdf)" },
	{ ".local/share/mise", TOOL_SHOWN, "tool versions (mise)" },
	{ ".sdkman", TOOL_SHOWN, "Java tools (SDKMAN)" },
	{ ".jenv", TOOL_SHOWN, "Java versions (jenv)" },
	{ "miniconda3", TOOL_SHOWN, "conda" },
	{ "miniforge3", TOOL_SHOWN, "conda" },
	{ "mambaforge", TOOL_SHOWN, "conda" },
	{ "anaconda3", TOOL_SHOWN, "conda" },
	{ ".conda/envs", TOOL_SHOWN, "conda environments" },
	{ ".conda/pkgs", TOOL_SHOWN, "conda packages" },
	{ "micromamba", TOOL_SHOWN, "micromamba" },
	{ ".pixi", TOOL_SHOWN, "pixi" },
	{ "go/bin", TOOL_SHOWN, "Go programs" },
	{ "sdk", TOOL_SHOWN, "Go versions" },
	{ ".ghcup", TOOL_SHOWN, "Haskell toolchains" },
	{ ".opam", TOOL_SHOWN, "OCaml switches" },
	{ ".juliaup", TOOL_SHOWN, "Julia versions" },
	{ ".julia", TOOL_SHOWN, "Julia packages" },
	{ ".dotnet", TOOL_SHOWN, ".NET tools" },

	{ ".cargo/registry", TOOL_CACHE, "Cargo's downloads" },
	{ ".cargo/git", TOOL_CACHE, "Cargo's downloads" },
	{ ".npm/_cacache", TOOL_CACHE, "npm's downloads" },
	{ "go/pkg", TOOL_CACHE, "Go's modules" },
	{ ".m2/repository", TOOL_CACHE, "Maven's downloads" },
	{ ".gradle/caches", TOOL_CACHE, "Gradle's downloads" },
	{ ".gradle/wrapper", TOOL_CACHE, "Gradle's versions" },
	{ ".ivy2/cache", TOOL_CACHE, "Ivy's downloads" },
	{ ".nuget/packages", TOOL_CACHE, "NuGet's packages" },
	{ ".bun/install/cache", TOOL_CACHE, "Bun's downloads" },

	{ ".npm-global/etc", TOOL_HIDDEN, "hidden: npm keeps tokens in the npmrc there" },
	{ "miniconda3/.condarc", TOOL_HIDDEN, "hidden: may hold a channel's token" },
	{ "miniforge3/.condarc", TOOL_HIDDEN, "hidden: may hold a channel's token" },
	{ "mambaforge/.condarc", TOOL_HIDDEN, "hidden: may hold a channel's token" },
	{ "anaconda3/.condarc", TOOL_HIDDEN, "hidden: may hold a channel's token" },
	{ ".julia/servers", TOOL_HIDDEN, "hidden: holds tokens of package servers" },
	{ ".julia/logs", TOOL_HIDDEN, "hidden: a history of what was typed" },
	{ ".dotnet/corefx", TOOL_HIDDEN, "hidden: holds private keys" },
	{ ".nvm/.npmrc", TOOL_HIDDEN, "hidden: may hold a token" },
	{ ".sdkman/etc", TOOL_HIDDEN, "hidden: settings" },
	{ ".local/share/mise/trusted-configs", TOOL_HIDDEN, "hidden: names other projects" },
};

static char *path_below(const char *home, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", home, name) < 0 ? NULL : path;
}

static EntryMode tool_mode(const Tool *tool)
{
	return tool->kind == TOOL_CACHE ? ENTRY_RW : ENTRY_RO;
}

static int tool_hide(PlanBuild *build, const char *path, const char *reason)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = build->view->resolve(build->view->userdata, path, &node);

	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	/* What cannot be opened is not readable inside either. */
	if (r < 0 || plan_hides(build->plan, node.path))
		return 0;
	return build_mask(build, node.path, node.mode, "tools", reason);
}

int build_tools(PlanBuild *build)
{
	if (!config_flag(&build->request->config, CONFIG_TOOLS))
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(tools); i++) {
		const Tool *tool = &tools[i];
		/* Spelled as the person does, whose links are then recreated. */
		_cleanup_free_ char *path = path_below(build->home, tool->name);
		int r;

		if (!path)
			return -ENOMEM;
		if (tool->kind == TOOL_HIDDEN)
			r = tool_hide(build, path, tool->reason);
		else
			r = build_expose(build, path, EXPOSE_DIRECTORY, tool_mode(tool), "tools",
					 tool->reason);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

/*
 * Certificates in PEM and no private key beside them (RFC 7468). The path came by a variable, which an agent may
 * have planted in a file that the person's shell loads: it must show nothing else.
 */
static int is_certificates(const PlanBuild *build, const PlanNode *node)
{
	static const char begin[] = "-----BEGIN ";
	_cleanup_free_ char *text = malloc(CERTIFICATES_BYTES_MAX);
	bool found = false;

	if (!text)
		return -ENOMEM;
	ssize_t n = build->view->read_head(build->view->userdata, node, text, CERTIFICATES_BYTES_MAX);
	if (n <= 0 || (size_t)n == CERTIFICATES_BYTES_MAX || memmem(text, (size_t)n, "PRIVATE KEY", 11))
		return 0;
	for (const char *at = text, *end = text + n;
	     (at = memmem(at, (size_t)(end - at), begin, sizeof(begin) - 1));) {
		size_t rest = (size_t)(end - at) - (sizeof(begin) - 1);

		at += sizeof(begin) - 1;
		if ((rest < 11 || memcmp(at, "CERTIFICATE", 11) != 0) &&
		    (rest < 19 || memcmp(at, "TRUSTED CERTIFICATE", 19) != 0))
			return 0;
		found = true;
	}
	return found;
}

int build_certificates(PlanBuild *build)
{
	const char *name;

	for (size_t i = 0; (name = environment_certificates(i)); i++) {
		const char *path = environment_value(build->request->environment, name);
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		int r;

		if (!path || path[0] != '/')
			continue;
		r = build->view->resolve(build->view->userdata, path, &node);
		if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
			return r;
		/* What stays hidden is named when the variable is left out (environment.c). */
		if (r < 0 || !S_ISREG(node.mode) || !plan_hides(build->plan, node.path) ||
		    build_shows_store(build, node.path, NULL))
			continue;
		r = is_certificates(build, &node);
		if (r <= 0) {
			if (r < 0)
				return r;
			continue;
		}
		r = build_links(build, path, name);
		if (r < 0)
			return r;
		_cleanup_free_ char *place = strdup(node.path);
		if (!place)
			return -ENOMEM;
		r = plan_add_bind(build->plan, &node, place, ENTRY_RO, name,
				  "certificates that a variable names");
		if (r < 0)
			return r;
	}
	return 0;
}

bool build_shows_programs(const PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = path_below(build->home, ".local/bin");

	return path && config_flag(&build->request->config, CONFIG_TOOLS) &&
	       build->view->resolve(build->view->userdata, path, &node) == 0 && S_ISDIR(node.mode);
}
