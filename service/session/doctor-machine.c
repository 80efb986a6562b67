/* SPDX-License-Identifier: MIT */

/* The kernel and what it runs in, by the interfaces that it has for that: never by the name of a
 * distribution. */

#include "service/session/doctor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "service/net/tap.h"
#include "service/session/user-namespace.h"

#define TEXT_MAX 4096u
/* mount_setattr(2) is the newest call that a session cannot do without (anchors.h). */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 12
/* Inode numbers of the first namespaces (include/linux/proc_ns.h of the kernel). */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* The first line of a small file. Return: to be freed, or NULL. */
static char *read_line(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *text = fd < 0 ? NULL : malloc(TEXT_MAX);
	ssize_t n = text ? read(fd, text, TEXT_MAX - 1) : -1;

	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*strchrnul(text, '\n') = '\0';
	return text;
}

static bool has(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool is_first(const char *path, ino_t inode)
{
	struct stat st;

	return stat(path, &st) < 0 || st.st_ino == inode;
}

static void look_at_kernel(Doctor *doctor)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return;
	if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
		doctor_say(doctor, DOCTOR_KERNEL_VERSION, ROW_PASS, NULL, "Linux %s", name.release);
	else
		doctor_say(doctor, DOCTOR_KERNEL_VERSION, ROW_FAIL, "a newer kernel is needed",
			   "Linux %s is older than %d.%d", name.release, KERNEL_MAJOR, KERNEL_MINOR);
}

static void look_at_wsl(Doctor *doctor)
{
	_cleanup_free_ char *release = read_line("/proc/sys/kernel/osrelease");

	/* "4.4.0-19041-Microsoft" is the first version, which is no Linux;
	 * "5.15.90.1-microsoft-standard-WSL2" and "4.19.84-microsoft-standard" are the second. */
	if (!release || !strcasestr(release, "microsoft"))
		doctor_say(doctor, DOCTOR_WSL, ROW_PASS, NULL, "this is no WSL");
	else if (strstr(release, "microsoft"))
		doctor_say(doctor, DOCTOR_WSL, ROW_NOTE, NULL,
			   "WSL2: drives of Windows below /mnt are no part of what is hidden");
	else
		doctor_say(doctor, DOCTOR_WSL, ROW_FAIL, "convert it (wsl --set-version NAME 2)",
			   "WSL 1 has no Linux kernel, and no namespaces");
}

/* As container-interface of systemd and the usual engines mark what they start. Return: static or *buffer. */
static const char *container_kind(char **buffer)
{
	*buffer = read_line("/run/systemd/container");
	if (*buffer && **buffer)
		return *buffer;
	if (has("/.dockerenv"))
		return "docker";
	if (has("/run/.containerenv"))
		return "podman";
	if (has("/dev/lxd/sock") || has("/dev/incus/sock"))
		return "lxc";
	if (has("/proc/vz") && !has("/proc/bc"))
		return "openvz";
	if (!is_first("/proc/self/ns/pid", FIRST_PID_NAMESPACE) ||
	    !is_first("/proc/self/ns/user", FIRST_USER_NAMESPACE))
		return "one without a name (this is not the machine's first pid or user namespace)";
	return NULL;
}

static void look_at_container(Doctor *doctor)
{
	_cleanup_free_ char *buffer = NULL;
	const char *kind = container_kind(&buffer);

	if (kind)
		doctor_say(doctor, DOCTOR_CONTAINER, ROW_NOTE, NULL, "a container: %s", kind);
	else
		doctor_say(doctor, DOCTOR_CONTAINER, ROW_PASS, NULL, "no container");
}

static void look_at_seccomp(Doctor *doctor)
{
	_cleanup_free_ char *actions = read_line("/proc/sys/kernel/seccomp/actions_avail");

	if (!actions || !strstr(actions, "errno"))
		doctor_say(doctor, DOCTOR_KERNEL_SECCOMP, ROW_FAIL,
			   "a kernel with CONFIG_SECCOMP_FILTER is needed",
			   "this kernel filters no system calls");
	else if (seccomp_is_on())
		doctor_say(doctor, DOCTOR_KERNEL_SECCOMP, ROW_NOTE, NULL,
			   "a filter (a container's) is on already, and the jail adds its own");
	else
		doctor_say(doctor, DOCTOR_KERNEL_SECCOMP, ROW_PASS, NULL, "filters can be made");
}

/* Where it keeps the session from making namespaces, that is known before anything is tried. */
static bool apparmor_restricts(Doctor *doctor, const char *profile)
{
	_cleanup_free_ char *sentence = NULL;

	if (!user_namespaces_are_restricted() || (profile && !streq(profile, "unconfined")))
		return false;
	(void)refuse(&sentence, 0, BECAUSE(USERNS_APPARMOR), "session has no profile",
		     "kernel.apparmor_restrict_unprivileged_userns is 1");
	if (sentence)
		doctor_say_sentence(doctor, DOCTOR_KERNEL_APPARMOR, ROW_WARN, sentence);
	return true;
}

void doctor_look_at_apparmor(Doctor *doctor, const char *profile, const char *problem)
{
	_cleanup_free_ char *enabled = NULL, *own = NULL;

	if (!doctor || doctor_has_said(doctor, DOCTOR_KERNEL_APPARMOR))
		return;
	enabled = read_line("/sys/module/apparmor/parameters/enabled");
	if (!enabled || enabled[0] != 'Y') {
		doctor_say(doctor, DOCTOR_KERNEL_APPARMOR, ROW_PASS, NULL, "not in this kernel, or off");
		return;
	}
	own = read_line("/proc/self/attr/apparmor/current") ?: read_line("/proc/self/attr/current");
	if (apparmor_restricts(doctor, own))
		return;
	if (problem)
		doctor_say(doctor, DOCTOR_KERNEL_APPARMOR, ROW_WARN, FIX_APPARMOR_BLOCKS,
			   CAUSE_APPARMOR_BLOCKS, "pasta");
	else if (profile)
		doctor_say(doctor, DOCTOR_KERNEL_APPARMOR, ROW_PASS, NULL,
			   "on; profile of the session: %s, of pasta: %s", own ?: "unknown", profile);
	else
		doctor_say(doctor, DOCTOR_KERNEL_APPARMOR, ROW_PASS, NULL,
			   "on; profile of the session: %s; pasta was not tried", own ?: "unknown");
}

void doctor_look_at_machine(Doctor *doctor)
{
	look_at_kernel(doctor);
	look_at_container(doctor);
	look_at_wsl(doctor);
	look_at_seccomp(doctor);
}

void doctor_look_at_device(Doctor *doctor)
{
	_cleanup_free_ char *problem = NULL;

	if (tun_look(&problem) == 0)
		doctor_say(doctor, DOCTOR_TUN, ROW_PASS, NULL, "it can be opened");
	else
		doctor_say_sentence(doctor, DOCTOR_TUN, ROW_FAIL, problem ?: "out of memory");
}
