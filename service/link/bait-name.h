/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * What the listeners of a session's checks have in their names, which everybody can read in /proc/net/unix:
 * 16 digits of [0-9a-f] that the session and the service make of its id, and from which nobody gets the id.
 * id: CS_ID_LENGTH characters. Return: to be freed, or NULL without memory or for another id.
 */
char *bait_name(const char *id);

/* The path of the one with a path. Return: as bait_name(). */
char *bait_path(const char *id);
