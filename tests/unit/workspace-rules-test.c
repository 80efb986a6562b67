/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/paths.h"
#include "dbus/names.h"
#include "service/plan/workspace-rules.h"

static const char *const homes[] = { "/home/user", "/root", "/srv/second", "/var/lib/builder", NULL };

static const char *const refused[] = {
	"/",
	/* homes, what holds them, and those of others */
	"/home/user",
	"/home",
	"/root",
	"/srv",
	"/srv/second",
	"/home/other",
	"/var/home",
	"/var/home/other",
	/* the system */
	"/etc",
	"/etc/nginx",
	"/usr",
	"/usr/local/src/project",
	"/usr/libexec/claude-sandbox",
	"/run",
	"/run/user/1000/project",
	"/var/run/project",
	"/proc",
	"/proc/1/root",
	"/sys",
	"/sys/kernel",
	"/dev",
	"/dev/shm/project",
	"/boot",
	"/boot/efi",
	"/bin",
	"/sbin/x",
	"/lib/x",
	"/lib32/x",
	"/lib64/x",
	"/libx32/x",
	"/var",
	"/var/lib",
	"/var/lib/docker",
	"/tmp",
	"/var/tmp",
	"/var/tmp/claude-agent",
	"/var/tmp/claude-agent/1000/abc",
	/* keys and tokens: inside, exactly there, and around */
	"/home/user/.ssh",
	"/home/user/.ssh/sub",
	"/home/user/.aws",
	"/home/user/.kube/x",
	"/home/user/.gnupg",
	"/home/user/.config",
	"/home/user/.config/nvim",
	"/home/user/.docker",
	"/home/user/.claude",
	"/home/user/.claude/projects",
	"/home/user/.codex",
	"/home/user/.pi/agent",
	"/home/user/.netrc",
	"/home/user/.local",
	"/home/user/.local/bin",
	"/home/user/.local/share",
	"/home/user/.local/share/keyrings",
	"/home/user/.local/share/systemd/user",
	"/home/user/.azure",
	"/home/user/.git-credentials",
	"/home/user/.password-store",
	"/home/user/.pki",
	"/home/user/.mozilla/firefox",
	"/home/user/.thunderbird",
	"/home/user/.Xauthority",
	"/home/user/.ICEauthority",
	"/home/user/.claude.json",
	"/home/user/.local/share/applications",
	"/home/user/.local/share/bash-completion",
	"/home/user/.local/share/claude",
	"/home/user/.local/share/dbus-1",
	"/home/user/.local/share/fish",
	"/home/user/.local/share/gnome-shell",
	"/home/user/.local/share/kservices5",
	"/home/user/.local/share/kwalletd",
	"/home/user/.local/share/nvim",
	"/home/user/.local/share/plasma",
	"/home/user/.local/share/zsh",
	"/root/.ssh",
	"/srv/second/.aws",
	"/home/other/.ssh",
	"/home/other/.local",
	"/var/lib/builder",
	"/var/lib/builder/.ssh",
};

static const char *const accepted[] = {
	"/home/user/project",
	"/home/user/.sshx",
	"/home/user/.dotfiles",
	"/home/user/.local/share/uv",
	"/home/user/.local/src",
	"/home/user/src/.config",
	"/home/user2x/project",
	"/home/other/project",
	"/root/project",
	"/srv/project",
	"/srv/second/project",
	"/opt/project",
	"/tmp/project",
	"/var/tmp/project",
	"/var/tmp/claude-agents",
	"/var/www/site",
	"/var/lib/builder/job",
	"/var/libx",
	"/etcetera",
	"/usr2",
	"/data",
	"/mnt/disk/project",
};

static void test_workspace(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
		_cleanup_free_ char *problem = NULL;

		if (workspace_check(refused[i], homes, &problem) != -EPERM)
			fail_msg("%s is accepted", refused[i]);
		assert_non_null(problem);
		assert_ptr_equal(strstr(problem, refused[i]), problem);
		/* The cause and the fix. */
		assert_true(strstr(problem, "directory of a project") || strstr(problem, "move the project"));
	}
	for (size_t i = 0; i < ELEMENTSOF(accepted); i++) {
		_cleanup_free_ char *problem = NULL;

		if (workspace_check(accepted[i], homes, &problem) != 0)
			fail_msg("%s", problem);
		assert_null(problem);
	}
}

/* A home that a variable names does not open what lies around it. */
static void test_service_home(void **state)
{
	static const char *const plain[] = { "/home/user", NULL };

	assert_int_equal(workspace_check("/var/lib/builder/job", plain, NULL), -EPERM);
	assert_int_equal(workspace_check("/var", plain, NULL), -EPERM);
	assert_int_equal(workspace_check("/var/lib", plain, NULL), -EPERM);
	assert_int_equal(workspace_check("/var/lib/other/job", homes, NULL), -EPERM);
}

static void test_directory(void **state)
{
	_cleanup_free_ char *cause = NULL;

	assert_int_equal(directory_check("/home/user/.claude", homes, &cause), 0);
	assert_int_equal(directory_check("/data/claude", homes, &cause), 0);
	assert_null(cause);
	assert_int_equal(directory_check("/etc", homes, &cause), -EPERM);
	assert_string_equal(cause, "it is a system directory");
	assert_int_equal(directory_check("/etc/x", homes, &cause), -EPERM);
	assert_string_equal(cause, "it lies in the system directory /etc");
	assert_int_equal(directory_check("/home/user", homes, &cause), -EPERM);
	assert_string_equal(cause, "it is the home directory /home/user");
}

static void test_allow_write(void **state)
{
	static const char *const never[] = { "/",
					     "/dev",
					     "/dev/sda",
					     "/proc",
					     "/sys/kernel",
					     "/run",
					     "/etc",
					     "/usr",
					     "/usr/local",
					     "/usr/local/bin",
					     "/usr/local/bin/claude",
					     "/var",
					     "/var/tmp",
					     "/usr/libexec/claude-sandbox/agents",
					     "/etc/claude-sandbox.conf",
					     "/etc/claude-gitconfig",
					     "/run/claude-sandbox/inside" };
	static const char *const fine[] = { "/home/user",
					    "/run/docker.sock",
					    "/etc/nginx",
					    "/usr/src",
					    "/tmp",
					    "/srv",
					    "/home/user/.ssh/known_hosts",
					    "/var/lib/x",
					    "/var/tmp/x" };

	for (size_t i = 0; i < ELEMENTSOF(never); i++)
		if (!allow_write_refusal(never[i]))
			fail_msg("%s is accepted", never[i]);
	for (size_t i = 0; i < ELEMENTSOF(fine); i++)
		if (allow_write_refusal(fine[i]))
			fail_msg("%s is refused: %s", fine[i], allow_write_refusal(fine[i]));
}

static void test_systems(void **state)
{
	static const char *const systems[] = { "/",    "/etc",  "/etc/alternatives", "/usr/lib",
					       "/var", "/home", "/var/lib",          "/nix/store/x" };
	static const char *const others[] = {
		"/srv",       "/opt",     "/tmp", "/var/tmp", "/var/lib/builder",
		"/home/user", "/var/www", "/nix", "/data",    CS_TEMP_ROOT
	};

	for (size_t i = 0; i < ELEMENTSOF(systems); i++)
		assert_true(directory_is_systems(systems[i]));
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		assert_false(directory_is_systems(others[i]));
}

static void test_within(void **state)
{
	assert_true(path_is_within("/a/b", "/a"));
	assert_true(path_is_within("/a", "/a"));
	assert_true(path_is_within("/a", "/"));
	assert_true(path_is_within("/", "/"));
	assert_false(path_is_within("/ab", "/a"));
	assert_false(path_is_within("a", "/"));
	assert_false(path_is_within("", "/"));
	assert_false(path_is_within("/a", "/a/b"));
	assert_false(path_is_within("/", "/a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workspace), cmocka_unit_test(test_service_home),
		cmocka_unit_test(test_directory), cmocka_unit_test(test_allow_write),
		cmocka_unit_test(test_within),    cmocka_unit_test(test_systems),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
