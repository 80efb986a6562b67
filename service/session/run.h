/* SPDX-License-Identifier: MIT */
#pragma once

/* The program: from the descriptors of service/link/spawn.h to the end of the session. Return: its exit
 * status. */
int session_run(void);
