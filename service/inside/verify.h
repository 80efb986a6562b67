/* SPDX-License-Identifier: MIT */
#pragma once

/* The program of the battery. Its descriptors are in verify.c. */

#define VERIFY_EXIT_PASSED 0
#define VERIFY_EXIT_FAILED 1
#define VERIFY_EXIT_UNABLE 125

/* Return: the status to exit with. */
int verify_run(void);
