/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Why a launch is refused or goes on with less, and what helps: each once, for the refusal and for Doctor,
 * whose rows must say the same of the same fault. A sentence is "cause; fix". The conversions stand in the
 * cause alone, but where a fix names a package.
 */

#include "dbus/base.h"
#include "dbus/names.h"

/* The whole sentence of CAUSE_name and FIX_name, as a format. */
#define BECAUSE(name) CAUSE_##name "; " FIX_##name

/* The device of tun(4) */
#define CAUSE_TUN_ABSENT "/dev/net/tun is absent"
#define FIX_TUN_ABSENT                                                                             \
	"load the kernel's tun module (modprobe tun), or give the container the device (--device " \
	"/dev/net/tun)"
#define CAUSE_TUN_DRIVER "/dev/net/tun has no driver"
#define FIX_TUN_DRIVER "load its module (modprobe tun), or take a kernel that has it (CONFIG_TUN)"
#define CAUSE_TUN_CGROUP "/dev/net/tun is denied by the device cgroup"
#define FIX_TUN_CGROUP "let the container use the device 10:200 (--device /dev/net/tun)"
#define CAUSE_TUN_DIRECTORY "/dev/net is denied by its mode"
#define FIX_TUN_DIRECTORY "run 'sudo chmod 0755 /dev/net'"
#define CAUSE_TUN_MODE "/dev/net/tun is denied by its mode %04o"
#define FIX_TUN_MODE "run 'sudo chmod 0666 /dev/net/tun', as Debian's rules have it"
#define CAUSE_TUN_NODEV "/dev/net/tun lies on a file system that is mounted without devices"
#define FIX_TUN_NODEV "mount it without nodev"
#define CAUSE_TUN_MODULE "/dev/net/tun is denied by a security module, though its mode permits it"
#define FIX_TUN_MODULE "permit it there (the kernel's log has the denial: 'journalctl -k')"
#define CAUSE_TUN_OTHER "/dev/net/tun is not the tun driver's device"
#define FIX_TUN_OTHER "remove it, then 'mknod -m 0666 /dev/net/tun c 10 200'"

/* User namespaces */
#define CAUSE_USERNS_NONE "user namespaces are switched off (user.max_user_namespaces is 0)"
#define FIX_USERNS_NONE "sysctl -w user.max_user_namespaces=15000"
#define CAUSE_NETNS_NONE "network namespaces are switched off (user.max_net_namespaces is 0)"
#define FIX_NETNS_NONE "sysctl -w user.max_net_namespaces=15000"
#define CAUSE_USERNS_LIMIT \
	"no further namespace may be made (the user's limit or the depth of nesting is reached)"
#define FIX_USERNS_LIMIT "end other sessions or raise user.max_user_namespaces"
#define CAUSE_USERNS_KERNEL "this kernel offers no user namespaces (%s: %s)"
#define FIX_USERNS_KERNEL "a kernel with CONFIG_USER_NS is needed"
#define CAUSE_USERNS_ROOT_ONLY "user namespaces are for root alone (kernel.unprivileged_userns_clone is 0)"
#define FIX_USERNS_ROOT_ONLY "sysctl -w kernel.unprivileged_userns_clone=1"
#define CAUSE_USERNS_APPARMOR "AppArmor restricts user namespaces (%s: %s)"
#define FIX_USERNS_APPARMOR                                                                  \
	"copy " CS_APPARMOR_PATH " to /etc/apparmor.d and load it (apparmor_parser -r), or " \
	"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
#define CAUSE_USERNS_SECCOMP "a seccomp filter (a container's) forbids user namespaces (%s: %s)"
#define FIX_USERNS_SECCOMP "start the container with one that permits unshare and clone"
#define CAUSE_USERNS_OTHER "user namespaces are forbidden (%s: %s)"
#define FIX_USERNS_OTHER                                                                                \
	"start outside of any chroot, or permit them in the security module (the kernel's log has the " \
	"denial)"

/* The caller's limits (getrlimit(2)), which its session has as well; the fix names ulimit's option */
#define CAUSE_LIMIT_LOW "the caller's limit of %s is %llu%s, and a jail needs %llu%s"
#define FIX_LIMIT_LOW "raise it where it was lowered (ulimit %s, or limits.conf and a new login)"
#define FIX_LIMIT_FILE_SIZE "raise the limit of file sizes where it was lowered (ulimit -f)"

/* bwrap, pasta and git; %2$s or the last %s: the package */
#define CAUSE_PROGRAM_MISSING "%s is missing"
#define FIX_PROGRAM_PACKAGE "install the package %s"
#define CAUSE_PROGRAM_IRREGULAR "%s is not a regular file"
#define FIX_PROGRAM_AGAIN "reinstall the package %s"
#define CAUSE_PROGRAM_OWNER "%s is not root's alone (owner %u, mode %04o)"
#define CAUSE_PROGRAM_SET_ID "%s is set-user-ID"
#define FIX_PROGRAM_SET_ID "chmod u-s,g-s it (user namespaces replace that)"
#define CAUSE_PROGRAM_MODE "%s may not be executed by this user (mode %04o): %s"
#define CAUSE_BWRAP_OLD "bwrap is too old: it does not know --bind-fd, and mounts by path could be redirected"
#define FIX_BWRAP_OLD "install bubblewrap 0.10 or newer, or the one of Debian 12's security archive"
#define CAUSE_BWRAP_ENDED "bwrap ended before the agent ran: %s"
#define FIX_BWRAP_ENDED                                                                               \
	"reinstall bubblewrap and claude-sandbox, or see what forbids it here (a security module, a " \
	"container)"
#define CAUSE_PASTA_ENDED "pasta ended: %s"
#define FIX_PASTA_ENDED                                                                                          \
	"look for what blocks it (a container, or AppArmor: journalctl -k -g DENIED), or reinstall the package " \
	"passt"
#define CAUSE_APPARMOR_BLOCKS "on, and may have blocked %s"
#define FIX_APPARMOR_BLOCKS "look for what it blocked: journalctl -k -g DENIED"
#define CAUSE_PASTA_SILENT "pasta did not bring the wire up within 10 seconds"
#define FIX_PASTA_SILENT "see whether another program holds back its start"

/* What a session goes on without */
#define CAUSE_PROC_MASKED "a private /proc cannot be mounted here (%s)"
#define FIX_PROC_MASKED "set procfs = auto, or start the container without masks over /proc"
#define FIX_PROC_OUTER "start the container without masks over /proc"
#define CAUSE_UPLINK_NONE "the host has no usable IPv4 uplink"
#define FIX_UPLINK_NONE "the session starts offline and connects by itself when there is one"
#define CAUSE_RESOLVER_UNREADABLE "/etc/resolv.conf cannot be read (%s)"
#define FIX_RESOLVER_UNREADABLE "names do not resolve inside until it can be"
#define CAUSE_RESOLVER_NONE "no name server in /etc/resolv.conf: names do not resolve inside"
#define FIX_RESOLVER_NONE "add one"
#define CAUSE_RESOLVER_NO_IPV4 "no IPv4 name server in /etc/resolv.conf: names do not resolve inside"
#define FIX_RESOLVER_NO_IPV4 "add one"
#define CAUSE_RESOLVER_SILENT "the name server %s of /etc/resolv.conf does not answer (%s)"
#define FIX_RESOLVER_SILENT "see whether it runs, or name another one there"
#define FIX_ANSWERS_NONE \
	"put the host's name server right (dns.resolver), or see what holds packets to it back"
#define CAUSE_FORWARDER_NONE                                                                               \
	"no names will resolve inside: 192.0.2.53, 198.51.100.53 and 203.0.113.53 all lie in networks of " \
	"the host or in an allow-ip"
#define FIX_FORWARDER_NONE "free one of these documentation networks (RFC 5737)"

#define CAUSE_GIT_IDENTITY_NONE "git knows no user.name and user.email: commits inside fail"
#define FIX_GIT_IDENTITY_NONE \
	"git config --global user.name 'Your Name' and git config --global user.email you@example.org"

/* Who is started by an agent's name */
#define CAUSE_ENTRY_BEHIND "'%s' starts %s, without a jail"
#define FIX_ENTRY_BEHIND                                                                              \
	"put /usr/local/bin first in PATH, as the last line of ~/.profile or your shell's own file: " \
	"PATH=/usr/local/bin:$PATH"
#define CAUSE_ENTRY_OFF_PATH "/usr/local/bin is not on PATH: an agent's name starts nothing"
#define FIX_ENTRY_OFF_PATH FIX_ENTRY_BEHIND
#define CAUSE_ENTRY_PLANTED                                                                                \
	"%s is there, and would run instead of the sandbox: agents may write its directory, which stands " \
	"before /usr/local/bin on PATH"
#define FIX_ENTRY_PLANTED "look at it, and remove it or put /usr/local/bin first"
#define CAUSE_AGENT_MISSING "%s is not installed"
#define FIX_AGENT_MISSING "run 'sudo claude-sandbox install %s'"
#define CAUSE_AGENT_ODD "%s is not installed: %s %s"
#define FIX_AGENT_ODD "run 'sudo claude-sandbox install %s', or put the agent's own program there"

/* polkit; %s: the action */
#define CAUSE_POLKIT_ABSENT "polkit is not on this machine, so only root may do this (%s)"
#define FIX_POLKIT_ABSENT "install polkitd, or call as root."
#define CAUSE_POLKIT_SILENT "polkit does not answer, so this is refused (%s)"
#define FIX_POLKIT_SILENT "start polkit, or let an administrator do it as root."
#define CAUSE_POLKIT_BROKEN "polkit could not be asked, so this is refused (%s): %s"
#define FIX_POLKIT_BROKEN "put polkit right, or call as root."
#define CAUSE_POLKIT_UNKNOWN "polkit does not know the action %s"
#define FIX_POLKIT_UNKNOWN                                                           \
	"install claude-sandbox again (sudo ./quickstart), whose actions belong in " \
	"/usr/share/polkit-1/actions, or call as root."
#define CAUSE_POLKIT_NO "polkit does not allow this (%s)"
#define FIX_POLKIT_NO "an administrator can."
#define CAUSE_POLKIT_UNCONVINCED \
	"polkit does not allow this (%s): it asked for a password, and was not given the right one"
#define FIX_POLKIT_UNCONVINCED "try again, with the password that it asks for."

/* The configuration; %s: its file */
#define CAUSE_CONFIG_IRREGULAR "%s: is not a regular file"
#define FIX_CONFIG_IRREGULAR "put one there"
#define CAUSE_CONFIG_LINK "%s: is a symbolic link"
#define FIX_CONFIG_LINK "put a regular file there that is root's"
#define CAUSE_CONFIG_OWNER "%s: belongs to uid %u"
#define FIX_CONFIG_OWNER "it must be root's: run 'sudo chown root' on it"
#define CAUSE_CONFIG_MODE "%s: may be written by others than root"
#define FIX_CONFIG_MODE "run 'sudo chmod go-w' on it"

/* What was installed; %s: the file */
#define CAUSE_FILE_MISSING "%s is missing"
#define FIX_FILE_MISSING "install claude-sandbox again (sudo ./quickstart)"
#define CAUSE_FILE_HIDDEN "%s cannot be looked at: %s"
#define FIX_FILE_HIDDEN "let its directories be entered by everybody (chmod a+x)"
#define CAUSE_FILE_OWNER "%s is not root's alone (owner %u, mode %04o)"
#define FIX_FILE_OWNER "sudo chown root:root %s && sudo chmod go-w %s"
#define CAUSE_ENTRY_OTHER "%s is another program than the entry to the jail"
#define FIX_ENTRY_OTHER "move it away, then install claude-sandbox again (sudo ./quickstart)"
#define CAUSE_POLICY_MISSING "the bus has no policy for the service: %s is missing"
#define FIX_POLICY_MISSING "install claude-sandbox again (sudo ./quickstart)"
#define CAUSE_ACTIVATION_BROKEN "the bus cannot start what %s names, %s: %s"
#define FIX_ACTIVATION_BROKEN "install claude-sandbox again (sudo ./quickstart)"
#define CAUSE_RUN_STALE "%zu of %s belong to no session that lives (%s)"
#define FIX_RUN_STALE "restart claude-sandboxd, which clears up when it starts"
#define CAUSE_CGROUP_NONE                                                                                 \
	"no control groups can be made here: memory-max and tasks-max do not hold, and an agent may use " \
	"all that its user may"
#define FIX_CGROUP_NONE "mount cgroup2 writable at /sys/fs/cgroup"
#define CAUSE_CGROUP_LESS                                                               \
	"control groups limit %s here: %s not hold, and an agent may use all that its " \
	"user may"
#define FIX_CGROUP_LESS                                                                                   \
	"for limits, boot the machine with cgroup2 alone (systemd.unified_cgroup_hierarchy=1), or start " \
	"its "                                                                                            \
	"container with the cgroup2 controllers memory and pids"

#define CAUSE_ENVIRONMENT_WIDENS "The environment asks for more than %s gives: %s"
#define FIX_ENVIRONMENT_WIDENS "unset the variable, or let an administrator write it into the file"

/* The bus, as clients find it */
#define CAUSE_BUS_NONE "no system bus answers at %s"
#define FIX_BUS_NONE "start it ('sudo ./quickstart' does)"
#define CAUSE_BUS_POLICY "the system bus lets nobody talk to the service %s (%s)"
#define FIX_BUS_POLICY "install its policy again (sudo ./quickstart): " CS_BUS_POLICY_PATH
#define CAUSE_SERVICE_UNSTARTED "the service %s cannot be started (%s)"
#define FIX_SERVICE_UNSTARTED "run 'sudo ./quickstart', or see the journal of claude-sandboxd"
#define CAUSE_SERVICE_GONE "the service went away before it answered"
#define FIX_SERVICE_GONE "try again, run 'sudo ./quickstart', or see the journal of claude-sandboxd"
#define CAUSE_NAME_OTHER "the name %s belongs to process %u (%s) of uid %u"
#define FIX_NAME_OTHER "end that process: the next call starts the service"
#define CAUSE_SERVICE_SILENT "the service %s, process %u, does not answer"
#define FIX_SERVICE_SILENT \
	"run 'sudo kill -9 %u': no session ends by that, and the next call starts the service"
#define CAUSE_SERVICE_OTHER "the running service does not speak as this command does (%s)"
#define FIX_SERVICE_OTHER "restart claude-sandboxd"

/*
 * Take a refusal apart at its last semicolon. Return: 0 with both to be freed, *ret_fix "" where there is
 * none; -ENOMEM.
 */
int cause_split(const char *sentence, char **ret_cause, char **ret_fix);
