/* SPDX-License-Identifier: MIT */

/* 13: what is hidden of the system, whatever the plan says. */

#include "service/inside/checks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "service/inside/measure.h"
#include "service/inside/mounts.h"

static const char *const secrets[] = {
	"/etc/shadow",      "/etc/shadow-",
	"/etc/gshadow",     "/etc/gshadow-",
	"/etc/sudoers",     "/etc/sudoers.d",
	"/etc/ssl/private", "/etc/wireguard",
	"/etc/krb5.keytab", "/etc/NetworkManager/system-connections",
	"/etc/letsencrypt", "/etc/ppp/pap-secrets",
	"/var/mail",        "/var/spool/mail",
	"/var/crash",       "/var/lib/systemd/coredump",
};

static int is_anything(void *userdata, const char *name)
{
	return 1;
}

static void judge_secret(Battery *b, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char byte;
	int r = 0;

	if (fd < 0) {
		battery_starved(b, errno, "whether %s can be read", path);
		return;
	}
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = measure_list(path, is_anything, NULL);
	else if (S_ISREG(st.st_mode))
		r = (int)read(fd, &byte, 1);
	if (r != 0)
		battery_fail(b, "%s can be read", path);
}

static int judge_key(void *userdata, const char *name)
{
	size_t n = strlen(name);
	_cleanup_free_ char *path = NULL;

	if (!starts_with(name, "ssh_host_") || n < 4 || !streq(name + n - 4, "_key"))
		return 0;
	path = battery_path(userdata, "/etc/ssh", name);
	if (path)
		judge_secret(userdata, path);
	return 0;
}

static int judge_secret_name(void *userdata, const char *name)
{
	Battery *b = userdata;
	_cleanup_free_ char *path = battery_path(b, "/run/secrets", name);

	if (!path)
		return -ENOMEM;
	if (!mounts_is_agents(battery_expectations(b), path))
		battery_fail(b, "%s is in sight", path);
	return 0;
}

void check_system_secrets(Battery *b)
{
	int r = measure_list("/run/secrets", judge_secret_name, b), keys;

	if (r < 0 && r != -ENOENT)
		battery_fail(b, "/run/secrets: %s", strerror(-r));
	for (size_t i = 0; i < ELEMENTSOF(secrets); i++)
		judge_secret(b, secrets[i]);
	keys = measure_list("/etc/ssh", judge_key, b);
	battery_starved(b, keys, "whether keys of /etc/ssh can be read");
	battery_pass(b, "/run/secrets is %s, password and key files, mail and memory dumps cannot be read",
		     r == -ENOENT ? "absent" : "empty");
	mounts_judge(b, "13");
	check_contents(b, "13");
}
