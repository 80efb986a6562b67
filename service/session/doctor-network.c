/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "service/session/doctor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "service/session/resolver.h"

/* For an answer of the host's name server; asked twice in that time. */
#define ANSWER_MSEC 1500
#define DNS_PORT 53
#define DNS_ID 0x4353
#define FIRST_FORWARDER 0xc0000235u /* 192.0.2.53 */

/* RFC 1035, 4.1: who serves the root, asked with recursion desired. Whatever answers to that is a name
 * server. */
static const uint8_t question[] = {
	DNS_ID >> 8, DNS_ID & 0xff, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1
};

/* Return: 1 for an answer; 0 for none; a negative errno (-ECONNREFUSED: nobody is there). */
static int await_answer(int fd, int64_t end_msec)
{
	for (int64_t left; (left = end_msec - clock_msec(CLOCK_MONOTONIC)) > 0;) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };
		uint8_t answer[512];
		ssize_t n;

		if (poll(&polled, 1, (int)left) <= 0)
			continue;
		n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		/* The same number, and the bit that says that it is an answer. */
		if (n >= 12 && answer[0] == question[0] && answer[1] == question[1] && (answer[2] & 0x80))
			return 1;
	}
	return 0;
}

static int ask(struct in_addr server)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(DNS_PORT),
				       .sin_addr = server };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	for (unsigned i = 0; i < 2 && r == 0; i++) {
		if (send(fd, question, sizeof(question), MSG_NOSIGNAL) < 0)
			return -errno;
		r = await_answer(fd, clock_msec(CLOCK_MONOTONIC) + ANSWER_MSEC / 2);
	}
	return r;
}

static void ask_first(Doctor *doctor, const Resolver *resolver, bool online)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr server = { .s_addr = htonl(resolver_first_ipv4(resolver)) };
	bool stub;
	int r;

	if (server.s_addr == 0)
		return;
	(void)inet_ntop(AF_INET, &server, text, sizeof(text));
	stub = ntohl(server.s_addr) >> 24 == 127;
	r = ask(server);
	if (r > 0)
		doctor_say(doctor, DOCTOR_RESOLVER, ROW_PASS, NULL, "%s answers%s", text,
			   stub ? " (a stub on this machine)" : "");
	else
		doctor_say(doctor, DOCTOR_RESOLVER, online ? ROW_FAIL : ROW_WARN, FIX_RESOLVER_SILENT,
			   CAUSE_RESOLVER_SILENT, text, r < 0 ? strerror(-r) : "silence");
}

static void look_at_resolver(Doctor *doctor, bool online)
{
	_cleanup_(resolver_done) Resolver resolver = { 0 };
	_cleanup_free_ char *text = NULL, *sentence = NULL;
	size_t size = 0;
	int r = resolver_read(&text, &size);

	if (r == 0)
		r = resolver_render(text, size, 0, true, &resolver);
	if (r < 0) {
		(void)refuse(&sentence, r, BECAUSE(RESOLVER_UNREADABLE), strerror(-r));
		doctor_say_sentence(doctor, DOCTOR_RESOLVER, ROW_FAIL, sentence ?: "out of memory");
	} else if (resolver.n_servers == 0)
		doctor_say_sentence(doctor, DOCTOR_RESOLVER, ROW_FAIL, BECAUSE(RESOLVER_NONE));
	else if (resolver.n_ipv4 == 0)
		doctor_say_sentence(doctor, DOCTOR_RESOLVER, ROW_FAIL, BECAUSE(RESOLVER_NO_IPV4));
	else
		ask_first(doctor, &resolver, online);
}

static void look_at_forwarder(Doctor *doctor, const Network *network)
{
	struct in_addr in = { .s_addr = htonl(network->routes.forwarder) };
	char text[INET_ADDRSTRLEN];

	(void)inet_ntop(AF_INET, &in, text, sizeof(text));
	if (network->routes.forwarder == 0)
		doctor_say_sentence(doctor, DOCTOR_FORWARDER, ROW_FAIL, BECAUSE(FORWARDER_NONE));
	else if (network->routes.forwarder == FIRST_FORWARDER)
		doctor_say(doctor, DOCTOR_FORWARDER, ROW_PASS, NULL, "%s is free", text);
	else
		doctor_say(doctor, DOCTOR_FORWARDER, ROW_NOTE, NULL,
			   "192.0.2.53 lies in a network of the host or in an allow-ip, so %s is used", text);
}

void doctor_look_at_network(Doctor *doctor, const Network *network)
{
	if (!doctor)
		return;
	if (!network->jailed) {
		doctor_say(doctor, DOCTOR_UPLINK, ROW_NOTE, NULL,
			   "the network is shared: egress-jail is off (claude-sandbox policy)");
		doctor_say(doctor, DOCTOR_FORWARDER, ROW_NOTE, NULL, "not needed: the network is shared");
		look_at_resolver(doctor, true);
		return;
	}
	if (network->host.uplink)
		doctor_say(doctor, DOCTOR_UPLINK, ROW_PASS, NULL, "there is an IPv4 default route");
	else
		doctor_say_sentence(doctor, DOCTOR_UPLINK, ROW_WARN, BECAUSE(UPLINK_NONE));
	look_at_forwarder(doctor, network);
	look_at_resolver(doctor, network->host.uplink);
}
