/* SPDX-License-Identifier: MIT */

/*
 * The least that a jailed launch can cost: a user and a network namespace with a persistent tap, pasta on it,
 * and bwrap, told what a session tells them (plan-dump.c). Nothing is denied, tested or read back; no bus, no
 * terminal, no git. The measure for `claude`, of no use for anything else.
 *
 *     floor PLAN PROGRAM [ARGUMENT]...
 */

#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dbus/base.h"

#define WORDS_MAX 1024u
#define FDS_MAX 160u
#define ARGUMENTS_FD 9 /* as service/session/jail-exec.h */
#define SOURCES_FD 16
#define HIGH_FD 256
#define DEVICE "jail0"
#define DEADLINE_SECONDS 30

typedef struct Floor {
	char *bwrap, *pasta;
	char *pasta_words[WORDS_MAX];
	size_t n_pasta_words;
	int args_fd, fds[FDS_MAX];
	size_t n_fds;
	char *command[WORDS_MAX];
} Floor;

_noreturn_ static void die(const char *what)
{
	(void)fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static int memory_file(const char *text, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
		die("memfd");
	return fd;
}

static char *plan_read(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		die(path);
	(void)close(fd);
	*ret_size = (size_t)st.st_size;
	return text;
}

/* Names and pasta's words; what opens descriptors is done beside pasta's start. */
static void plan_parse(Floor *floor, char *text, size_t size)
{
	for (char *at = text; at < text + size; at += strlen(at) + 1)
		if (*at == 'B')
			floor->bwrap = at + 1;
		else if (*at == 'W')
			floor->pasta = at + 1;
		else if (*at == 'P' && floor->n_pasta_words + 2 < WORDS_MAX)
			floor->pasta_words[floor->n_pasta_words++] = at + 1;
	if (!floor->bwrap || !floor->pasta || floor->n_pasta_words < 2)
		die("plan");
}

static void plan_open(Floor *floor, const char *text, size_t size)
{
	floor->args_fd = memfd_create("arguments", MFD_CLOEXEC);
	if (floor->args_fd < 0)
		die("memfd");
	for (const char *at = text; at < text + size; at += strlen(at) + 1) {
		size_t length = strlen(at + 1);

		if (*at == 'A' && write(floor->args_fd, at + 1, length + 1) < 0)
			die("arguments");
		if ((*at == 'S' || *at == 'F') && floor->n_fds == FDS_MAX)
			die("sources");
		if (*at == 'F')
			floor->fds[floor->n_fds++] = memory_file(at + 1, length);
		if (*at == 'S') {
			int fd = open(at + 1, O_PATH | O_CLOEXEC | O_NOFOLLOW);

			if (fd < 0)
				die(at + 1);
			floor->fds[floor->n_fds++] = fd;
		}
	}
	if (lseek(floor->args_fd, 0, SEEK_SET) < 0)
		die("arguments");
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	(void)close(fd);
}

static void device_up(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_flags = IFF_UP };

	memcpy(request.ifr_name, name, strlen(name) + 1);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die(name);
	(void)close(fd);
}

/* Return: a socket that hears of the tap. */
static int namespaces_make(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	struct ifreq request = { .ifr_flags = (short)(IFF_TAP | IFF_NO_PI) };
	char map[64];
	int fd, watch_fd;
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		die("unshare");
	put("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "%u %u 1\n", (unsigned)uid, (unsigned)uid);
	put("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "%u %u 1\n", (unsigned)gid, (unsigned)gid);
	put("/proc/self/gid_map", map);

	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	memcpy(request.ifr_name, DEVICE, sizeof(DEVICE));
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETPERSIST, 1) < 0)
		die("tap");
	device_up("lo");
	device_up(DEVICE);
	(void)close(fd);
	watch_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (watch_fd < 0 || bind(watch_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("netlink");
	return watch_fd;
}

static void ask_for_device(int fd, unsigned index)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} request = { .header = { .nlmsg_len = sizeof(request),
				  .nlmsg_type = RTM_GETLINK,
				  .nlmsg_flags = NLM_F_REQUEST },
		      .link = { .ifi_index = (int)index } };

	if (send(fd, &request, sizeof(request), 0) < 0)
		die("RTM_GETLINK");
}

/* An event makes it ask: the kernel's own news of the carrier may come late (link_watch.c). */
static void wire_wait(int fd, unsigned index)
{
	char buffer[32768];

	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
		bool event = false;

		if (n < 0)
			die("netlink");
		for (struct nlmsghdr *h = (struct nlmsghdr *)buffer; NLMSG_OK(h, (size_t)n);
		     h = NLMSG_NEXT(h, n)) {
			const struct ifinfomsg *link = NLMSG_DATA(h);

			if (h->nlmsg_type != RTM_NEWLINK || (unsigned)link->ifi_index != index)
				continue;
			if (h->nlmsg_pid == 0)
				event = true;
			if (link->ifi_flags & 0x10000 /* IFF_LOWER_UP, netdevice(7) */)
				return;
		}
		if (event)
			ask_for_device(fd, index);
	}
}

static void place(int fd, int number)
{
	if (dup2(fd, number) < 0)
		die("dup2");
}

static void high(int *fd)
{
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (*fd < 0)
		die("F_DUPFD_CLOEXEC");
}

_noreturn_ static void jail_run(Floor *floor, const char *text, size_t size, int ready_fd, pid_t parent)
{
	char *const environment[] = { NULL };
	int watch_fd = namespaces_make();
	unsigned index = if_nametoindex(DEVICE);
	char byte = 0;

	/* After the change of credentials, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
	if (write(ready_fd, &byte, 1) != 1)
		die("pipe");
	plan_open(floor, text, size);
	wire_wait(watch_fd, index);
	high(&floor->args_fd);
	for (size_t i = 0; i < floor->n_fds; i++)
		high(&floor->fds[i]);
	place(floor->args_fd, ARGUMENTS_FD);
	for (size_t i = 0; i < floor->n_fds; i++)
		place(floor->fds[i], SOURCES_FD + (int)i);
	(void)setsid();
	(void)execve(floor->bwrap, floor->command, environment);
	die(floor->bwrap);
}

_noreturn_ static void pasta_run(Floor *floor, pid_t holder)
{
	char *const environment[] = { NULL };
	char pid[16];
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(pid, sizeof(pid), "%d", (int)holder);
	floor->pasta_words[floor->n_pasta_words - 1] = pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || null_fd < 0)
		die("pasta");
	place(null_fd, STDIN_FILENO);
	place(null_fd, STDOUT_FILENO);
	place(null_fd, STDERR_FILENO); /* it says much, whatever -q */
	(void)execve(floor->pasta, floor->pasta_words, environment);
	die(floor->pasta);
}

static void command_make(Floor *floor, char **arguments)
{
	static char *const start[] = { (char *)"bwrap", (char *)"--args", (char *)"9", (char *)"--" };
	size_t n = ELEMENTSOF(start);

	memcpy(floor->command, start, sizeof(start));
	while (*arguments && n + 1 < WORDS_MAX)
		floor->command[n++] = *arguments++;
}

int main(int argc, char **argv)
{
	static Floor floor;
	pid_t jail, pasta, parent = getpid();
	int ready[2], status;
	size_t size = 0;
	char *text, byte;

	if (argc < 3) {
		errno = EINVAL;
		die("floor PLAN PROGRAM");
	}
	(void)alarm(DEADLINE_SECONDS);
	text = plan_read(argv[1], &size);
	plan_parse(&floor, text, size);
	command_make(&floor, argv + 2);
	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe");
	jail = fork();
	if (jail == 0)
		jail_run(&floor, text, size, ready[1], parent);
	(void)close(ready[1]);
	if (jail < 0 || read(ready[0], &byte, 1) != 1)
		die("jail");
	pasta = fork();
	if (pasta == 0)
		pasta_run(&floor, jail);
	if (pasta < 0 || waitpid(jail, &status, 0) < 0)
		die("wait");
	(void)kill(pasta, SIGKILL);
	if (waitpid(pasta, NULL, 0) < 0)
		die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
