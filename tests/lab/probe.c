/* SPDX-License-Identifier: MIT */
/*
 * What an agent could try, and what an agent is given: a static program that tests run inside the jail,
 * outside it, and in the place of an agent.
 *
 *   probe reach MSEC TOKEN ADDRESS...   every way round the routes, TCP and UDP, to port 7007 of each
 * address; one line each: PROTOCOL TRICK DEVICE ADDRESS RESULT MSEC probe args ...                      its
 * arguments, one line of hexadecimal digits each probe tty FILE                      isatty(3) of 0, 1, 2 and
 * the controlling terminal, written to FILE probe die SIGNAL                    dies by it probe both writes
 * "out" to 1 and "err" to 2 probe copy                          0 to 1, byte for byte probe environment one
 * NAME=VALUE a line, multi-line values escaped probe lookup NAME SERVER            asks SERVER for NAME's
 * address probe connect PATH                  connects to a socket in the file system
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62 /* asm-generic/socket.h */
#endif

#define PORT 7007

extern char **environ;

typedef enum Trick {
	TRICK_PLAIN,
	TRICK_SOURCE,     /* bound to the jail's own address first */
	TRICK_DONTROUTE,  /* SO_DONTROUTE */
	TRICK_LSRR,       /* loose source route through the address (RFC 791) */
	TRICK_MAPPED,     /* an IPv6 socket and ::ffff:a.b.c.d */
	TRICK_DEVICE,     /* SO_BINDTODEVICE; from here on once for each interface */
	TRICK_IFINDEX,    /* SO_BINDTOIFINDEX */
	TRICK_UNICAST_IF, /* IP_UNICAST_IF */
	TRICK_MULTICAST,  /* IP_MULTICAST_IF, also joins the group */
	TRICK_MAPPED_DEVICE,
	TRICK_PKTINFO, /* IP_PKTINFO with an interface; UDP only */
	TRICK_MAX,
} Trick;

static const char *const trick_names[] = { "plain",        "source",        "dontroute",     "lsrr",
					   "mapped",       "bindtodevice",  "bindtoifindex", "unicast-if",
					   "multicast-if", "mapped-device", "pktinfo" };

typedef struct Try {
	int fd;
	bool udp, mapped;
	Trick trick;
	unsigned device;
	const char *device_name, *address;
	char text[96];
	char result[64];
	bool sent, done;
	uint64_t msec;
} Try;

static uint64_t now_msec(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void try_end(Try *t, uint64_t start, const char *result, int error)
{
	if (error)
		snprintf(t->result, sizeof(t->result), "%s:%s", result, strerrorname_np(error));
	else
		snprintf(t->result, sizeof(t->result), "%s", result);
	t->done = true;
	t->msec = now_msec() - start;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static socklen_t try_address(const Try *t, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (strchr(t->address, ':') || t->mapped) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
		char text[64];
		snprintf(text, sizeof(text), "%s%s", t->mapped ? "::ffff:" : "", t->address);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(PORT);
		inet_pton(AF_INET6, text, &in6->sin6_addr);
		return sizeof(*in6);
	}
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	in->sin_family = AF_INET;
	in->sin_port = htons(PORT);
	inet_pton(AF_INET, t->address, &in->sin_addr);
	return sizeof(*in);
}

/* Return: 0, or the errno with which the trick itself failed. */
static int try_trick(Try *t)
{
	int one = 1;
	struct in_addr in = { 0 };
	inet_pton(AF_INET, t->address, &in);

	switch (t->trick) {
	case TRICK_SOURCE: {
		struct sockaddr_in own = { .sin_family = AF_INET };
		inet_pton(AF_INET, "192.0.0.2", &own.sin_addr);
		return bind(t->fd, (struct sockaddr *)&own, sizeof(own)) < 0 ? errno : 0;
	}
	case TRICK_DONTROUTE:
		return setsockopt(t->fd, SOL_SOCKET, SO_DONTROUTE, &one, sizeof(one)) < 0 ? errno : 0;
	case TRICK_LSRR: {
		/* NOP, type 131, length 7, pointer 4, one address: the packet's first hop is the last given
		 * to connect */
		uint8_t option[8] = { 1, 131, 7, 4 };
		memcpy(option + 4, &in, 4);
		return setsockopt(t->fd, IPPROTO_IP, IP_OPTIONS, option, sizeof(option)) < 0 ? errno : 0;
	}
	case TRICK_DEVICE:
	case TRICK_MAPPED_DEVICE:
		return setsockopt(t->fd, SOL_SOCKET, SO_BINDTODEVICE, t->device_name,
				  (socklen_t)strlen(t->device_name) + 1) < 0
			       ? errno
			       : 0;
	case TRICK_IFINDEX: {
		int index = (int)t->device;
		return setsockopt(t->fd, SOL_SOCKET, SO_BINDTOIFINDEX, &index, sizeof(index)) < 0 ? errno : 0;
	}
	case TRICK_UNICAST_IF: {
		uint32_t index = htonl(t->device);
		return setsockopt(t->fd, IPPROTO_IP, IP_UNICAST_IF, &index, sizeof(index)) < 0 ? errno : 0;
	}
	case TRICK_MULTICAST: {
		struct ip_mreqn request = { .imr_multiaddr = in, .imr_ifindex = (int)t->device };
		if (setsockopt(t->fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request)) < 0)
			return errno;
		(void)setsockopt(t->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request));
		return 0;
	}
	default:
		return 0;
	}
}

static int try_send(Try *t)
{
	struct sockaddr_storage to;
	socklen_t n = try_address(t, &to);
	struct iovec part = { .iov_base = t->text, .iov_len = strlen(t->text) };
	struct msghdr message = { .msg_name = &to, .msg_namelen = n, .msg_iov = &part, .msg_iovlen = 1 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = { 0 };
	if (t->trick == TRICK_PKTINFO) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
		((struct in_pktinfo *)CMSG_DATA(c))->ipi_ifindex = (int)t->device;
	}
	return sendmsg(t->fd, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

static void try_start(Try *t, uint64_t start)
{
	bool six = strchr(t->address, ':') || t->mapped;
	int one = 1;

	t->fd = socket(six ? AF_INET6 : AF_INET,
		       (t->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->fd < 0) {
		try_end(t, start, "refused", errno);
		return;
	}
	(void)setsockopt(t->fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
	/* As resolvers do: a datagram that is not connected learns of its refusal by this alone (ip(7)). */
	(void)setsockopt(t->fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
	int error = try_trick(t);
	if (error) {
		try_end(t, start, "impossible", error);
		return;
	}
	if (t->udp) {
		error = try_send(t);
		if (error)
			try_end(t, start, "refused", error);
		t->sent = !error;
		return;
	}
	struct sockaddr_storage to;
	socklen_t n = try_address(t, &to);
	if (connect(t->fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS)
		try_end(t, start, "refused", errno);
}

static void try_event(Try *t, uint64_t start)
{
	char buffer[128];
	int error = 0;
	socklen_t n = sizeof(error);

	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error) {
		try_end(t, start, "refused", error);
		return;
	}
	if (!t->sent) {
		error = send(t->fd, t->text, strlen(t->text), MSG_NOSIGNAL) < 0 ? errno : 0;
		/* An ICMP error wakes poll(2) a moment before it is the socket's own: not connected, and more comes. */
		if (error == EAGAIN)
			return;
		if (error)
			try_end(t, start, "refused", error);
		t->sent = !error;
		return;
	}
	ssize_t got = recv(t->fd, buffer, sizeof(buffer), 0);
	if (got > 0)
		try_end(t, start, "reached", 0);
	else if (got == 0)
		try_end(t, start, "refused", ECONNRESET);
	else if (errno != EAGAIN)
		try_end(t, start, "refused", errno);
}

/* Tricks of IPv4 alone, or of datagrams alone. */
static bool trick_applies(Trick trick, bool udp, bool six)
{
	if ((trick == TRICK_PKTINFO || trick == TRICK_MULTICAST) && !udp)
		return false;
	return !six || trick == TRICK_PLAIN || trick == TRICK_DONTROUTE || trick == TRICK_DEVICE ||
	       trick == TRICK_IFINDEX;
}

static int reach(uint64_t limit, const char *token, int n_addresses, char **addresses)
{
	struct if_nameindex *devices = if_nameindex();
	size_t n_devices = 0, n = 0, n_all;
	struct rlimit files = { 8192, 8192 };

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	while (devices && devices[n_devices].if_index)
		n_devices++;
	n_all = (size_t)n_addresses * 2 * TRICK_MAX * (n_devices + 1);
	Try *tries = calloc(n_all, sizeof(*tries));
	struct pollfd *polls = calloc(n_all, sizeof(*polls));
	if (!tries || !polls)
		return 1;

	uint64_t start = now_msec();
	for (int a = 0; a < n_addresses; a++)
		for (int udp = 0; udp < 2; udp++)
			for (Trick trick = 0; trick < TRICK_MAX; trick++) {
				bool by_device = trick >= TRICK_DEVICE;
				if (!trick_applies(trick, udp, strchr(addresses[a], ':') != NULL))
					continue;
				for (size_t d = 0; d < (by_device ? n_devices : 1); d++) {
					const char *device = by_device ? devices[d].if_name : "-";
					Try *t = &tries[n++];
					*t = (Try){ .fd = -1,
						    .udp = udp,
						    .trick = trick,
						    .mapped = trick == TRICK_MAPPED ||
							      trick == TRICK_MAPPED_DEVICE,
						    .device = by_device ? devices[d].if_index : 0,
						    .device_name = device,
						    .address = addresses[a] };
					snprintf(t->text, sizeof(t->text), "%s %s %s %s", token,
						 udp ? "udp" : "tcp", trick_names[trick], device);
					try_start(t, start);
				}
			}
	for (;;) {
		size_t open = 0;
		for (size_t i = 0; i < n; i++) {
			polls[i] = (struct pollfd){ .fd = tries[i].done ? -1 : tries[i].fd,
						    .events = tries[i].sent ? POLLIN : POLLOUT };
			open += !tries[i].done;
		}
		uint64_t spent = now_msec() - start;
		if (!open || spent >= limit)
			break;
		if (poll(polls, n, (int)(limit - spent)) < 0 && errno != EINTR)
			return 1;
		for (size_t i = 0; i < n; i++)
			if (!tries[i].done && polls[i].revents)
				try_event(&tries[i], start);
	}
	for (size_t i = 0; i < n; i++) {
		Try *t = &tries[i];
		if (!t->done)
			try_end(t, start, "silent", 0);
		printf("%s %s %s %s %s %llu\n", t->udp ? "udp" : "tcp", trick_names[t->trick], t->device_name,
		       t->address, t->result, (unsigned long long)t->msec);
	}
	return 0;
}

static int show_arguments(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		for (const char *c = argv[i]; *c; c++)
			printf("%02x", (unsigned char)*c);
		putchar('\n');
	}
	return 0;
}

/* What the key management calls answer: errno of add_key, request_key and keyctl, 0 where they work. */
static int show_keys(void)
{
	long answers[] = {
		syscall(SYS_add_key, "user", "probe", "x", 1, -3 /* KEY_SPEC_SESSION_KEYRING */) < 0 ? errno
												     : 0,
		syscall(SYS_request_key, "user", "probe", NULL, 0) < 0 ? errno : 0,
		syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -4 /* KEY_SPEC_USER_KEYRING */, 0) < 0
			? errno
			: 0,
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		printf("%ld\n", answers[i]);
	return 0;
}

static int show_environment(void)
{
	for (char **e = environ; *e; e++) {
		for (const char *c = *e; *c; c++)
			if (*c == '\n' || *c == '\\')
				printf("\\%02x", (unsigned char)*c);
			else
				putchar(*c);
		putchar('\n');
	}
	return 0;
}

static int show_terminals(const char *path)
{
	const char *what[3];

	for (int fd = 0; fd < 3; fd++)
		what[fd] = fcntl(fd, F_GETFD) < 0 ? "closed" : isatty(fd) ? "tty" : "no";
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	FILE *f = fopen(path, "we");
	if (!f)
		return 1;
	for (int fd = 0; fd < 3; fd++)
		fprintf(f, "%d=%s\n", fd, what[fd]);
	fprintf(f, "tty=%s\n", tty >= 0 ? "yes" : "no");
	return fclose(f) ? 1 : 0;
}

static int copy(void)
{
	static char buffer[65536];
	for (;;) {
		ssize_t n = read(0, buffer, sizeof(buffer));
		if (n <= 0)
			return n < 0;
		for (ssize_t at = 0; at < n;) {
			ssize_t m = write(1, buffer + at, (size_t)(n - at));
			if (m < 0)
				return 1;
			at += m;
		}
	}
}

static int lookup(const char *name, const char *server)
{
	uint8_t query[300] = { 0x12, 0x34, 1, 0, 0, 1 }, answer[600];
	size_t n = 12;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(53) };
	struct timeval limit = { .tv_sec = 2 };

	for (const char *label = name; *label && n < 250;) {
		size_t length = strcspn(label, ".");
		query[n++] = (uint8_t)length;
		memcpy(query + n, label, length);
		n += length;
		label += length + (label[length] == '.');
	}
	n++;
	query[n + 1] = 1;
	query[n + 3] = 1;
	n += 4;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, server, &to.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, query, n, 0) < 0) {
		printf("refused:%s\n", strerrorname_np(errno));
		return 1;
	}
	ssize_t got = recv(fd, answer, sizeof(answer), 0);
	if (got < (ssize_t)n + 16) {
		printf("no answer\n");
		return 1;
	}
	printf("%u.%u.%u.%u\n", answer[got - 4], answer[got - 3], answer[got - 2], answer[got - 1]);
	return 0;
}

static int connect_path(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		printf("refused:%s\n", strerrorname_np(errno));
		return 1;
	}
	printf("connected\n");
	return 0;
}

static int note_signals(const char *path)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	int fd = signalfd(-1, &all, SFD_CLOEXEC), count = 0;
	bool terminal = isatty(0);
	FILE *notes = path ? fopen(path, "we") : NULL;
	struct pollfd polls[2] = { { .fd = 0, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	if (fd < 0 || (path && !notes) || write(1, "ready\n", 6) != 6)
		return 200;
	for (;;) {
		struct signalfd_siginfo info;
		if (poll(polls, path ? 2 : 1, -1) < 0)
			return 201;
		if (path && polls[1].revents) {
			if (read(fd, &info, sizeof(info)) != sizeof(info))
				return 202;
			if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGCONT ||
			    info.ssi_signo == SIGWINCH)
				continue;
			count++;
			fprintf(notes, "%u\n", info.ssi_signo);
			(void)fflush(notes);
			dprintf(1, "got %u\n", info.ssi_signo);
			if (terminal && info.ssi_signo == SIGHUP)
				return count;
			continue;
		}
		char c;
		if (polls[0].revents && read(0, &c, 1) <= 0) {
			if (path && !terminal)
				return count;
			/* the end of a terminal and the signal that says so come in any order */
			polls[0].fd = -1;
		}
	}
}

static int show_sizes(void)
{
	sigset_t changes;
	sigemptyset(&changes);
	sigaddset(&changes, SIGWINCH);
	sigprocmask(SIG_BLOCK, &changes, NULL);
	struct pollfd polls[2] = { { .fd = 0, .events = POLLIN },
				   { .fd = signalfd(-1, &changes, SFD_CLOEXEC), .events = POLLIN } };
	for (;;) {
		struct signalfd_siginfo info;
		struct winsize size = { 0 };
		(void)ioctl(0, TIOCGWINSZ, &size);
		dprintf(1, "size %u %u.\n", size.ws_row, size.ws_col);
		if (poll(polls, 2, -1) < 0)
			return 1;
		if (polls[0].revents)
			return 0;
		if (read(polls[1].fd, &info, sizeof(info)) != sizeof(info))
			return 1;
	}
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "reach") == 0 && argc > 4)
		return reach(strtoull(argv[2], NULL, 10), argv[3], argc - 4, argv + 4);
	if (strcmp(verb, "args") == 0)
		return show_arguments(argc - 2, argv + 2);
	if (strcmp(verb, "tty") == 0 && argc == 3)
		return show_terminals(argv[2]);
	if (strcmp(verb, "die") == 0 && argc == 3) {
		signal(atoi(argv[2]), SIG_DFL);
		return raise(atoi(argv[2])) ? 1 : 0;
	}
	if (strcmp(verb, "exit") == 0 && argc == 3)
		return atoi(argv[2]);
	if (strcmp(verb, "both") == 0)
		return write(1, "out\n", 4) == 4 && write(2, "err\n", 4) == 4 ? 0 : 1;
	if (strcmp(verb, "copy") == 0)
		return copy();
	if (strcmp(verb, "keys") == 0)
		return show_keys();
	if (strcmp(verb, "environment") == 0)
		return show_environment();
	if (strcmp(verb, "lookup") == 0 && argc == 4)
		return lookup(argv[2], argv[3]);
	if (strcmp(verb, "connect") == 0 && argc == 3)
		return connect_path(argv[2]);
	if (strcmp(verb, "signals") == 0 && argc == 3)
		return note_signals(argv[2]);
	if (strcmp(verb, "stubborn") == 0)
		return note_signals(NULL);
	if (strcmp(verb, "sizes") == 0)
		return show_sizes();
	fprintf(stderr, "probe: what?\n");
	return 2;
}
