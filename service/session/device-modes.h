/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * For root's sessions. The nodes in the jail's /dev are the machine's own, and uid 0 owns them there as well:
 * an agent could take /dev/null from everybody by its mode or owner. In a process that is alone and has a
 * user namespace of its own: make a mount namespace where all of /dev is mounted read-only, which every bind
 * made from it is as well. Devices can be read and written all the same. Return: 0; a negative errno with
 * *ret_problem.
 */
int device_modes_keep(char **ret_problem);
