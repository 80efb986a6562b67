/* SPDX-License-Identifier: MIT */

/* Local sockets of programs outside: by name, by path, and all that the kernel lists. */

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-socket.h"
#include "service/inside/probe-tables.h"
#include "service/plan/name-services.h"

#define LISTED_MAX 300u
#define FLAG_LISTENS 0x10000u /* __SO_ACCEPTCON, include/uapi/linux/net.h */

static const char *const abstract_sockets[] = { "@/tmp/.X11-unix/X0",
						"@/tmp/.X11-unix/X1",
						"@/tmp/.X11-unix/X10",
						"@/tmp/.ICE-unix/1",
						"@/tmp/dbus-session",
						"@/run/dbus/system_bus_socket",
						"@/containerd-shim/probe",
						"@/org/kernel/linux/storage/multipathd",
						"@ISCSIADM_ABSTRACT_NAMESPACE",
						"@/com/ubuntu/upstart",
						"@/org/freedesktop/systemd1/private",
						NULL };

static void attempt_abstract(Probing *p)
{
	const ExpectedBait *bait = probing_bait(p, BAIT_ABSTRACT);
	unsigned refused = 0;

	if (bait) {
		(void)probing_connect(p, bait->name, true, &refused);
		if (refused > 0)
			probing_blocked(p, "the bait @%s cannot be connected", bait->name);
	}
}

static void attempt_path(Probing *p)
{
	static const char *const roots[] = { "", "/proc/self/root", "/proc/1/root", "/proc/self/cwd" };
	const ExpectedBait *bait = probing_bait(p, BAIT_PATH);

	if (!bait) {
		probing_unclear(p, "there is no bait");
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(roots); i++) {
		_cleanup_free_ char *path = NULL;
		unsigned refused = 0;

		if (asprintf(&path, "%s%s", roots[i], bait->name) < 0)
			return;
		(void)probing_connect(p, path, false, &refused);
		if (refused > 0)
			probing_blocked(p, "%s cannot be connected", path);
	}
}

static const char *const buses[] = { "/run/dbus/system_bus_socket",
				     "/var/run/dbus/system_bus_socket",
				     "/run/systemd/private",
				     "/run/systemd/notify",
				     "/run/systemd/journal/stdout",
				     "/run/systemd/journal/socket",
				     "/run/polkit/agent-helper.socket",
				     "/run/user/{uid}/bus",
				     "/run/user/{uid}/systemd/private",
				     "/run/user/{uid}/at-spi/bus_0",
				     "{home}/.dbus/session-bus",
				     "/run/systemd/io.systemd.ManagedOOM",
				     "/run/systemd/machine/io.systemd.Machine",
				     "/run/systemd/resolve/io.systemd.Resolve",
				     NULL };

static const char *const engines[] = { "/run/docker.sock",
				       "/var/run/docker.sock",
				       "/run/podman/podman.sock",
				       "/run/user/{uid}/podman/podman.sock",
				       "/run/user/{uid}/docker.sock",
				       "{home}/.docker/run/docker.sock",
				       "{home}/.docker/desktop/docker.sock",
				       "{home}/.colima/default/docker.sock",
				       "{home}/.local/share/containers/podman/machine/podman.sock",
				       "/run/containerd/containerd.sock",
				       "/run/k3s/containerd/containerd.sock",
				       "/run/crio/crio.sock",
				       "/run/buildkit/buildkitd.sock",
				       "/var/lib/lxd/unix.socket",
				       "/var/snap/lxd/common/lxd/unix.socket",
				       "/var/lib/incus/unix.socket",
				       "/run/libvirt/libvirt-sock",
				       "/run/libvirt/virtqemud-sock",
				       "/run/snapd.socket",
				       "/run/balena-engine.sock",
				       "/run/firecracker.sock",
				       "/nix/var/nix/daemon-socket/socket.probe",
				       NULL };

static const char *const desktop[] = { "/tmp/.X11-unix/X0",
				       "/tmp/.X11-unix/X1",
				       "/run/user/{uid}/wayland-0",
				       "/run/user/{uid}/wayland-1",
				       "/run/user/{uid}/pulse/native",
				       "/run/user/{uid}/pipewire-0",
				       "/run/user/{uid}/gnupg/S.gpg-agent",
				       "{home}/.gnupg/S.gpg-agent",
				       "{home}/.gnupg/S.gpg-agent.ssh",
				       "/run/user/{uid}/keyring/ssh",
				       "/run/user/{uid}/keyring/control",
				       "/run/user/{uid}/ssh-agent.socket",
				       "/run/user/{uid}/kwallet5.socket",
				       "/tmp/kwallet5_{user}.socket",
				       "/tmp/tmux-{uid}/default",
				       "/run/screen/S-{user}",
				       "/run/user/{uid}/emacs/server",
				       "/tmp/emacs{uid}/server",
				       "{home}/.ssh/control",
				       "{home}/.1password/agent.sock",
				       "/run/user/{uid}/code-probe.sock",
				       NULL };

static void attempt_agent(Probing *p)
{
	const char *agent = getenv("SSH_AUTH_SOCK");
	unsigned refused = 0;

	if (agent)
		(void)probing_connect(p, agent, false, &refused);
}

static const char *const services[] = { "/run/udev/control",
					"/run/cups/cups.sock",
					"/run/avahi-daemon/socket",
					"/run/pcscd/pcscd.comm",
					"/run/rpcbind.sock",
					"/run/acpid.socket",
					"/run/mysqld/mysqld.sock",
					"/run/postgresql/.s.PGSQL.5432",
					"/tmp/.s.PGSQL.5432",
					"/run/redis/redis-server.sock",
					"/run/memcached/memcached.sock",
					"/run/php/php-fpm.sock",
					"/run/lvm/lvmpolld.socket",
					"/run/multipathd.socket",
					"/run/irqbalance/irqbalance.sock",
					"/dev/log",
					"/dev/initctl",
					"/run/initctl",
					"/var/run/tailscale/tailscaled.sock",
					"/run/spire/sockets/agent.sock",
					"/run/vault/agent.sock",
					"/run/nslcd/socket",
					"/run/samba/winbindd/pipe",
					"/run/systemd/userdb/io.systemd.DynamicUser",
					"/run/systemd/userdb/io.systemd.Multiplexer",
					"/var/lib/sss/pipes/pam",
					"/var/lib/sss/pipes/ssh",
					"/var/lib/sss/pipes/sudo",
					NULL };

/* "Num RefCount Protocol Flags Type St Inode Path" (proc(5)), of the network namespace that we see. */
static void attempt_listed(Probing *p)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/net/unix", "re");
	_cleanup_free_ char *line = NULL;
	unsigned refused = 0, listed = 0;
	size_t size = 0;

	if (!file) {
		probing_unclear(p, "/proc/self/net/unix: %s", probing_error(errno));
		return;
	}
	while (listed < LISTED_MAX && getline(&line, &size, file) > 0) {
		unsigned flags = 0;
		int at = 0;
		char *path;

		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %n", &flags, &at) < 1 || at == 0 ||
		    !(flags & FLAG_LISTENS))
			continue;
		path = line + at;
		path[strcspn(path, "\n")] = '\0';
		if (!*path || name_service_is(path, getuid()))
			continue;
		listed++;
		/* Of a network of the jail's own they are its programs', which nobody disturbs. */
		if (p->expectations && p->expectations->joined && p->expectations->jailed)
			continue;
		(void)probing_connect(p, *path == '@' ? path + 1 : path, *path == '@', &refused);
	}
	probing_blocked(p, "of %u listening sockets that are listed %u are out of reach", listed, refused);
}

static void attempt_covered(Probing *p)
{
	const Expectations *e = p->expectations;
	unsigned refused = 0, covered = 0;

	for (size_t i = 0; e && i < e->n_entries; i++) {
		const ExpectedEntry *entry = &e->entries[i];
		struct stat st;

		if (!entry->covers_listener)
			continue;
		covered++;
		(void)probing_connect(p, entry->path, false, &refused);
		/* A FIFO opens to write where somebody reads. */
		if (stat(entry->path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
			probing_escaped(p, "%s is not covered", entry->path);
	}
	if (covered > 0)
		probing_blocked(p, "%u covered sockets and FIFOs answer nobody", covered);
	else
		probing_blocked(p, "no socket or FIFO of others lies in sight");
}

const Probe probes_sockets[] = {
	{ "p64", "no abstract sockets of outside", "the desktop's keys and screen", attempt_abstract,
	  .sockets = abstract_sockets },
	{ "p65", "no socket in a hidden place", "any service that listens there", attempt_path },
	{ "p66", "neither the system's nor the person's bus", "every service, with the person's rights",
	  .sockets = buses },
	{ "p67", "no container engines, no virtual machines", "root", .sockets = engines },
	{ "p68", "neither the person's agents nor the desktop", "keys, passwords, screen, terminals",
	  attempt_agent, .sockets = desktop },
	{ "p69", "no services of the machine", "databases, printers, devices, logs", .sockets = services },
	{ "p70", "no socket that the kernel lists", "whatever else listens", attempt_listed },
	{ "p71", "covered sockets and FIFOs answer nobody",
	  "programs of the person's that listen in sight of the agent", attempt_covered },
};
const size_t probes_sockets_count = ELEMENTSOF(probes_sockets);
