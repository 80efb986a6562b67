/* SPDX-License-Identifier: MIT */
#include "tests/unit/plan-fixture.h"

#include <assert.h>

#define DIR_(path, ...)                           \
	{                                         \
		path, S_IFDIR | 0755, __VA_ARGS__ \
	}
#define FILE_(path, ...)                          \
	{                                         \
		path, S_IFREG | 0644, __VA_ARGS__ \
	}
#define PROJECT "~/.local/state/claude-sandbox/projects/abcdefghijklm"
#define CALLER ((uid_t)-1) /* whoever the caller is */

/* clang-format off */
static const FakeNode machine[] = {
	{ "/dev/null", S_IFCHR | 0666 },
	{ "/dev/pts/3", S_IFCHR | 0620, CALLER },
	DIR_("/proc"),
	DIR_("/proc/self"),
	DIR_("/tmp"),
	{ "/bin", S_IFLNK | 0777, 0, "usr/bin" },
	{ "/usr/bin/bash", S_IFREG | 0755 },
	{ "/usr/libexec/claude-sandbox/entry", S_IFREG | 0755 },
	{ "/usr/local/bin/claude", S_IFLNK | 0777, 0, "/usr/libexec/claude-sandbox/entry" },
	{ "/var/run", S_IFLNK | 0777, 0, "/run" },
	{ "/run/docker.sock", S_IFSOCK | 0666 },
	{ "/run/current-system", S_IFLNK | 0777, 0, "/nix/store/system" },
	DIR_("/nix/store/system"),
	DIR_("/run/opengl-driver"),
	FILE_("/run/systemd/resolve/stub-resolv.conf"),
	{ "/etc/resolv.conf", S_IFLNK | 0777, 0, "../run/systemd/resolve/stub-resolv.conf" },
	FILE_("/etc/claude-gitconfig"),
	{ "/etc/shadow", S_IFREG | 0640 },
	{ "/etc/shadow-", S_IFREG | 0640 },
	{ "/etc/gshadow", S_IFREG | 0640 },
	{ "/etc/gshadow-", S_IFREG | 0640 },
	{ "/etc/sudoers", S_IFREG | 0440 },
	{ "/etc/sudoers.d", S_IFDIR | 0750 },
	{ "/etc/ssl/private", S_IFDIR | 0710 },
	{ "/etc/wireguard", S_IFDIR | 0700 },
	{ "/etc/NetworkManager/system-connections", S_IFDIR | 0755 },
	{ "/etc/krb5.keytab", S_IFREG | 0600 },
	{ "/etc/letsencrypt", S_IFDIR | 0755 },
	{ "/etc/letsencrypt/live", S_IFDIR | 0755 },
	{ "/etc/ssh/ssh_host_ed25519_key", S_IFREG | 0600 },
	{ "/etc/ssh/ssh_host_rsa_key", S_IFREG | 0644 }, /* a mistake that happens */
	{ "/etc/ssh/ssh_host_rsa_key.pub", S_IFREG | 0644 },
	{ "/var/mail", S_IFDIR | 02775 },
	{ "/var/spool/mail", S_IFLNK | 0777, 0, "../mail" },
	{ "/var/crash", S_IFDIR | 03777 },
	{ "/var/lib/systemd/coredump", S_IFDIR | 0755 },
	DIR_("/home"),
	DIR_("/root"),
	{ "/var/tmp/claude-agent", S_IFDIR | 0711 },
	{ "/var/tmp/claude-agent/1000/abcdefghijklm", S_IFDIR | 0700, CALLER },
	{ "/srv/database/socket", S_IFSOCK | 0777 },
	{ "/srv/queue", S_IFIFO | 0666 },
	DIR_("~", CALLER),
	DIR_("~/.claude", CALLER),
	DIR_("~/.claude/local", CALLER),
	DIR_("~/.claude/skills", CALLER),
	DIR_("~/.claude/projects/-home-user-src-project-src", CALLER),
	DIR_("~/.claude/projects/-root-src-project-src", CALLER),
	DIR_("~/.claude/projects/-var-home-user-src-project-src", CALLER),
	DIR_("~/.claude/projects/-home-user-src-other", CALLER),
	DIR_("~/.codex", CALLER),
	DIR_("~/.codex/packages", CALLER),
	DIR_("~/.codex/sessions", CALLER),
	DIR_("~/.pi", CALLER),
	DIR_("~/.pi/agent/skills", CALLER),
	DIR_(PROJECT "/.claude", CALLER),
	DIR_(PROJECT "/.claude/projects", CALLER),
	DIR_(PROJECT "/.codex", CALLER),
	DIR_(PROJECT "/.pi", CALLER),
	DIR_(PROJECT "/.pi/agent", CALLER),
	DIR_("~/.agents/skills", CALLER),
	DIR_("~/.cache", CALLER),
	{ "~/.cache/bus/socket", S_IFSOCK | 0700, CALLER },
	DIR_("~/.config/gh", CALLER),
	DIR_("~/.config/glab-cli", CALLER),
	DIR_("~/.config/nvim", CALLER),
	FILE_("~/.ssh/id_ed25519", CALLER),
	FILE_("~/.ssh/known_hosts", CALLER),
	FILE_("~/.netrc", CALLER),
	FILE_("~/.Xauthority", CALLER),
	DIR_("~/.ICEauthority", CALLER),
	{ "~/.gnupg/S.gpg-agent", S_IFSOCK | 0700, CALLER },
	DIR_("~/.local/share", CALLER),
	DIR_("~/.local/share/uv", CALLER),
	DIR_("~/.local/share/uv/credentials", CALLER),
	DIR_("~/.local/share/uv/tools", CALLER),
	DIR_("~/.local/share/uv/tools/ruff", CALLER),
	DIR_("~/.local/share/pnpm/store", CALLER),
	DIR_("~/.local/share/pipx", CALLER),
	DIR_("~/.local/share/applications", CALLER),
	DIR_("~/.local/share/claude", CALLER),
	DIR_("~/.local/share/fish", CALLER),
	DIR_("~/.local/share/keyrings", CALLER),
	{ "~/.local/bin/uv", S_IFREG | 0755, CALLER },
	{ "~/.local/bin/uvx", S_IFREG | 0755, CALLER },
	{ "~/.local/bin/claude", S_IFLNK | 0777, CALLER, "../share/claude/versions/2.0" },
	{ "~/.local/share/claude/versions/2.0", S_IFREG | 0755, CALLER },
	DIR_("~/src/project", CALLER),
	DIR_("~/src/project/src", CALLER),
	{ "~/src/project/server.sock", S_IFSOCK | 0755, CALLER },
	DIR_("~/src/main/.git", CALLER),
	DIR_("~/src/main/.git/worktrees/project", CALLER),
};
/* clang-format on */

const char *plan_fixture_path(PlanFixture *fixture, const char *path)
{
	if (path[0] != '~')
		return path;
	assert(strings_appendf(&fixture->owned, "%s%s", fixture->canonical_home, path + 1) == 0);
	return fixture->owned[strings_count(fixture->owned) - 1];
}

static FakeNode *expand(PlanFixture *fixture, const FakeNode *nodes, size_t n)
{
	FakeNode *copy = calloc(n + 1, sizeof(*copy));

	assert(copy);
	for (size_t i = 0; i < n; i++) {
		copy[i] = nodes[i];
		copy[i].path = plan_fixture_path(fixture, nodes[i].path);
		if (nodes[i].link)
			copy[i].link = plan_fixture_path(fixture, nodes[i].link);
		if (nodes[i].uid == CALLER)
			copy[i].uid = fixture->uid;
	}
	return copy;
}

void plan_fixture_add(PlanFixture *fixture, const FakeNode *more)
{
	size_t n = 0;

	while (more[n].path)
		n++;
	assert(!fixture->more);
	fixture->more = expand(fixture, more, n);
	fixture->fake.more = fixture->more;
}

void plan_fixture_install(PlanFixture *fixture, const char *agent)
{
	_cleanup_free_ char *path = NULL;
	size_t n = ELEMENTSOF(machine);

	assert(asprintf(&path, "~/.local/bin/%s", agent) > 0);
	for (size_t i = 0; i < n; i++)
		if (streq(machine[i].path, path))
			return;
	/* In the place of the one that ends the table, which is made one longer. */
	FakeNode *grown = reallocarray(fixture->nodes, n + 2, sizeof(*grown));

	assert(grown);
	grown[n] = (FakeNode){ plan_fixture_path(fixture, path), S_IFREG | 0755, fixture->uid };
	grown[n + 1] = (FakeNode){ 0 };
	fixture->nodes = grown;
	fixture->fake.nodes = grown;
}

void plan_fixture_configure(PlanFixture *fixture, ConfigKey key, const char *text)
{
	Config *config = &fixture->request.config;
	ConfigValue *values = reallocarray(config->values, config->n_values + 1, sizeof(*values));

	assert(values);
	config->values = values;
	values[config->n_values++] = (ConfigValue){
		.key = key,
		.text = strdup(plan_fixture_path(fixture, text)),
		.comment = strdup(""),
		.origin = strdup(CS_CONFIG_PATH ":7"),
	};
}

void plan_fixture_setenv(PlanFixture *fixture, const char *variable)
{
	assert(strings_append(&fixture->request.environment, variable) == 0);
}

void plan_fixture_set_path(PlanFixture *fixture, const char *path)
{
	_cleanup_free_ char *variable = strdup(path ? "PATH=" : "NO_PATH=");

	for (const char *part = path; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
		_cleanup_free_ char *text = strndup(part, strcspn(part, ":")), *before = TAKE_PTR(variable);

		assert(asprintf(&variable, "%s%s%s", before, part == path ? "" : ":",
				plan_fixture_path(fixture, text)) > 0);
	}
	for (size_t i = 0; fixture->request.environment[i]; i++)
		if (starts_with(fixture->request.environment[i], "PATH=")) {
			free(fixture->request.environment[i]);
			fixture->request.environment[i] = TAKE_PTR(variable);
			return;
		}
}

static const char *project_state(PlanFixture *fixture, const char *agent)
{
	const Profile *profile = profile_find(agent);
	_cleanup_free_ char *path = NULL;

	if (!profile || !profile->state)
		return NULL;
	assert(asprintf(&path, PROJECT "/%s", profile->state) > 0);
	return plan_fixture_path(fixture, path);
}

void plan_fixture_init(PlanFixture *fixture, const char *who, const char *agent)
{
	static const char *const environment[] = {
		"TERM=xterm-256color", "LANG=C.UTF-8",        "LC_TIME=C",       "LC_ALL=",
		"LC_SECRET1=no",       "SECRET_TOKEN=hidden", "EDITOR=vi",       "TERM=second",
		"PATH=/evil",          "LD_PRELOAD=/evil.so", "UV_CACHE_DIR=/c", "SSH_AUTH_SOCK=/run/agent",
		"DISPLAY=:0",          "UV_INDEX_URL=secret", "NOT A NAME",      "=nothing",
	};
	bool root = streq(who, "root");

	*fixture = (PlanFixture){
		.home = root ? "/root" : "/home/user",
		.uid = root ? 0 : 1000,
		.held = { PLAN_NODE_INIT, PLAN_NODE_INIT, PLAN_NODE_INIT, PLAN_NODE_INIT },
	};
	fixture->canonical_home = streq(who, "moved") ? "/var/home/user" : fixture->home;
	fixture->nodes = expand(fixture, machine, ELEMENTSOF(machine));
	fixture->fake =
		(FakeView){ .nodes = fixture->nodes, .home = fixture->canonical_home, .uid = fixture->uid };
	fixture->view = fake_view(&fixture->fake);
	fixture->request = (SessionRequest){
		.id = strdup("abcdefghijklmnop"),
		.agent = strdup(agent),
		.uid = fixture->uid,
		.gid = fixture->uid,
		.user = strdup(root ? "root" : "user"),
		.home = strdup(fixture->home),
		.login_shell = strdup("/bin/zsh"),
		.cwd = strdup(plan_fixture_path(fixture, "~/src/project/src")),
	};
	plan_fixture_setenv(fixture, plan_fixture_path(fixture, root ? "HOME=/root" : "HOME=/home/user"));
	for (size_t i = 0; i < ELEMENTSOF(environment); i++)
		plan_fixture_setenv(fixture, environment[i]);
	assert(strings_append(&fixture->request.argv, "--chrome") == 0);
	assert(strings_append(&fixture->request.argv, "two\nlines") == 0);
	plan_fixture_configure(fixture, CONFIG_WORKSPACE_ROOT, "~/src/project");

	static const char *const sockets[] = {
		"/run/docker.sock",         "/srv/database/socket", "/srv/queue",
		"~/.cache/bus/socket",      "~/.gnupg/S.gpg-agent", "/gone",
		"~/src/project/server.sock"
	};
	for (size_t i = 0; i < ELEMENTSOF(sockets); i++)
		assert(strings_append(&fixture->sockets, plan_fixture_path(fixture, sockets[i])) == 0);
	fixture->facts = (PlanFacts){
		.private_proc = true,
		.git_config = "[user]\n\tname = somebody\n",
		.resolver = "nameserver 192.0.2.53\n",
		.temp_root = "/var/tmp/claude-agent/1000/abcdefghijklm",
		.project_state = project_state(fixture, agent),
		.git_directory = plan_fixture_node(fixture, "~/src/main/.git/worktrees/project"),
		.git_common_directory = plan_fixture_node(fixture, "~/src/main/.git"),
		.sockets = (const char *const *)fixture->sockets,
		.terminal = true,
		.terminal_path = "/dev/pts/3",
	};
}

const PlanNode *plan_fixture_node(PlanFixture *fixture, const char *path)
{
	PlanNode *node = NULL;

	for (size_t i = 0; i < ELEMENTSOF(fixture->held) && !node; i++)
		if (!fixture->held[i].path)
			node = &fixture->held[i];
	assert(node);
	*node = PLAN_NODE_INIT;
	assert(fixture->view.resolve(fixture->view.userdata, plan_fixture_path(fixture, path), node) == 0);
	return node;
}

void plan_fixture_done(PlanFixture *fixture)
{
	for (size_t i = 0; i < ELEMENTSOF(fixture->held); i++)
		plan_node_done(&fixture->held[i]);
	plan_done(&fixture->plan);
	session_request_done(&fixture->request);
	free(fixture->problem);
	free(fixture->nodes);
	free(fixture->more);
	strings_free(fixture->sockets);
	strings_free(fixture->owned);
	*fixture = (PlanFixture){ 0 };
}

int plan_fixture_make(PlanFixture *fixture)
{
	plan_done(&fixture->plan);
	free(fixture->problem);
	fixture->problem = NULL;
	fixture->error = NULL;
	return plan_make(&fixture->request, profile_find(fixture->request.agent), &fixture->facts,
			 &fixture->view, &fixture->plan, &fixture->error, &fixture->problem);
}

const Entry *plan_fixture_entry(const PlanFixture *fixture, const char *destination)
{
	for (size_t i = fixture->plan.n_entries; i > 0; i--)
		if (streq(fixture->plan.entries[i - 1].destination, destination))
			return &fixture->plan.entries[i - 1];
	return NULL;
}

size_t plan_fixture_warnings(const PlanFixture *fixture)
{
	return strings_count(fixture->plan.warnings) -
	       plan_fixture_warns(fixture, "programs outside listen on ");
}

bool plan_fixture_warns(const PlanFixture *fixture, const char *part)
{
	for (size_t i = 0; fixture->plan.warnings && fixture->plan.warnings[i]; i++)
		if (strstr(fixture->plan.warnings[i], part))
			return true;
	return false;
}
