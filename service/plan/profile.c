/* SPDX-License-Identifier: MIT */
#include "service/plan/profile.h"

#include "service/link/pack.h"

#define TRANSCRIPTS_NAME_MAX 200u

#define LIST(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* What the agents of today keep, and why a name is of its kind: docs/agents.md. */
static const Profile profiles[] = {
	{
		.name = "claude",
		.state = ".claude",
		.account_directories = LIST("agents", "commands", "output-styles", "plugins", "rules",
					    "skills", "themes", "workflows"),
		.account_files = LIST(".claude.json", ".credentials.json", ".device-keys.json", "AGENTS.md",
				      "CLAUDE.md", "keybindings.json", "loop.md", "settings.json"),
		.account_locks = LIST(".claude.json.lock", ".hybrid_oauth_refresh.lock",
				      ".oauth_refresh.lock", ".storage-write.lock"),
		.home_file = ".claude.json",
		/* The background service and its jobs; what stands there by PID or by an editor's port; "local", the
		 * target of the alias that Claude puts into a person's shell. */
		.session_names = LIST("daemon.lock", "daemon.status.json", "daemon/", "ide/", "jobs/",
				      "local/", "sessions/", "shell-snapshots/"),
		.orders = LIST("daemon/dispatch/x.json", "jobs/x.json"),
		.settings = LIST("settings.json", ".claude.json"),
		.program_keys = LIST("command", "args", "apiKeyHelper", "awsAuthRefresh",
				     "awsCredentialExport", "headersHelper", "otelHeadersHelper"),
		.transcripts = "projects",
		.transcripts_kept = TRANSCRIPTS_DASHED,
		.first_arguments = LIST(),
		.removed_arguments = LIST("--chrome"),
		.anywhere = LIST("--help", "--version", "-h", "-v", "auth", "auto-mode", "doctor", "mcp",
				 "plugin", "plugins", "setup-token"),
		.updates = LIST("install", "update", "upgrade"),
		/* Work in the background dies with the session, so Claude must not promise it; no browser is
		 * reachable (a variable, since an argument would come before its subcommands); its own updates
		 * would only fill a private directory, hundreds of MiB at a time. */
		.variables = LIST("CLAUDE_CONFIG_DIR=$HOME/.claude", "CLAUDE_CODE_DISABLE_AGENT_VIEW=1",
				  "CLAUDE_CODE_ENABLE_CFC=0", "DISABLE_AUTOUPDATER=1"),
		.skills = "skills",
		.temp_root = true,
		.native_path = true,
	},
	{
		.name = "codex",
		.state = ".codex",
		.account_directories = LIST("agents", "plugins", "prompts", "rules", "skills", "themes"),
		.account_files = LIST(".credentials.json", ".env", "AGENTS.md", "AGENTS.override.md",
				      "auth.json", "config.toml", "hooks.json"),
		.account_locks = LIST("auth.json.lock", "auth.lock"),
		/* The service that Codex starts in the background, and a copy of all its programs for that;
		 * links to the running program. */
		.session_names = LIST("app-server-control/", "app-server-daemon/", "packages/",
				      "shell_snapshots/", "tmp/"),
		.orders = LIST("queue_1.sqlite", "app-server-control/app-server-control.sock"),
		.settings = LIST("config.toml", "hooks.json"),
		.program_keys = LIST("command", "args", "notify"),
		.transcripts = "sessions",
		.transcripts_kept = TRANSCRIPTS_DATED,
		/* Without that service: it would copy 430 MB into memory, and take over turns that then die with
		 * the session. Codex takes the option before any subcommand. */
		.first_arguments = LIST("-c", "features.daemon_auto_start=false"),
		.removed_arguments = LIST(),
		.anywhere = LIST("--help", "--version", "-V", "-h", "completion", "doctor", "features",
				 "help", "login", "logout", "mcp", "plugin"),
		.updates = LIST("update"),
		.variables = LIST("CODEX_UPDATE_DISABLED=1"),
		.beside = "codex-path", /* the ripgrep that it brings; more lies next to it */
		.skills = "skills",
	},
	{
		.name = "pi",
		.state = ".pi",
		.account_directories = LIST("agent/extensions", "agent/git", "agent/npm", "agent/prompts",
					    "agent/skills", "agent/themes"),
		.account_files = LIST("agent/AGENTS.md", "agent/AGENTS.override.md", "agent/APPEND_SYSTEM.md",
				      "agent/CLAUDE.md", "agent/SYSTEM.md", "agent/auth.json",
				      "agent/keybindings.json", "agent/mcp-auth.json", "agent/mcp.json",
				      "agent/models.json", "agent/settings.json"),
		.account_locks = LIST("agent/auth.json.lock", "agent/settings.json.lock"),
		.session_names = LIST(),
		.orders = LIST(),
		.settings = LIST("agent/settings.json", "agent/mcp.json"),
		.program_keys = LIST("command", "args", "shellPath"),
		.transcripts = "agent/sessions",
		.transcripts_kept = TRANSCRIPTS_FRAMED,
		.first_arguments = LIST(),
		.removed_arguments = LIST(),
		.anywhere = LIST("--help", "--list-models", "--version", "-h", "-v", "config", "list"),
		.updates = LIST(),
		.variables = LIST("PI_SKIP_VERSION_CHECK=1"),
		.skills = "agent/skills",
	},
	{
		.name = "shell",
		.account_directories = LIST(),
		.account_files = LIST(),
		.account_locks = LIST(),
		.session_names = LIST(),
		.orders = LIST(),
		.settings = LIST(),
		.program_keys = LIST(),
		.first_arguments = LIST(),
		.removed_arguments = LIST(),
		.anywhere = LIST(),
		.updates = LIST(),
		/* What Debian's /etc/bash.bashrc puts before the prompt: nobody types on the wrong side. */
		.variables = LIST("debian_chroot=jail"),
		.system_program = "/bin/bash",
	},
};

const Profile *profile_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(profiles); i++)
		if (streq(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

const Profile *profile_at(size_t index)
{
	return index < ELEMENTSOF(profiles) ? &profiles[index] : NULL;
}

char *profile_path(const Profile *profile, const char *name)
{
	size_t n = strlen(name);
	char *path;

	n -= n > 0 && name[n - 1] == '/';
	return asprintf(&path, "%s/%.*s", profile->state, (int)n, name) < 0 ? NULL : path;
}

bool profile_is_directory(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && name[n - 1] == '/';
}

/* Units of UTF-16 that the character which begins with byte c counts for; 0 within one. */
static unsigned utf16_units(unsigned char c)
{
	return (c & 0xc0) == 0x80 ? 0 : c >= 0xf0 ? 2 : 1;
}

/* As JavaScript replaces: a dash for each unit of a character that is not kept. */
static char *dash(const char *text, bool (*is_kept)(char c))
{
	char *name = malloc(strlen(text) + 1);
	size_t n = 0;

	for (; name && *text; text++) {
		if (is_kept(*text)) {
			name[n++] = *text;
			continue;
		}
		for (unsigned units = utf16_units((unsigned char)*text); units > 0; units--)
			name[n++] = '-';
	}
	if (name)
		name[n] = 0;
	return name;
}

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_no_separator(char c)
{
	return c != '/' && c != '\\' && c != ':';
}

int profile_find_transcripts(const Profile *profile, const char *cwd, char **ret)
{
	bool framed = profile->transcripts_kept == TRANSCRIPTS_FRAMED;
	_cleanup_free_ char *name = NULL;
	int n;

	if (!framed && profile->transcripts_kept != TRANSCRIPTS_DASHED)
		return -ENOENT;
	name = framed ? dash(cwd + (cwd[0] == '/'), is_no_separator) : dash(cwd, is_letter_or_digit);
	if (!name)
		return -ENOMEM;
	/* Above this Claude shortens it, and adds a hash. */
	if (strlen(name) > TRANSCRIPTS_NAME_MAX)
		return -ENOENT;
	n = framed ? asprintf(ret, "%s/--%s--", profile->transcripts, name)
		   : asprintf(ret, "%s/%s", profile->transcripts, name);
	return n < 0 ? -ENOMEM : 0;
}

static bool list_has(const char *const *list, const char *string)
{
	for (size_t i = 0; list[i]; i++)
		if (streq(list[i], string))
			return true;
	return false;
}

bool profile_works_anywhere(const Profile *profile, char *const *argv)
{
	return argv && argv[0] && list_has(profile->anywhere, argv[0]);
}

bool profile_updates(const Profile *profile, char *const *argv)
{
	return argv && argv[0] && list_has(profile->updates, argv[0]);
}

char **profile_arguments(const Profile *profile, const char *program, char *const *argv)
{
	size_t n_first = strings_count((char *const *)profile->first_arguments), n = 0;
	_cleanup_(strings_freep) char **arguments =
		calloc(1 + n_first + strings_count(argv) + 1, sizeof(*arguments));

	if (!arguments || !(arguments[n++] = strdup(program)))
		return NULL;
	for (size_t i = 0; i < n_first; i++)
		if (!(arguments[n++] = strdup(profile->first_arguments[i])))
			return NULL;
	for (size_t i = 0; argv && argv[i]; i++) {
		if (list_has(profile->removed_arguments, argv[i]))
			continue;
		if (!(arguments[n++] = strdup(argv[i])))
			return NULL;
	}
	return TAKE_PTR(arguments);
}
