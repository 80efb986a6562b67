/* SPDX-License-Identifier: MIT */
#pragma once

/* PID 1 of the jail: one agent, its terminal, its end. See the top of init.c. */

#include "dbus/base.h"

/*
 * Carry out the orders on INIT_FD_ORDERS and report on INIT_FD_REPORT (service/link/report.h) until the agent
 * is gone. Return: the exit status for the process: 0 when the agent ran and its end was reported, else 1.
 */
int init_run(void);
