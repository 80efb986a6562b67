/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The systemd journal's own protocol ("Native Journal Protocol" of the systemd project): one datagram of
 * FIELD=VALUE lines to a socket. Never waits; sd_journal_send(3) does when the journal is slow.
 */

#include "dbus/base.h"
#include "service/daemon/audit-line.h"

/* Return: 0; -ENOENT or -ECONNREFUSED where there is no journal; -EAGAIN when it is full; others. */
int journal_send(const AuditEvent *event, const char *message);
