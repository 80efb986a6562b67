/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One NETLINK_ROUTE socket and the three ways to use it: program in batches, dump, ask one question. Messages
 * are built with libnl (netlink/msg.h); answers are read raw, since libnl's caches merge what must be told
 * apart (routes of equal destination and metric). Here, and only here, libnl's error numbers become errno.
 */

#include "service/net/message.h"

#include <netlink/attr.h>
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

/* Wrap fd, which stays the caller's. Return: 0; -ENOTSOCK when it is no bound NETLINK_ROUTE socket; -ENOMEM.
 */
int netlink_new(int fd, Netlink **ret);
Netlink *netlink_free(Netlink *netlink);
DEFINE_CLEANUP(Netlink, netlink_free)

/* What the kernel said to one message of a batch. */
typedef struct NetlinkAnswer {
	int error;  /* 0 or a negative errno */
	char *text; /* the kernel's own words, or NULL */
} NetlinkAnswer;

void netlink_answers_free(NetlinkAnswer *answers, size_t n);

/* A new request. Return: NULL without memory. flags: NLM_F_CREATE... The body is copied. */
struct nl_msg *netlink_message(uint16_t type, uint16_t flags, const void *body, size_t size);
static inline void nl_msg_freep(struct nl_msg **m)
{
	if (*m)
		nlmsg_free(*m);
	*m = NULL;
}
/* Append one attribute. Return: 0 or a negative errno. */
int netlink_put(struct nl_msg *message, int attribute, const void *data, size_t size);
int netlink_put_u32(struct nl_msg *message, int attribute, uint32_t value);
int netlink_put_ipv4(struct nl_msg *message, int attribute, uint32_t address /* host order */);

/*
 * Send n requests, many in one sendmsg(2), and gather the acknowledgement of each into answers[n].
 * Return: 0 when each was answered (whatever the answer); -ETIMEDOUT; another negative errno.
 */
int netlink_program(Netlink *netlink, struct nl_msg **messages, size_t n, NetlinkAnswer *answers);
/* The same for one request. Return: its answer, with *ret_text (may be NULL). */
int netlink_program_one(Netlink *netlink, struct nl_msg *message, char **ret_text);

/*
 * Everything that a dump request of type (RTM_GET...) with this body brings; only messages of type type - 2
 * (RTM_NEW...) are accepted. Return: 0; -EBUSY when it changed under every attempt; -EMSGSIZE above the
 * bounds; -EOPNOTSUPP and -EAFNOSUPPORT from a kernel without it; -EBADMSG; -ETIMEDOUT. *ret is set only on
 * success.
 */
int netlink_dump(Netlink *netlink, uint16_t type, const void *body, size_t size, MessageList *ret);
/* One question, one answer. Return: as netlink_dump(), or the kernel's refusal. */
int netlink_ask(Netlink *netlink, struct nl_msg *message, MessageList *ret);

/*
 * One datagram that waits on a netlink socket, never blocking, into a buffer that grows (bounded). Datagrams
 * of any sender but the kernel are dropped. Return: its size; -EAGAIN; -ENOBUFS when events were lost;
 * -EMSGSIZE.
 */
ssize_t netlink_receive(int fd, uint8_t **buffer, size_t *buffer_size);
