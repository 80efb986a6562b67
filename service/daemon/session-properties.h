/* SPDX-License-Identifier: MIT */
#pragma once

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "service/daemon/registry.h"

/* Of one text from a session, in bytes. */
#define SESSION_TEXT_MAX 1024u

/*
 * Append the value of a property, from what is kept. Return: >= 0, or -ENOENT for a name that is none and
 * other negative errnos.
 */
int session_append_property(const Session *session, const char *name, sd_bus_message *m);
/* Return: the type of a property, or NULL for a name that is none. */
const char *session_property_type(const char *name);
