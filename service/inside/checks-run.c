/* SPDX-License-Identifier: MIT */

/* 12: nothing in /run, and no socket of a bus, a container service or the desktop answers. */

#include "base/paths.h"
#include "service/inside/checks.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "service/inside/measure.h"
#include "service/inside/mounts.h"

static const char *const sockets[] = {
	"/run/dbus/system_bus_socket",
	"/var/run/dbus/system_bus_socket",
	"/run/docker.sock",
	"/var/run/docker.sock",
	"/run/podman/podman.sock",
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/snapd.socket",
	"/run/libvirt/libvirt-sock",
	"/run/systemd/private",
	"/run/systemd/journal/socket",
	"/run/cups/cups.sock",
	"/run/avahi-daemon/socket",
	"/run/pcscd/pcscd.comm",
	"/tmp/.X11-unix/X0",
	"/var/lib/lxd/unix.socket",
	"/var/lib/incus/unix.socket",
};

/* Below /run/user/UID. */
static const char *const own_sockets[] = { "bus",         "systemd/private", "podman/podman.sock",
					   "docker.sock", "wayland-0",       "pipewire-0",
					   "pulse/native" };

static bool is_allowed(const Expectations *e, const char *path)
{
	for (size_t i = 0; e && e->allowed_write && e->allowed_write[i]; i++)
		if (path_is_within(path, e->allowed_write[i]))
			return true;
	return false;
}

/* Return: 0 when something answers; a negative errno. */
static int socket_answers(const char *path)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r = -ENAMETOOLONG;

	if (strlen(path) >= sizeof(address.sun_path))
		return r;
	memcpy(address.sun_path, path, strlen(path) + 1);
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		_cleanup_close_ int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			return -errno;
		if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN)
			return 0;
		r = -errno;
		if (r != -EPROTOTYPE)
			break;
	}
	return r;
}

static void judge_socket(Battery *b, const char *path)
{
	_cleanup_free_ char *real = measure_real_path(path);
	int r = real ? 0 : -errno;

	if (real && mounts_is_agents(battery_expectations(b), real))
		return;
	if (real)
		r = socket_answers(path);
	battery_starved(b, r, "whether the socket %s answers", path);
	if (r < 0)
		return;
	if (is_allowed(battery_expectations(b), path))
		battery_note(b, "%s answers, as allow-write says", path);
	else
		battery_fail(b, "the socket %s answers", path);
}

static void judge_own_sockets(Battery *b)
{
	char directory[64];

	(void)snprintf(directory, sizeof(directory), "/run/user/%u", (unsigned)getuid());
	for (size_t i = 0; i < ELEMENTSOF(own_sockets); i++) {
		_cleanup_free_ char *path = battery_path(b, directory, own_sockets[i]);

		if (path)
			judge_socket(b, path);
	}
}

/* A socket that a variable leads to, "unix:path=PATH,..." or a bare path. */
static void judge_variable(Battery *b, const char *name)
{
	const char *value = measure_variable(name);
	_cleanup_free_ char *path = NULL;

	if (!value)
		return;
	value = starts_with(value, "unix:path=") ?: value;
	path = strndup(value, strcspn(value, ",;"));
	if (!path)
		battery_fail(b, "no memory");
	else if (path[0] == '/')
		judge_socket(b, path);
}

static void judge_covered(Battery *b, const Expectations *e)
{
	/* Beside an agent, a program that started again has made its socket anew: that is told with its
	 * entry. */
	for (size_t i = 0; !e->joined && i < e->n_entries; i++) {
		const char *path = e->entries[i].path;
		int r = e->entries[i].covers_listener ? socket_answers(path) : -ENOENT;

		if (r == 0)
			battery_fail(b, "the socket %s of another program answers", path);
		battery_starved(b, r, "whether the socket %s answers", path);
	}
}

static int judge_user_name(void *userdata, const char *name)
{
	Battery *b = userdata;
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *path = battery_path(b, "/run/user", name);

	if (!path)
		return -ENOMEM;
	for (size_t i = 0; e && e->allowed_write && e->allowed_write[i]; i++)
		if (path_is_within(e->allowed_write[i], path)) {
			battery_note(b, "%s is there, as allow-write says", path);
			return 0;
		}
	if (!e || !e->joined)
		battery_fail(b, "%s is in sight", path);
	return 0;
}

void check_run(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	int r = measure_list("/run/user", judge_user_name, b);

	if (r < 0 && r != -ENOENT)
		battery_fail(b, "/run/user: %s", strerror(-r));
	for (size_t i = 0; i < ELEMENTSOF(sockets); i++)
		judge_socket(b, sockets[i]);
	judge_own_sockets(b);
	judge_variable(b, "DBUS_SESSION_BUS_ADDRESS");
	judge_variable(b, "DBUS_SYSTEM_BUS_ADDRESS");
	judge_variable(b, "SSH_AUTH_SOCK");
	if (e)
		judge_covered(b, e);
	battery_pass(b, "/run/user is %s, no socket of a service answers", r == -ENOENT ? "absent" : "empty");
	mounts_judge(b, "12");
	check_anchors(b, "12");
	check_contents(b, "12");
}
