/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The system bus of another machine, over ssh(1): systemd-stdio-bridge(1), of the package systemd, connects
 * it there to ssh's input and output. Who one is there, ssh decides.
 */

#include "dbus/client.h"

/*
 * Is text [USER@]HOST[:PORT]? HOST is a name, an IPv4 address, an IPv6 address in brackets or an alias of
 * ssh_config(5): characters of [A-Za-z0-9._-], never one that ssh would take for an option.
 */
bool client_remote_is_valid(const char *host);

/* As sd-bus takes it (sd_bus_set_address(3)). Return: a string to be freed, or NULL without memory. */
char *client_remote_address(const char *host);

/*
 * Connect; host is valid. Return as client_open(): that ssh fails is known only to the first call. ssh looks
 * programs up for the person (ssh_config(5), ProxyCommand): this process's PATH becomes the system's own
 * directories, and SSH_ASKPASS, which names a program, is dropped.
 */
int client_open_remote(const char *host, sd_bus **ret, sd_bus_error *reterr);

/* client_sentence_there() for a call there. */
char *client_remote_sentence(const char *host, int error, const sd_bus_error *e);
