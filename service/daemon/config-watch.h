/* SPDX-License-Identifier: MIT */
#pragma once

/* Tells when the configuration says something else than before, while there is somebody to tell. */

#include <systemd/sd-event.h>

#include "dbus/base.h"

typedef struct ConfigWatch ConfigWatch;

/*
 * At least one is true. policy: what GetPolicy answers is another now; allow_ip: an allow-ip address or its
 * comment is.
 */
typedef void (*ConfigWatchFunction)(void *userdata, bool policy, bool allow_ip);

/* path must have a directory. Nothing is watched yet. Return: 0 or a negative errno. */
int config_watch_new(sd_event *event, const char *path, ConfigWatchFunction function, void *userdata,
		     ConfigWatch **ret);
ConfigWatch *config_watch_free(ConfigWatch *watch);
DEFINE_CLEANUP(ConfigWatch, config_watch_free)

/* Watch from now on, or no longer; a repetition changes nothing. Return: has it begun to watch? */
bool config_watch_set(ConfigWatch *watch, bool on);
