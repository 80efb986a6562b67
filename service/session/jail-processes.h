/* SPDX-License-Identifier: MIT */
#pragma once

/* The processes of a jail that runs, as the kernel shows them outside (proc_pid_status(5)). */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/plan/expectations.h"

/* Of one jail: as many as the expectations have room for. */
#define JAIL_PROCESSES_MAX 4096u

typedef struct JailProcesses {
	ExpectedProcess *items; /* the jail's init first */
	size_t n;
} JailProcesses;

void jail_processes_done(JailProcesses *processes);
/*
 * Look at leader and at everything below it. One that ends meanwhile is left out. Return: 0; -ESRCH when
 * leader has ended; -E2BIG above JAIL_PROCESSES_MAX; another negative errno when one cannot be looked at.
 */
int jail_processes_read(pid_t leader, JailProcesses *ret);

/* Inodes of the namespaces of a process, 0 where one cannot be read. pid 0: this one. */
void namespaces_read(pid_t pid, uint64_t ret[static NAMESPACE_KIND_MAX]);

/*
 * What /proc/PID/status says, for whoever tests it: text is changed. *ret_ended is whether it has ended, or
 * is about to and has no memory any more. The depth counts all numbers of NSpid. Return: 0, -EBADMSG,
 * -ENOMEM.
 */
int process_status_parse(char *text, ExpectedProcess *ret, bool *ret_ended);
