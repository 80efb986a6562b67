/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Is what was installed still there and root's alone? What anybody can see, so that the service and the
 * command, which may find no service, say the same of it. Each returns 0, -ENOMEM, or another negative errno
 * with *ret_problem (cause and fix).
 */

#include "dbus/base.h"

/* The policy by which the bus lets root own the name and everybody call it. */
int installed_check_policy(char **ret_problem);
/* The file by which the bus starts the service, and the program that it names. */
int installed_check_activation(char **ret_problem);
/* The agents' names in CS_BIN_DIR start the entry. */
int installed_check_entries(char **ret_problem);
/* The other programs and files: there, root's, writable by nobody else. */
int installed_check_files(char **ret_problem);
/* Likewise the directories that they lie in. */
int installed_check_directories(char **ret_problem);
