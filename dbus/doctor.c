/* SPDX-License-Identifier: MIT */
#include "dbus/doctor.h"

static const struct {
	const char *id, *title;
} rows[] = {
	{ DOCTOR_ENTRY_OURS, "entries" },
	{ DOCTOR_ENTRY_PATH, "agents on PATH" },
	{ DOCTOR_ENTRY_PLANTED, "places ahead on PATH" },
	{ DOCTOR_BUS, "system bus" },
	{ DOCTOR_POLICY, "bus policy" },
	{ DOCTOR_ACTIVATION, "bus activation" },
	{ DOCTOR_NAME, "name on the bus" },
	{ DOCTOR_FILES_OWNER, "installed files" },
	{ DOCTOR_CONFIG_OWNER, "owner of the configuration" },
	{ DOCTOR_CONFIG_FILE, "configuration" },
	{ DOCTOR_CONFIG_WARNINGS, "what the configuration opens" },
	{ DOCTOR_CONFIG_ENVIRONMENT, "what the environment asks for" },
	{ DOCTOR_RUN_STALE, "leavings of sessions" },
	{ DOCTOR_CGROUP, "control groups" },
	{ DOCTOR_POLKIT_ALIVE, "polkit" },
	{ DOCTOR_POLKIT_ACTIONS, "polkit's actions" },
	{ DOCTOR_POLKIT_LAUNCH, "leave to start agents" },
	{ DOCTOR_USER_CALLER, "calling process" },
	{ DOCTOR_USER_GROUPS, "groups" },
	{ DOCTOR_USER_ROOT, "user" },
	{ DOCTOR_USER_HOME, "home" },
	{ DOCTOR_USER_DIRECTORY, "this directory" },
	{ DOCTOR_AGENT "claude", "claude" },
	{ DOCTOR_AGENT "codex", "codex" },
	{ DOCTOR_AGENT "pi", "pi" },
	{ DOCTOR_KERNEL_VERSION, "kernel" },
	{ DOCTOR_CONTAINER, "container" },
	{ DOCTOR_WSL, "WSL" },
	{ DOCTOR_KERNEL_SECCOMP, "system call filters" },
	{ DOCTOR_KERNEL_APPARMOR, "AppArmor" },
	{ DOCTOR_TUN, "/dev/net/tun" },
	{ DOCTOR_BWRAP, "bwrap" },
	{ DOCTOR_PASTA, "pasta" },
	{ DOCTOR_GIT, "git" },
	{ DOCTOR_CHAIN_SESSION, "start: the session" },
	{ DOCTOR_UPLINK, "way to the internet" },
	{ DOCTOR_FORWARDER, "name server's place" },
	{ DOCTOR_RESOLVER, "host's name server" },
	{ DOCTOR_CHAIN_PROGRAMS, "start: programs" },
	{ DOCTOR_KERNEL_USERNS, "user namespaces" },
	{ DOCTOR_CHAIN_NAMESPACES, "start: namespaces" },
	{ DOCTOR_CHAIN_TAP, "start: devices" },
	{ DOCTOR_CHAIN_ROUTES, "start: denials" },
	{ DOCTOR_CHAIN_PROC, "start: private /proc" },
	{ DOCTOR_GIT_IDENTITY, "who commits" },
	{ DOCTOR_CHAIN_PLAN, "start: plan of mounts" },
	{ DOCTOR_CHAIN_MOUNTS, "start: mounts" },
	{ DOCTOR_CHAIN_WIRE, "start: wire" },
	{ DOCTOR_CHAIN_AGENT, "start: a program inside" },
	{ DOCTOR_ANSWERS, "names inside" },
	{ DOCTOR_CHAIN_END, "start: its end" },
};

const char *doctor_id_at(size_t index)
{
	return index < ELEMENTSOF(rows) ? rows[index].id : NULL;
}

const char *doctor_title(const char *id)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (streq(rows[i].id, id))
			return rows[i].title;
	return NULL;
}
