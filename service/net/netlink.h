/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One bound netlink socket and the three ways to use it: program in batches, dump, ask one question. Messages
 * are built with libnl-route's objects and kept as the bytes that they are; answers are read raw, since
 * libnl's caches merge what must be told apart (routes of equal destination and metric).
 */

#include "service/net/message.h"

#include <netlink/msg.h>

typedef struct Netlink Netlink;

#define NETLINK_ANSWER_USEC \
	(2 * USEC_PER_SEC) /* the kernel answers within the call; this is for a lost answer */
#define NETLINK_DATAGRAM_MAX (1024u * 1024)
#define NETLINK_BATCH_MAX \
	64u /* acknowledgements that fit into the default receive buffer with room to spare */
#define NETLINK_DUMP_ATTEMPTS 8u /* of a dump that changes come in between (NLM_F_DUMP_INTR) */

/* Open and bind a socket of protocol, joined to groups (a mask of RTMGRP_ bits). Return: 0 or a negative
 * errno. */
int netlink_open(int protocol, uint32_t groups, int *ret_fd);

/* Use fd, which stays the caller's and open. Return: 0; -ENOTSOCK when it is no bound socket of protocol;
 * -ENOMEM. */
int netlink_new(int fd, int protocol, Netlink **ret);
Netlink *netlink_free(Netlink *netlink);
DEFINE_CLEANUP(Netlink, netlink_free)

/* What the kernel said to one message of a batch. */
typedef struct NetlinkAnswer {
	int error;  /* 0 or a negative errno */
	char *text; /* the kernel's own words, or NULL */
} NetlinkAnswer;

void netlink_answers_free(NetlinkAnswer *answers, size_t n);

/* What one of libnl's builders made, as its bytes, to be freed with free(). built: what it returned. Return:
 * NULL without memory. */
struct nlmsghdr *netlink_built(int built, struct nl_msg *message);
/* A request with nothing but a body, which is copied. Return: NULL without memory. */
struct nlmsghdr *netlink_request(uint16_t type, uint16_t flags, const void *body, size_t size);

/*
 * Send n requests, many in one sendmsg(2), and gather the acknowledgement of each into answers[n].
 * Return: 0 when each was answered (whatever the answer); -ETIMEDOUT; another negative errno.
 */
int netlink_program(Netlink *netlink, struct nlmsghdr *const *messages, size_t n, NetlinkAnswer *answers);
/* The same for one request, which is freed; NULL is -ENOMEM. Return: its answer, with *ret_text (may be
 * NULL). */
int netlink_program_one(Netlink *netlink, struct nlmsghdr *message, char **ret_text);

/* Return: 0 or a negative errno, which ends the dump. */
typedef int (*NetlinkFunction)(void *userdata, const struct nlmsghdr *header);

/*
 * Everything that a dump request of type with this body brings; only messages of the answering type
 * (RTM_NEW... for RTM_GET...) are accepted. Return: 0; -EAGAIN when it changed meanwhile; -EOPNOTSUPP and
 * -EAFNOSUPPORT from a kernel without it; -EBADMSG; -ETIMEDOUT; what function returned.
 */
int netlink_each(Netlink *netlink, uint16_t type, const void *body, size_t size, NetlinkFunction function,
		 void *userdata);
/* The same, whole, behind what list holds. Return: likewise; -EBUSY when it changed under every attempt;
 * -EMSGSIZE above the bounds. */
int netlink_dump(Netlink *netlink, uint16_t type, const void *body, size_t size, MessageList *list);
/* One question, which is freed, one answer into an empty list. Return: as netlink_each(), or the kernel's
 * refusal; -ENOMEM for NULL. */
int netlink_ask(Netlink *netlink, struct nlmsghdr *message, MessageList *ret);

/*
 * One datagram that waits on a netlink socket, never blocking, into a buffer that grows (bounded). Datagrams
 * of any sender but the kernel are dropped. Return: its size; -EAGAIN; -ENOBUFS when events were lost;
 * -EMSGSIZE.
 */
ssize_t netlink_receive(int fd, uint8_t **buffer, size_t *buffer_size);
