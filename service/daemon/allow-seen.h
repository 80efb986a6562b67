/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The configuration's addresses as the log has them. What somebody has opened or closed by editing the file
 * is told when it is seen: at the next look, which a start of the service is too. So the list is kept in
 * CS_LOG_DIR, beside the log.
 */

#include "dbus/base.h"
#include "service/daemon/audit.h"

typedef struct AllowSeen AllowSeen;

/* path: of the configuration. Nothing is read yet. Return: 0 or -ENOMEM. */
int allow_seen_new(Audit *audit, const char *path, AllowSeen **ret);
AllowSeen *allow_seen_free(AllowSeen *seen);
DEFINE_CLEANUP(AllowSeen, allow_seen_free)

/*
 * Tell of what is different in the file. Where nothing is remembered, what is there now is remembered. A file
 * that no launch would read says nothing.
 */
void allow_seen_look(AllowSeen *seen);
/* The service has edited the file itself, and told so: look for whatever else there is. */
void allow_seen_edited(AllowSeen *seen, const char *address, bool removed);
