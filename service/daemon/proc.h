/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What /proc says of one process (proc(5)). A pid may be another process a moment later: whoever uses this
 * holds a pidfd and asks pidfd_alive() after reading.
 */

#include <sys/resource.h>
#include <sys/types.h>

#include "dbus/base.h"

typedef struct ProcStatus {
	uid_t uid; /* effective */
	gid_t gid; /* effective */
	mode_t umask;
	bool no_new_privs;
	unsigned seccomp;         /* 0 none, 1 strict, 2 filter */
	unsigned seccomp_filters; /* how many; 0 before Linux 5.9, which does not say */
	uint64_t capabilities, bounding_set;
	uint64_t ignored_signals; /* bit n - 1: signal n */
} ProcStatus;

typedef struct ProcStat {
	dev_t terminal;       /* controlling terminal, 0 for none */
	uint64_t start_ticks; /* since boot, sysconf(_SC_CLK_TCK) a second */
} ProcStat;

/* Is the process of pidfd still running? */
bool pidfd_alive(int pidfd);
/* Return: an O_CLOEXEC descriptor, or -ESRCH and other negative errnos. */
int pidfd_of(pid_t pid);
/* Send a signal to exactly this process. Return: 0 or a negative errno. */
int pidfd_kill(int pidfd, int signal);

/*
 * The bytes of /proc/PID/name, at most 64 KiB, with a NUL behind. Return: 0; -ESRCH for a process that has
 * gone; other negative errnos. *ret is to be freed.
 */
int proc_read(pid_t pid, const char *name, char **ret);
/* Pure: the text of /proc/PID/status, and of /proc/PID/stat. Return: 0 or -EBADMSG. */
int proc_parse_status(const char *text, ProcStatus *ret);
int proc_parse_stat(const char *text, ProcStat *ret);
int proc_status(pid_t pid, ProcStatus *ret);
int proc_stat(pid_t pid, ProcStat *ret);
/*
 * Pure: the text of /proc/PID/limits, which everybody may read; prlimit(2) asks for CAP_SYS_RESOURCE, and
 * root in a container has it rarely. Return: 0; -EBADMSG unless every limit is there.
 */
int proc_parse_limits(const char *text, struct rlimit ret[static RLIM_NLIMITS]);
int proc_limits(pid_t pid, struct rlimit ret[static RLIM_NLIMITS]);
/* Ticks since boot as microseconds of CLOCK_BOOTTIME, rounded down as the kernel did. */
uint64_t proc_ticks_to_usec(uint64_t ticks);
