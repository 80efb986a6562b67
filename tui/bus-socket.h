/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Wait for a socket to be made where none is, by inotify(7) on the directories above it. Between its name and
 * its listening nothing is told, so a try that comes too early is repeated a few times, later each time.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"

typedef struct BusSocket BusSocket;

/* ready is called whenever the socket may have come. Return: 0 or a negative errno. */
int bus_socket_new(sd_event *event, const char *path, void (*ready)(void *userdata), void *userdata,
		   BusSocket **ret);
BusSocket *bus_socket_free(BusSocket *socket);
DEFINE_CLEANUP(BusSocket, bus_socket_free)
/* The try that ready led to failed. */
void bus_socket_failed(BusSocket *socket);
