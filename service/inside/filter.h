/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The seccomp filter of everything that runs in a jail: no set-id bits, no way round that check, no typing
 * into a terminal. What it refuses and why stands at the top of filter.c.
 */

#include "dbus/base.h"

/*
 * Put the filter on the calling process, for good, and on all that it will start. no_new_privs must be set
 * already (prctl(2)). forbid_namespaces: also refuse new user namespaces, for a session of root's or with an
 * entry-point guard.
 * Return: 0; -ENOMEM; what libseccomp (seccomp_load(3)) or seccomp(2) answered: -EINVAL without seccomp in
 * the kernel, -EACCES without no_new_privs.
 */
int filter_install(bool forbid_namespaces);
