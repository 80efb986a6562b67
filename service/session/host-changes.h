/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * That the host's network changes, told at once; however fast it does (a router's thousand routes), the looks
 * at it take at most a part of the time.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"

typedef struct HostChanges HostChanges;

/*
 * From now on; what happens before the loop runs is told then. changed: look at the host. Return: 0 when that
 * went well; a negative errno: call again in a second. Return: 0 or a negative errno.
 */
typedef int (*HostChanged)(void *userdata);
int host_changes_new(sd_event *event, HostChanged changed, void *userdata, HostChanges **ret);
HostChanges *host_changes_free(HostChanges *changes);
DEFINE_CLEANUP(HostChanges, host_changes_free)
