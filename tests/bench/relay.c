/* SPDX-License-Identifier: MIT */
/*
 * Both ends of connections that something relays.
 *
 *   bench-relay serve PORT                      on 127.0.0.1, says "ready"; ends with its input
 *   bench-relay pull PORT CONNECTIONS BYTES     so many bytes over each, at once; prints the nanoseconds
 *   bench-relay each PORT TIMES                 connections one after another, a byte each; the nanoseconds
 * of each
 */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "dbus/base.h"
#include "tests/bench/child.h"

#define BLOCK (256 * 1024)
#define CONNECTIONS_MAX 1024

static uint8_t block[BLOCK];

static struct sockaddr_in loopback(const char *port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

/* ---- serve ---- */

typedef struct Client {
	bool asked;
	uint64_t left;
} Client;

/* Return: false when it is over. */
static bool serve_client(int fd, Client *client)
{
	ssize_t n;

	if (!client->asked) {
		n = recv(fd, &client->left, sizeof(client->left), MSG_WAITALL);
		client->asked = n == (ssize_t)sizeof(client->left);
		return client->asked;
	}
	n = send(fd, block, MIN_OF(client->left, (uint64_t)BLOCK), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN;
	client->left -= (uint64_t)n;
	return client->left > 0;
}

static void serve_all(struct pollfd *fds, Client *clients, nfds_t *n)
{
	for (nfds_t i = 2; i < *n; i++) {
		if (fds[i].revents == 0)
			continue;
		if (serve_client(fds[i].fd, &clients[i])) {
			fds[i].events = clients[i].asked ? POLLOUT : POLLIN;
			continue;
		}
		(void)close(fds[i].fd);
		fds[i] = fds[--*n];
		clients[i] = clients[*n];
		i--;
	}
}

static int serve(const char *port)
{
	static struct pollfd fds[CONNECTIONS_MAX];
	static Client clients[CONNECTIONS_MAX];
	struct sockaddr_in address = loopback(port);
	const int on = 1;
	nfds_t n = 2;

	fds[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN };
	if (fds[1].fd < 0 || setsockopt(fds[1].fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fds[1].fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fds[1].fd, 512) < 0)
		die("listen", errno);
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;) {
		if (poll(fds, n, -1) < 0)
			die("poll", errno);
		if (fds[0].revents)
			return 0;
		serve_all(fds, clients, &n);
		if (fds[1].revents && n < CONNECTIONS_MAX) {
			clients[n] = (Client){ 0 };
			fds[n] = (struct pollfd){ .fd = accept4(fds[1].fd, NULL, NULL, SOCK_CLOEXEC),
						  .events = POLLIN };
			if (fds[n].fd < 0)
				die("accept", errno);
			n++;
		}
	}
}

/* ---- ask ---- */

static int ask(const struct sockaddr_in *address, uint64_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    send(fd, &bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		die("connect", errno);
	return fd;
}

static int pull(const char *port, const char *connections, const char *bytes)
{
	static struct pollfd fds[CONNECTIONS_MAX];
	struct sockaddr_in address = loopback(port);
	uint64_t each = strtoull(bytes, NULL, 10), received = 0, begin = now_nsec();
	nfds_t n = strtoul(connections, NULL, 10), left;

	if (n == 0 || n > CONNECTIONS_MAX)
		return 1;
	for (nfds_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = ask(&address, each), .events = POLLIN };
	for (left = n; left > 0;) {
		if (poll(fds, n, -1) < 0)
			die("poll", errno);
		for (nfds_t i = 0; i < n; i++) {
			ssize_t got;

			if (fds[i].fd < 0 || fds[i].revents == 0)
				continue;
			got = recv(fds[i].fd, block, BLOCK, 0);
			if (got < 0)
				die("recv", errno);
			received += (uint64_t)got;
			if (got == 0) {
				(void)close(fds[i].fd);
				fds[i].fd = -1;
				left--;
			}
		}
	}
	(void)printf("%llu\n", (unsigned long long)(now_nsec() - begin));
	return received == n * each ? 0 : 1;
}

static int each(const char *port, const char *times)
{
	struct sockaddr_in address = loopback(port);

	for (unsigned long n = strtoul(times, NULL, 10); n > 0; n--) {
		uint64_t begin = now_nsec();
		int fd = ask(&address, 1);

		if (recv(fd, block, 1, 0) != 1)
			die("recv", errno);
		(void)close(fd);
		(void)printf("%llu\n", (unsigned long long)(now_nsec() - begin));
	}
	return 0;
}

int main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && streq(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 5 && streq(argv[1], "pull"))
		return pull(argv[2], argv[3], argv[4]);
	if (argc == 4 && streq(argv[1], "each"))
		return each(argv[2], argv[3]);
	(void)fputs("bench-relay: serve PORT | pull PORT CONNECTIONS BYTES | each PORT TIMES\n", stderr);
	return 2;
}
