/* SPDX-License-Identifier: MIT */

/*
 * An agent may send as fast as it can. So this is the last thing that the loop does (idle priority), each
 * turn takes at most TURN_PACKETS, and what comes faster than RATE_PACKETS waits in the device's queue, and
 * is dropped and counted by the kernel when that is full: a flood costs a few percent of a processor, and
 * everything else of the session comes first.
 *
 * An attempt is looked up before it is answered: a program that is told at once ends at once.
 */

#include "service/session/ledger.h"

#include <sys/epoll.h>

#include "base/clock.h"
#include "service/net/ledger-device.h"
#include "service/plan/packet.h"
#include "service/session/attempts.h"
#include "service/session/link-server.h"
#include "service/session/socket-owner.h"

#define PACKET_MAX 2048u
#define TURN_PACKETS 32u
/* A second; as many may come at once as fit into the device's queue. */
#define RATE_PACKETS 20000u
#define PAUSE_USEC (20 * USEC_PER_MSEC)
#define LAST_PACKETS LEDGER_QUEUE
#define NEWS_USEC (250 * USEC_PER_MSEC)
/*
 * The dummy address of IPv4 (RFC 7600): whoever answers here has none. It lies in a denied range, so a route
 * leads back to it by the device, as reverse path filters ask for.
 */
#define ANSWERS_FROM 0xc0000008u
/*
 * An answer that comes while connect(2) still holds its socket is only remembered by the kernel, and the next
 * try is a second away: connections are answered twice.
 */
#define AGAIN_MAX 32u
#define AGAIN_USEC (5 * USEC_PER_MSEC)

typedef struct Answer {
	uint8_t bytes[PACKET_ANSWER_MAX];
	size_t size;
} Answer;

/* A check's packets are read when nothing else is to do. */
#define CHECK_LATE_USEC (500 * USEC_PER_MSEC)

struct Ledger {
	sd_event *event;
	const Network *network;
	LedgerFunction function;
	void *userdata;
	int fd; /* the device, borrowed; FD_NONE after the stop */
	Attempts *attempts;
	SocketOwners *owners;
	uint64_t dropped_before;
	uint64_t tokens, tokens_usec;
	uint64_t checked_until_usec; /* CLOCK_MONOTONIC: a check of the jail sends, too */
	Answer again[AGAIN_MAX];
	size_t n_again;
	sd_event_source *source, *pause, *news, *repeat;
};

static void start_timer(sd_event_source *timer, uint64_t usec)
{
	int enabled = SD_EVENT_OFF;

	(void)sd_event_source_get_enabled(timer, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	(void)sd_event_source_set_time_relative(timer, usec);
	(void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void answer(Ledger *ledger, const Packet *packet, const uint8_t *bytes, size_t size)
{
	Answer new;

	/* Nothing else is a sender here; what is sent back must not be for anybody else. */
	if (packet->source != ROUTES_SOURCE)
		return;
	new.size = packet_answer(bytes, size, ANSWERS_FROM, new.bytes);
	if (new.size == 0)
		return;
	(void)!write(ledger->fd, new.bytes, new.size);
	if (packet->protocol != PACKET_TCP || ledger->n_again == AGAIN_MAX)
		return;
	ledger->again[ledger->n_again++] = new;
	start_timer(ledger->repeat, AGAIN_USEC);
}

static int on_repeat(sd_event_source *source, uint64_t usec, void *userdata)
{
	Ledger *ledger = userdata;

	for (size_t i = 0; i < ledger->n_again; i++)
		(void)!write(ledger->fd, ledger->again[i].bytes, ledger->again[i].size);
	ledger->n_again = 0;
	return 0;
}

/* The machine itself, and where clouds give credentials or answer machines alone. */
static bool is_important(const Ledger *ledger, uint32_t address)
{
	static const uint32_t clouds[] = {
		0xa9fea9feu, /* 169.254.169.254: nearly all of them */
		0xa9feaa02u, /* 169.254.170.2: containers of AWS */
		0xa83f8110u, /* 168.63.129.16: Azure */
		0x646464c8u, /* 100.100.100.200: Alibaba */
		0xc00000c0u, /* 192.0.0.192: Oracle */
	};

	for (size_t i = 0; i < ELEMENTSOF(clouds); i++)
		if (address == clouds[i])
			return true;
	return address >> 24 == 127 || routes_is_hosts(&ledger->network->routes, address);
}

static void note(Ledger *ledger, const uint8_t *bytes, size_t size, uint64_t now_usec)
{
	SocketOwner owner;
	Attempt attempt;
	Packet packet;

	/* IPv6, and what no kernel sends. */
	if (packet_parse(bytes, size, &packet) < 0 || packet.later_fragment)
		return;
	owner = socket_owners_find(ledger->owners,
				   &(SocketPair){ .protocol = packet.protocol,
						  .source = packet.source,
						  .destination = packet.destination,
						  .source_port = packet.source_port,
						  .destination_port = packet.destination_port },
				   now_usec);
	attempt = (Attempt){ .protocol = packet.protocol,
			     .address = packet.destination,
			     .port = packet.destination_port,
			     .pid = owner.pid };
	STATIC_ASSERT(sizeof(attempt.program) == sizeof(owner.name));
	memcpy(attempt.program, owner.name, sizeof(attempt.program));
	attempt.important = is_important(ledger, packet.destination);
	attempt.checked = !owner.name[0] && now_usec < ledger->checked_until_usec;
	attempts_add(ledger->attempts, &attempt, clock_usec(CLOCK_REALTIME));
	answer(ledger, &packet, bytes, size);
}

/* Return: how many packets were read, at most max. */
static unsigned read_packets(Ledger *ledger, unsigned max)
{
	uint64_t now_usec = clock_usec(CLOCK_MONOTONIC);
	uint8_t bytes[PACKET_MAX];
	unsigned n = 0;

	while (n < max) {
		ssize_t size = read(ledger->fd, bytes, sizeof(bytes));

		if (size <= 0)
			break;
		note(ledger, bytes, (size_t)size, now_usec);
		n++;
	}
	return n;
}

static void count_dropped(Ledger *ledger)
{
	uint64_t dropped = 0;

	if (ledger_device_dropped(&ledger->network->denial, &dropped) == 0 &&
	    dropped > ledger->dropped_before)
		attempts_set_unseen(ledger->attempts, dropped - ledger->dropped_before,
				    clock_usec(CLOCK_REALTIME));
}

/* Return: how many packets may be read now. */
static unsigned take_tokens(Ledger *ledger)
{
	uint64_t now_usec = clock_usec(CLOCK_MONOTONIC);
	uint64_t more = (now_usec - ledger->tokens_usec) * RATE_PACKETS / USEC_PER_SEC;

	if (more > 0) {
		ledger->tokens = MIN_OF(ledger->tokens + more, (uint64_t)LEDGER_QUEUE);
		ledger->tokens_usec = now_usec;
	}
	return (unsigned)MIN_OF(ledger->tokens, (uint64_t)TURN_PACKETS);
}

static int on_packets(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Ledger *ledger = userdata;
	unsigned may = take_tokens(ledger), n;

	if (may == 0) {
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
		start_timer(ledger->pause, PAUSE_USEC);
		return 0;
	}
	n = read_packets(ledger, may);
	ledger->tokens -= n;
	if (n > 0)
		start_timer(ledger->news, NEWS_USEC);
	else if (revents & (EPOLLERR | EPOLLHUP))
		/* The device is gone: the read-back says so. */
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	Ledger *ledger = userdata;

	(void)sd_event_source_set_enabled(ledger->source, SD_EVENT_ON);
	return 0;
}

static int on_news(sd_event_source *source, uint64_t usec, void *userdata)
{
	Ledger *ledger = userdata;

	count_dropped(ledger);
	if (attempts_have_news(ledger->attempts))
		ledger->function(ledger->userdata);
	return 0;
}

static int add_timer(Ledger *ledger, sd_event_source **ret, sd_event_time_handler_t handler)
{
	int r = sd_event_add_time_relative(ledger->event, ret, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, handler,
					   ledger);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

static int ledger_begin(Ledger *ledger)
{
	int r;

	r = sd_event_add_io(ledger->event, &ledger->source, ledger->fd, EPOLLIN, on_packets, ledger);
	if (r >= 0)
		r = sd_event_source_set_priority(ledger->source, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = add_timer(ledger, &ledger->pause, on_pause_over);
	if (r >= 0)
		r = add_timer(ledger, &ledger->news, on_news);
	if (r >= 0)
		r = add_timer(ledger, &ledger->repeat, on_repeat);
	return r < 0 ? r : 0;
}

/* The self-test's. */
static void discard(Ledger *ledger)
{
	uint8_t bytes[PACKET_MAX];

	for (unsigned i = 0; i < LEDGER_QUEUE && read(ledger->fd, bytes, sizeof(bytes)) > 0; i++)
		;
	(void)ledger_device_dropped(&ledger->network->denial, &ledger->dropped_before);
}

int ledger_new(sd_event *event, const Network *network, LedgerFunction function, void *userdata, Ledger **ret)
{
	_cleanup_(ledger_freep) Ledger *ledger = NULL;
	int r;

	if (network->denial.devices.ledger == 0) {
		*ret = NULL;
		return 0;
	}
	ledger = calloc(1, sizeof(*ledger));
	if (!ledger)
		return -ENOMEM;
	*ledger = (Ledger){ .event = sd_event_ref(event),
			    .network = network,
			    .function = function,
			    .userdata = userdata,
			    .fd = network->sockets.ledger_fd,
			    .attempts = attempts_new(),
			    .owners = socket_owners_new(network->sockets.diag_fd),
			    .tokens = LEDGER_QUEUE,
			    .tokens_usec = clock_usec(CLOCK_MONOTONIC) };
	if (!ledger->attempts || !ledger->owners)
		return -ENOMEM;
	discard(ledger);
	r = ledger_begin(ledger);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ledger);
	return 0;
}

void ledger_enter(Ledger *ledger, pid_t leader)
{
	if (ledger)
		socket_owners_set_leader(ledger->owners, leader);
}

void ledger_check(Ledger *ledger, bool begins)
{
	if (ledger)
		ledger->checked_until_usec =
			begins ? UINT64_MAX : clock_usec(CLOCK_MONOTONIC) + CHECK_LATE_USEC;
}

void ledger_stop(Ledger *ledger)
{
	if (!ledger || ledger->fd < 0)
		return;
	socket_owners_set_leader(ledger->owners, 0);
	(void)read_packets(ledger, LAST_PACKETS);
	count_dropped(ledger);
	ledger->source = sd_event_source_disable_unref(ledger->source);
	ledger->pause = sd_event_source_disable_unref(ledger->pause);
	ledger->news = sd_event_source_disable_unref(ledger->news);
	ledger->repeat = sd_event_source_disable_unref(ledger->repeat);
	ledger->fd = FD_NONE;
}

Ledger *ledger_free(Ledger *ledger)
{
	if (!ledger)
		return NULL;
	(void)sd_event_source_disable_unref(ledger->source);
	(void)sd_event_source_disable_unref(ledger->pause);
	(void)sd_event_source_disable_unref(ledger->news);
	(void)sd_event_source_disable_unref(ledger->repeat);
	(void)sd_event_unref(ledger->event);
	(void)attempts_free(ledger->attempts);
	(void)socket_owners_free(ledger->owners);
	free(ledger);
	return NULL;
}

/* ---- what is told ---- */

static const char *reason_of(void *userdata, uint32_t address)
{
	const Ledger *ledger = userdata;
	/* What was refused before it was allowed keeps its reason. */
	const RouteRow *row = routes_find_denial(&ledger->network->routes, address);

	if (!row)
		return "sent to the ledger's device, whatever the route";
	return row->reason ?: "";
}

uint64_t ledger_total(const Ledger *ledger)
{
	return ledger ? attempts_total(ledger->attempts) : 0;
}

int ledger_rows(Ledger *ledger, LinkRow **ret_rows, uint32_t *ret_n)
{
	if (!ledger)
		return 0;
	if (ledger->fd >= 0)
		count_dropped(ledger);
	return attempts_rows(ledger->attempts, reason_of, ledger, ret_rows, ret_n);
}

int ledger_news(Ledger *ledger, LinkRow **ret_rows, uint32_t *ret_n)
{
	int r;

	if (!ledger)
		return 0;
	r = attempts_news(ledger->attempts, LINK_SERVER_DENIED_MAX, reason_of, ledger, ret_rows, ret_n);
	/* The rest, a little later. */
	if (r == 0 && ledger->news && attempts_have_news(ledger->attempts))
		start_timer(ledger->news, NEWS_USEC);
	return r;
}
