/* SPDX-License-Identifier: MIT */
#include "service/plan/workspace-rules.h"

#include "base/paths.h"
#include "dbus/names.h"

/*
 * What may be the workspace. All paths are canonical, so that a link cannot walk around a row. A row with
 * below set refuses everything inside as well; the others refuse only the directory itself, since people do
 * keep projects in /var/tmp/x, /var/www or /tmp/x.
 */
static const struct {
	const char *path;
	bool below;
	bool homes; /* but a home may lie inside (that of a service account), and projects in that home */
	bool everybodys; /* anybody may put something there */
} system_directories[] = {
	{ "/bin", true, false },
	{ "/boot", true, false },
	{ "/dev", true, false },
	{ "/etc", true, false },
	{ "/lib", true, false },
	{ "/lib32", true, false },
	{ "/lib64", true, false },
	{ "/libx32", true, false },
	{ "/proc", true, false },
	{ "/run", true, false },
	{ "/sbin", true, false },
	{ "/sys", true, false },
	{ "/usr", true, false },
	{ "/var", false, false },
	{ "/var/lib", true, true },
	{ "/var/run", true, false },
	/* As a workspace the whole of /tmp would bring back the sockets that the private one hides. */
	{ "/tmp", false, false, true },
	{ "/var/tmp", false, false, true },
	/* Our own; those below /usr and /run are refused with them. */
	{ CS_TEMP_ROOT, true, false, true },
};

/* Directories whose every entry is somebody's home. */
static const char *const home_collections[] = { "/home", "/var/home" };

/*
 * Below each home: keys, tokens, and what the person's own session runs. Neither a workspace inside one nor a
 * workspace around one.
 */
static const char *const credentials[] = {
	".ssh",
	".gnupg",
	".aws",
	".azure",
	".kube",
	".docker",
	".config",
	".netrc",
	".git-credentials",
	".password-store",
	".pki",
	".mozilla",
	".thunderbird",
	".Xauthority",
	".ICEauthority",
	".claude",
	".claude.json",
	".codex",
	".pi",
	".local/bin",
	".local/share/applications",
	".local/share/bash-completion",
	".local/share/claude",
	".local/share/dbus-1",
	".local/share/fish",
	".local/share/gnome-shell",
	".local/share/keyrings",
	".local/share/kservices5",
	".local/share/kwalletd",
	".local/share/nvim",
	".local/share/plasma",
	".local/share/systemd",
	".local/share/zsh",
	".local/state/claude-sandbox",
	NULL,
};

const char *const *credential_paths(void)
{
	return credentials;
}

static bool overlaps(const char *a, const char *b)
{
	return path_is_within(a, b) || path_is_within(b, a);
}

/* Return: the home of somebody that path lies in or is, as one more path; NULL when there is none. */
static char *home_of_somebody(const char *path)
{
	for (size_t i = 0; i < ELEMENTSOF(home_collections); i++) {
		const char *rest = starts_with(path, home_collections[i]);

		if (rest && rest[0] == '/' && rest[1] != '\0')
			return strndup(path, (size_t)(rest - path) + 1 + strcspn(rest + 1, "/"));
	}
	return NULL;
}

static bool has_home_inside(const char *directory, const char *path, const char *const *homes)
{
	for (size_t i = 0; homes[i]; i++)
		if (path_is_within(homes[i], directory) && !streq(homes[i], directory) &&
		    path_is_within(path, homes[i]))
			return true;
	return false;
}

int directory_check(const char *path, const char *const *homes, char **ret_cause)
{
	if (streq(path, "/"))
		return refuse(ret_cause, -EPERM, "it is the whole file system");

	for (size_t i = 0; i < ELEMENTSOF(home_collections); i++)
		if (path_is_within(home_collections[i], path))
			return refuse(ret_cause, -EPERM, "it holds the home directories");
	for (size_t i = 0; homes[i]; i++)
		if (path_is_within(homes[i], path))
			return refuse(ret_cause, -EPERM,
				      streq(homes[i], path) ? "it is the home directory %s"
							    : "it contains the home directory %s",
				      homes[i]);

	_cleanup_free_ char *somebody = home_of_somebody(path);
	if (somebody && streq(somebody, path))
		return refuse(ret_cause, -EPERM, "it is the home directory %s", path);

	for (size_t i = 0; i < ELEMENTSOF(system_directories); i++) {
		const char *directory = system_directories[i].path;

		if (streq(path, directory))
			return refuse(ret_cause, -EPERM, "it is a system directory");
		if (!system_directories[i].below || !path_is_within(path, directory))
			continue;
		if (system_directories[i].homes && has_home_inside(directory, path, homes))
			continue;
		return refuse(ret_cause, -EPERM, "it lies in the system directory %s", directory);
	}
	return 0;
}

bool directory_is_systems(const char *directory)
{
	static const char *const stores[] = { "/nix/store", "/gnu/store" };

	if (streq(directory, "/"))
		return true;
	for (size_t i = 0; i < ELEMENTSOF(home_collections); i++)
		if (streq(directory, home_collections[i]))
			return true;
	for (size_t i = 0; i < ELEMENTSOF(stores); i++)
		if (path_is_within(directory, stores[i]))
			return true;
	for (size_t i = 0; i < ELEMENTSOF(system_directories); i++) {
		bool below = system_directories[i].below && !system_directories[i].homes;

		if (system_directories[i].everybodys)
			continue;
		if (below ? path_is_within(directory, system_directories[i].path)
			  : streq(directory, system_directories[i].path))
			return true;
	}
	return false;
}

const char *workspace_root_refusal(const char *path)
{
	if (streq(path, "/"))
		return "it is the whole file system";
	for (size_t i = 0; i < ELEMENTSOF(home_collections); i++)
		if (streq(path, home_collections[i]))
			return "it holds the home directories";
	for (size_t i = 0; i < ELEMENTSOF(system_directories); i++)
		if (streq(path, system_directories[i].path))
			return "it is a system directory";
	return NULL;
}

/* Does path lie in, or contain, a credential path of home? Return: that path below home, or NULL. */
static const char *shown_credential(const char *path, const char *home)
{
	const char *rest = path_is_within(path, home) ? path + (streq(home, "/") ? 0 : strlen(home)) : "";

	if (rest[0] != '/' || rest[1] == '\0')
		return NULL;
	for (size_t i = 0; credentials[i]; i++)
		if (overlaps(rest + 1, credentials[i]))
			return credentials[i];
	return NULL;
}

int workspace_check(const char *path, const char *const *homes, char **ret_problem)
{
	_cleanup_free_ char *cause = NULL, *somebody = NULL;
	const char *credential = NULL, *home = NULL;

	int r = directory_check(path, homes, &cause);
	if (r < 0)
		return refuse(ret_problem, r,
			      "%s cannot be the workspace: %s; change to the directory of a project (mkdir "
			      "makes one), or name one with workspace-root",
			      path, cause ?: "it is not allowed");

	somebody = home_of_somebody(path);
	if (somebody)
		credential = shown_credential(path, home = somebody);
	for (size_t i = 0; !credential && homes[i]; i++)
		credential = shown_credential(path, home = homes[i]);
	if (credential)
		return refuse(ret_problem, -EPERM,
			      "%s cannot be the workspace: it would show what is kept in %s/%s, logins or an "
			      "agent's state; "
			      "move the project out of there",
			      path, home, credential);
	return 0;
}

/* What allow-write may neither name, contain nor lie in: it would take away what makes this a jail. */
static const struct {
	const char *path;
	const char *cause;
} never_writable[] = {
	{ "/dev", "devices are not given this way" },
	{ "/proc", "it is no file system of files" },
	{ "/sys", "it is no file system of files" },
	{ CS_LIBEXEC_DIR, "it would show the sandbox's own files" },
	{ CS_BIN_DIR, "it would show the sandbox's own files" },
	{ CS_RUN_DIR, "it would show the sandbox's own files" },
	{ CS_CONFIG_PATH, "it would show the sandbox's own files" },
	{ CS_GITCONFIG_PATH, "it would show the sandbox's own files" },
	{ CS_TEMP_ROOT, "it would show the files of other sessions" },
};

const char *allow_write_refusal(const char *path)
{
	if (streq(path, "/"))
		return "it would take the whole jail away";
	for (size_t i = 0; i < ELEMENTSOF(never_writable); i++)
		if (overlaps(path, never_writable[i].path))
			return never_writable[i].cause;
	return NULL;
}
