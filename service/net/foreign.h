/* SPDX-License-Identifier: MIT */
#pragma once

/* Who has changed the jail's network? Judged by one event, so that what is undone at once is seen too. */

#include "service/net/denial.h"
#include "service/net/message.h"

typedef struct ForeignView {
	const Denial *denial;
	uint32_t own_port; /* of the socket that programs the namespace, by which the kernel names us */
} ForeignView;

/*
 * header: an event of a watching socket (JailSockets.watch_fd), after the last read-back of the start.
 * *ret_look is set when the whole namespace must be read back, since an event of a device does not tell what
 * went with it. Return: 0; -EREMCHG with *ret_what, the change in words; -EBADMSG; -ENOMEM.
 */
int foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look, char **ret_what);
