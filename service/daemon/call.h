/* SPDX-License-Identifier: MIT */
#pragma once

/* A call that is answered later: whom to answer, without what was said. */

#include <systemd/sd-bus.h>

/*
 * What an answer needs of call, and nothing else: a message keeps its body and every descriptor that was
 * attached to it, whether or not anything names them, for as long as it lives. *ret may be answered as call.
 * Return: 0 or a negative errno.
 */
int call_keep(sd_bus_message *call, sd_bus_message **ret);

/*
 * In the place of a call that is known by who sent it and its serial alone; it wants an answer.
 * Return: 0 or a negative errno.
 */
int call_stand_in(sd_bus *bus, const char *sender, uint64_t serial, sd_bus_message **ret);
