/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reports: the jail's init ⇄ session, over a SOCK_SEQPACKET pair that only init holds inside. Fixed size, no
 * allocation: init is static and small. The session treats them as hostile all the same.
 *
 * Orders: what init is to do, a sealed memfd that it reads once (it never sees the caller's environment).
 */

#include "dbus/base.h"
#include "service/link/pack.h"
#include "service/link/slots.h"

typedef enum ReportKind {
	REPORT_EXECUTED,  /* init: execve of the agent succeeded */
	REPORT_FAILED,    /* init: number is a positive errno, stage says where; init ends then */
	REPORT_STOPPED,   /* init: number of the stop signal */
	REPORT_CONTINUED, /* init */
	REPORT_EXITED,    /* init: number is the agent's status as wait(2) encodes it; init ends then */
	REPORT_SIGNAL,    /* session: number of a signal for the agent alone */
	REPORT_RESUME,    /* session: give the terminal back to the remembered group and continue it */
	REPORT_HANGUP,    /* session: SIGHUP and SIGCONT to the agent */
	REPORT_GO,        /* session: everything that denies stands and the wire is known; run the agent */
	REPORT_KEY,       /* session: number of a signal for the agent's foreground group */
	REPORT_RESUME_BEHIND, /* session: continue the remembered group without the terminal */
	REPORT_READY,         /* init: it is the jail's first process, and waits for REPORT_GO */
	REPORT_KIND_MAX,
} ReportKind;

typedef enum InitStage {
	INIT_STAGE_ORDERS,
	INIT_STAGE_SESSION,  /* setsid(2) */
	INIT_STAGE_TERMINAL, /* TIOCSCTTY: EPERM when the terminal is another session's */
	INIT_STAGE_SECCOMP,
	INIT_STAGE_FORK,
	INIT_STAGE_DIRECTORY, /* chdir(2) to the working directory */
	INIT_STAGE_EXECUTE,   /* execve(2) of the agent */
	INIT_STAGE_MAX,
} InitStage;

typedef struct Report {
	ReportKind kind;
	InitStage stage;
	int32_t number;
} Report;

#define REPORT_SIZE 12u

void report_encode(const Report *report, uint8_t data[static REPORT_SIZE]);
/* Return: 0 or -EBADMSG. */
int report_decode(const void *data, size_t size, Report *ret);

/*
 * Descriptor numbers in init, after bwrap. bwrap itself runs with 0 = 1 = /dev/null and 2 = its error pipe.
 * INIT_FD_STDIN.. are open only for slots (slots.h) that the orders name; where one is the terminal,
 * INIT_FD_TERMINAL is used and the slot's own is not open.
 */
enum {
	INIT_FD_REPORT = 3,
	INIT_FD_ORDERS = 4,
	INIT_FD_TERMINAL = 5,
	INIT_FD_STDIN = 6,
	INIT_FD_STDOUT = 7,
	INIT_FD_STDERR = 8,
	INIT_FD_MAX = INIT_FD_STDIN + SLOTS_MAX,
};

typedef struct InitOrders {
	char **argv;
	char **environment;
	char *program;        /* absolute path inside */
	char *cwd;            /* absolute path inside */
	uint32_t descriptors; /* bit n: slot n is INIT_FD_STDIN + n; neither this nor terminals: closed */
	uint32_t terminals;   /* bit n: slot n (0, 1, 2) is the PTY, INIT_FD_TERMINAL */
	uint8_t further[SLOTS_FURTHER_MAX];
	uint32_t file_mode_mask;  /* umask(2) of the agent */
	bool background;          /* the terminal is another job's: not given to the agent before a resume */
	uint64_t ignored_signals; /* bit n - 1: the agent begins with signal n ignored */
	bool forbid_namespaces;   /* root's session: the filter refuses new user namespaces */
} InitOrders;

void init_orders_done(InitOrders *orders);
int init_orders_encode(const InitOrders *orders, uint8_t **ret_data, size_t *ret_size);
/* Return: 0, -EBADMSG, -ENOMEM. */
int init_orders_decode(const void *data, size_t size, InitOrders *ret);
