/* SPDX-License-Identifier: MIT */
#pragma once

/* The tap jail0: making it, and the transmit filter that survives whoever attaches to it (tun(4),
 * tuntap.rst). */

#include "service/net/denial.h"

/*
 * In the holder: make the persistent tap. Return: 0; a negative errno with *ret_problem that tells apart why
 * there is none: -ENOENT (no node), -EACCES (mode, or a security module), -EPERM (device cgroup, or no right
 * to make a device), -ENODEV (kernel without tun), -EBUSY (the name is taken).
 */
int tap_open(int *ret_fd, char **ret_problem);
/* A new device of this name, without extra headers; kind: IFF_TAP or IFF_TUN. Return: as above. */
int tun_make(const char *name, int kind, int *ret_fd, char **ret_problem);
/* Could a device be made, as far as can be seen without making one? Return: as above. */
int tun_look(char **ret_problem);

int tap_step_filter(Denial *denial, MeantKind kind, char **ret_problem);
