/* SPDX-License-Identifier: MIT */
#pragma once

/* The real init as PID 1 of a pid namespace, without a jail around it: what init-test drives. */

#include <sys/types.h>

#include "service/link/report.h"

#define DEADLINE_MSEC 10000

typedef struct Jail {
	pid_t pid;     /* init, seen from outside */
	int report_fd; /* ours */
	int master_fd; /* the PTY; FD_NONE without one */
	int slave_fd;  /* given away by jail_start() */
	int in_fd;     /* write end of key 0's pipe */
	int out_fd;    /* read end of key 1's pipe */
	int given[3];  /* descriptors for keys, instead of pipes; not owned */
	InitOrders orders;
	bool nobody;            /* init runs as uid 65534 */
	bool held;              /* jail_start() does not send REPORT_GO */
	const char *raw_orders; /* instead of orders */
} Jail;

/* A jail that will run `/bin/sh -c script`; terminals and pipes are masks of keys. */
void jail_prepare(Jail *jail, const char *script, uint32_t terminals, uint32_t pipes);
void jail_start(Jail *jail);
void jail_end(Jail *jail);

void jail_send(Jail *jail, ReportKind kind, int number);
/* Wait for one report. Fails the test after DEADLINE_MSEC. */
/* The next report but REPORT_READY, which is the first of all. */
Report jail_report(Jail *jail);
void jail_expect_ready(Jail *jail);
void jail_expect(Jail *jail, ReportKind kind, int number);
void jail_expect_exit(Jail *jail, int status);

/* Read until text appeared. Fails the test after DEADLINE_MSEC, or at the end of the stream. */
void expect_text(int fd, const char *text);
/* What comes next is text and nothing before it. */
void expect_next(int fd, const char *text);
/* Read to the end of the stream (EIO of a PTY too). Return: what was read, to be freed. */
char *read_rest(int fd);
