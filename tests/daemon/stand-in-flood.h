/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * Without end, as fast as it is taken, and nothing that ends the link: rows that nobody asked for, attempts above
 * the limit, states that change. Ends the process with the link or the lifeline.
 */
_noreturn_ void flood_link(int link_fd);

/* Tell of where clouds give credentials, then of a hundred others, and of all of them again. */
void scan_link(int link_fd);
