/* SPDX-License-Identifier: MIT */
#pragma once

/* The session's end of what the jail's init reports. Hostile input: init lives among what the agent runs. */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/link/report.h"

typedef struct Reports Reports;

typedef struct ReportsCalls {
	/* leader: init's pid as the kernel attests it (SCM_CREDENTIALS, unix(7)) in this process's pid
	 * namespace. */
	void (*report)(void *userdata, const Report *report, pid_t leader);
	/* No report will come any more. Called once; never during reports_drain(). */
	void (*closed)(void *userdata);
} ReportsCalls;

/* Make the pair; *ret_init_fd (O_CLOEXEC) is init's end. Return: 0 or a negative errno. */
int reports_new(sd_event *event, const ReportsCalls *calls, void *userdata, Reports **ret, int *ret_init_fd);
Reports *reports_free(Reports *reports);
DEFINE_CLEANUP(Reports, reports_free)
/* Pass on what waits, now. */
void reports_drain(Reports *reports);
/* Return: 0; -EAGAIN when init does not read; -EPIPE when it is gone; another negative errno. */
int reports_send(Reports *reports, ReportKind kind, int number);
