/* SPDX-License-Identifier: MIT */

/* What a machine may lack: each reason why there is no tap has its own sentence; IPv6 that cannot be switched
 * off. */

#include "tests/net/jail.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

typedef struct Machine {
	const char *name;
	mode_t directory, node; /* of /dev/net, and type and mode of tun; 0 for none */
	unsigned major, minor;
	int error;
	const char *named;
} Machine;

static const Machine machines[] = {
	{ "no node", 0755, 0, 0, 0, -ENOENT, "is absent" },
	{ "mode", 0755, S_IFCHR | 0600, 10, 200, -EACCES, "its mode 0600" },
	{ "mode of the directory", 0700, S_IFCHR | 0666, 10, 200, -EACCES, "/dev/net is denied by its mode" },
	{ "no driver", 0755, S_IFCHR | 0666, 60, 200, -ENODEV, "has no driver" },
	{ "no device", 0755, S_IFREG | 0666, 0, 0, -ENODEV, "is not the tun driver's device" },
	{ "another device", 0755, S_IFCHR | 0666, 1, 3, -ENODEV, "is not the tun driver's device" },
};

/* In a child: 0 when the refusal is the expected one. */
static int try_machine(const Machine *machine)
{
	_cleanup_free_ char *problem = NULL;
	Jail jail;
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755") < 0)
		return 1;
	umask(0);
	if (machine->node &&
	    mknod("/dev/net/tun", machine->node, makedev(machine->major, machine->minor)) < 0)
		return 1;
	if (chmod("/dev/net", machine->directory) < 0 || setresgid(1000, 1000, 1000) < 0 ||
	    setresuid(1000, 1000, 1000) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return 1;

	r = jail_start(&jail, &problem);
	if (r >= 0)
		jail_stop(&jail);
	if (r == machine->error && problem && strstr(problem, machine->named))
		return 0;
	print_error("%s: %d, %s\n", machine->name, r, problem ?: "no sentence");
	return 1;
}

static void test_machines(void **state)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(machines); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(try_machine(&machines[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		wrong += status != 0;
	}
	assert_int_equal(wrong, 0);
}

/* IPv6 addresses of jail0: it is told to make none. */
static unsigned count_generated(const Denial *denial)
{
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct ifaddrmsg body = { .ifa_family = AF_INET6 };
	const struct nlmsghdr *header;
	unsigned found = 0;
	size_t offset = 0;

	if (netlink_dump(denial->netlink, RTM_GETADDR, &body, sizeof(body), &list) < 0)
		return UINT32_MAX;
	while ((header = message_list_next(&list, &offset))) {
		const struct ifaddrmsg *address = NLMSG_DATA(header);

		found += address->ifa_index == denial->devices.jail;
	}
	return found;
}

/* In a child, as in a container: /proc/sys cannot be written. Return: 0 when the whole denial holds all the
 * same. */
static int try_read_only_sysctl(void)
{
	_cleanup_free_ char *problem = NULL;
	Denial denial = { 0 };
	Jail jail;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("/proc/sys", "/proc/sys", NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    mount(NULL, "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return 1;
	jail_routes_make(0);
	if (jail_start(&jail, &problem) < 0 ||
	    denial_init(&denial, &jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&denial, &problem) < 0 || jail_run(&jail, jail_self_test, NULL, &problem) < 0 ||
	    denial_read_back(&denial, &problem) < 0) {
		print_error("%s\n", problem);
		return 1;
	}
	if (jail.sockets.ipv6_off)
		return 2;
	if (count_generated(&denial) != 0)
		return 4;
	/* Held against a jail without IPv6, the same namespace differs. */
	denial.devices.ipv6_off = true;
	if (denial_read_back(&denial, &problem) != -EREMCHG || !strstr(problem, "IPv6"))
		return 3;
	denial_done(&denial);
	jail_stop(&jail);
	return 0;
}

static void test_ipv6_cannot_be_switched_off(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_read_only_sysctl());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_ipv6_cannot_be_switched_off),
	};

	/* The machines are made by root, and tried by the ordinary user. */
	return streq(user, "root") ? cmocka_run_group_tests_name(user, tests, NULL, NULL) : 0;
}

int main(void)
{
	return as_each_user(run);
}
