/* SPDX-License-Identifier: MIT */
#include "tests/unit/probe-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"

#define DEADLINE_USEC (10 * USEC_PER_SEC)
#define GROUP_PORT 1900
#define GROUP6_PORT 5353
#define NEAR "near0"
#define FAR "far0"

_noreturn_ static void give_up(const char *what)
{
	(void)dprintf(2, "%s: %s\n", what, strerror(errno));
	_exit(99);
}

static void must(bool done, const char *what)
{
	if (!done)
		give_up(what);
}

static void run(const char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, argv[1]);
}

#define IP(...) run((const char *const[]){ "/usr/sbin/ip", __VA_ARGS__, NULL })

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	(void)close(fd);
}

/* Return: in a process that ends with its parent. */
static bool in_background(void)
{
	pid_t parent = getpid(), pid = fork();

	must(pid >= 0, "fork");
	if (pid > 0)
		return false;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	return true;
}

_noreturn_ static void serve(int fd, int type)
{
	for (;;) {
		struct sockaddr_storage from;
		socklen_t size = sizeof(from);
		char data[200];

		if (type == SOCK_DGRAM) {
			if (recvfrom(fd, data, sizeof(data), 0, (struct sockaddr *)&from, &size) >= 0)
				(void)!sendto(fd, BAIT_TOKEN, strlen(BAIT_TOKEN), MSG_NOSIGNAL,
					      (struct sockaddr *)&from, size);
		} else {
			int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

			(void)!send(peer, BAIT_TOKEN, strlen(BAIT_TOKEN), MSG_NOSIGNAL);
			/* Held, as a service holds it. */
		}
	}
}

void bait_listen(int family, int type, const char *path, uint16_t port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const void *address = family == AF_INET    ? (void *)&in
			      : family == AF_INET6 ? (void *)&in6
						   : (void *)&un;
	socklen_t size = family == AF_INET ? sizeof(in) : family == AF_INET6 ? sizeof(in6) : sizeof(un);
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (family == AF_UNIX) {
		memcpy(un.sun_path + (*path == '@'), path + (*path == '@'), strlen(path) - (*path == '@'));
		size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	}
	must(fd >= 0 && bind(fd, address, size) == 0, "bind");
	must(type == SOCK_DGRAM || listen(fd, 64) == 0, "listen");
	if (in_background())
		serve(fd, type);
	(void)close(fd);
}

static void answer_groups(void)
{
	static const char *const groups[] = { "224.0.0.1", "224.0.0.251" };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(GROUP_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(GROUP6_PORT) };
	struct ipv6_mreq request6 = { .ipv6mr_interface = if_nametoindex(FAR) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	    fd6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0, "bind");
	for (size_t i = 0; i < ELEMENTSOF(groups); i++) {
		struct ip_mreqn request = { .imr_ifindex = (int)if_nametoindex("lo") };

		(void)inet_pton(AF_INET, groups[i], &request.imr_multiaddr);
		must(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) == 0,
		     groups[i]);
	}
	must(bind(fd6, (struct sockaddr *)&in6, sizeof(in6)) == 0, "bind6");
	(void)inet_pton(AF_INET6, "ff02::fb", &request6.ipv6mr_multiaddr);
	must(setsockopt(fd6, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request6, sizeof(request6)) == 0,
	     "ff02::fb");
	if (in_background())
		serve(fd, SOCK_DGRAM);
	if (in_background())
		serve(fd6, SOCK_DGRAM);
}

/* lo takes no groups of IPv6. */
static void make_neighbour(void)
{
	IP("link", "add", NEAR, "type", "veth", "peer", "name", FAR);
	IP("link", "set", NEAR, "addrgenmode", "none", "up");
	IP("link", "set", FAR, "addrgenmode", "none", "up");
	IP("-6", "address", "add", "fe80::2/64", "dev", NEAR, "nodad");
	IP("-6", "address", "add", "fe80::3/64", "dev", FAR, "nodad");
}

static void own_all_addresses(void)
{
	make_neighbour();
	IP("route", "add", "local", "0.0.0.0/0", "dev", "lo");
	IP("route", "add", "224.0.0.0/4", "dev", "lo");
	IP("-6", "route", "add", "local", "::/0", "dev", "lo");
	IP("-6", "address", "add", "fe80::1/64", "dev", "lo", "nodad");
	IP("-6", "address", "add", "2001:db8:77::1/64", "dev", "lo", "nodad");
	IP("-6", "route", "add", "ff00::/8", "dev", "lo", "table", "local");
	put("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
	put("/proc/sys/net/ipv4/conf/all/accept_source_route", "1");
	put("/proc/sys/net/ipv4/conf/lo/accept_source_route", "1");
	put("/proc/sys/net/ipv4/conf/lo/accept_local", "1");
	answer_groups();
}

/* ARP of RFC 826, for every address. */
_noreturn_ static void answer_arp(int fd)
{
	static const uint8_t own[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
	uint8_t frame[2048], asked[4];

	for (;;) {
		ssize_t n = read(fd, frame, sizeof(frame));

		if (n < 42 || frame[12] != 8 || frame[13] != 6 || frame[21] != 1)
			continue;
		memcpy(asked, frame + 38, 4);
		memcpy(frame, frame + 6, ETH_ALEN);
		memcpy(frame + 6, own, ETH_ALEN);
		frame[21] = 2;
		memcpy(frame + 32, frame + 22, 10);
		memcpy(frame + 22, own, ETH_ALEN);
		memcpy(frame + 28, asked, 4);
		(void)!write(fd, frame, 42);
	}
}

static void make_wire(bool filter)
{
	struct ifreq request = { .ifr_name = ROUTES_JAIL_DEVICE, .ifr_flags = IFF_TAP | IFF_NO_PI };
	const struct tun_filter header = { .count = 1 };
	uint8_t one[sizeof(header) + ETH_ALEN] = { [sizeof(header)] = 2, [sizeof(header) + 5] = 1 };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	must(fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0, "/dev/net/tun");
	memcpy(one, &header, sizeof(header));
	if (filter)
		must(ioctl(fd, TUNSETTXFILTER, one) >= 0, "TUNSETTXFILTER");
	IP("address", "add", "192.0.0.2/32", "dev", "lo");
	IP("link", "set", ROUTES_JAIL_DEVICE, "up");
	IP("route", "add", "prohibit", "10.0.0.0/8");
	if (in_background())
		answer_arp(fd);
	(void)close(fd);
}

static void take_terminal(void)
{
	int leader, terminal = FD_NONE;

	must(setsid() >= 0 && openpty(&leader, &terminal, NULL, NULL, NULL) == 0, "openpty");
	must(ioctl(terminal, TIOCSCTTY, 0) == 0 && dup2(terminal, 2) == 2, "TIOCSCTTY");
}

static void become_user(void)
{
	/* What the probe is told of its place is ours to read still. */
	must(setgroups(0, NULL) == 0 && setresgid(4001, 4001, 4001) == 0 && setresuid(4001, 4001, 4001) == 0,
	     "a user");
	(void)prctl(PR_SET_DUMPABLE, 1);
}

static void settle(unsigned settings)
{
	must(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) == 0,
	     "unshare");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	must(mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") == 0, "/tmp");
	IP("link", "set", "lo", "up");
	if (settings & SETTING_ADDRESSES)
		own_all_addresses();
	if (settings & (SETTING_WIRE | SETTING_FILTER))
		make_wire(settings & SETTING_FILTER);
	if (settings & SETTING_TERMINAL)
		take_terminal();
}

static void attempt(const Probe *probe, unsigned settings, ProbePreparation prepare, ProbeAnswer *answer)
{
	Expectations expectations = { .jailed = true };
	_cleanup_free_ char *text = NULL;
	ProbeChild child;

	if (settings & SETTING_PIDS)
		must(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
	if (prepare)
		prepare(&expectations);
	if (settings & SETTING_USER)
		become_user();
	probe_child_start(&child, probe, &expectations);
	answer->outcome = probe_child_finish(&child, clock_usec(CLOCK_MONOTONIC) + DEADLINE_USEC, &text);
	(void)snprintf(answer->text, sizeof(answer->text), "%s", text ? text : "");
	_exit(0);
}

/* Process 1 only waits: what it started has to have a parent that is none of its own. */
_noreturn_ static void attempt_below(const Probe *probe, unsigned settings, ProbePreparation prepare,
				     ProbeAnswer *answer)
{
	pid_t first = fork(), second;
	int status;

	must(first >= 0, "fork");
	if (first == 0) {
		second = fork();
		if (second == 0)
			attempt(probe, settings, prepare, answer);
		(void)waitpid(second, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
	}
	(void)waitpid(first, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

ProbeAnswer probe_answer(const char *id, unsigned settings, ProbePreparation prepare)
{
	const Probe *probe = probe_find(id);
	ProbeAnswer *answer, ret;
	int status;
	pid_t pid;

	assert_non_null(probe);
	answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(answer, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		settle(settings);
		if (settings & SETTING_PIDS) {
			must(unshare(CLONE_NEWPID) == 0, "pids");
			attempt_below(probe, settings, prepare, answer);
		}
		attempt(probe, settings, prepare, answer);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	ret = *answer;
	(void)munmap(answer, sizeof(*answer));
	return ret;
}
