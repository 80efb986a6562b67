/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What was tried and refused, counted by protocol, address, port and program: a table that does not grow with
 * what an agent does. Where it is full, the row that was longest without an attempt goes into one that stands
 * for all such, so that no count is lost.
 */

#include "dbus/base.h"
#include "service/link/link.h"

#define ATTEMPTS_MAX 1024u
#define ATTEMPTS_PROGRAM_MAX 16u /* with its NUL; TASK_COMM_LEN of the kernel */

typedef struct Attempt {
	uint8_t protocol; /* of IP */
	uint32_t address; /* host byte order */
	uint16_t port;
	char program[ATTEMPTS_PROGRAM_MAX]; /* any bytes; "" for nobody knows */
	bool checked;                       /* nobody was found, and the jail was being checked */
	int pid;                            /* of the last attempt, as seen inside; 0: not known. No key */
} Attempt;

typedef struct Attempts Attempts;

/* Return: NULL without memory. */
Attempts *attempts_new(void);
Attempts *attempts_free(Attempts *attempts);
DEFINE_CLEANUP(Attempts, attempts_free)

/* Count one at the time usec (since 1970). */
void attempts_add(Attempts *attempts, const Attempt *attempt, uint64_t usec);
/* How many were never seen, in all. They have a row too. */
void attempts_set_unseen(Attempts *attempts, uint64_t count, uint64_t usec);
/* All, seen or not. */
uint64_t attempts_total(const Attempts *attempts);

/* Why an address is denied, in words. */
typedef const char *(*AttemptsReason)(void *userdata, uint32_t address);
/*
 * Rows of LINK_TABLE_DENIED, the latest attempt first. Return: 0 or -ENOMEM; the caller frees rows and
 * columns.
 */
int attempts_rows(const Attempts *attempts, AttemptsReason reason, void *userdata, LinkRow **ret_rows,
		  uint32_t *ret_n);
/* At most max rows that were not given since they grew, as they are now. Return: as above. */
int attempts_news(Attempts *attempts, uint32_t max, AttemptsReason reason, void *userdata, LinkRow **ret_rows,
		  uint32_t *ret_n);
/* Would attempts_news() give something? */
bool attempts_have_news(const Attempts *attempts);
