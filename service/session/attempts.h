/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What was tried and refused, counted by protocol, address, port and program: a table that does not grow with
 * what an agent does, and from which nothing goes that came into it. The first ATTEMPTS_FIRST_MAX rows are for
 * whatever comes first. What is important (addresses of this machine, and where clouds give credentials) has places of
 * its own behind them: by port, then by address alone. The rest is counted by the /24 in which it lies, and what does
 * not fit even there in one row that stands for all such. So no count is lost, and no flood hides what came before it
 * or what matters.
 *
 * What came while the jail was checked, from nobody who was found, is most likely the check's: it has places of its own,
 * takes none away, and is in no total.
 */

#include "dbus/base.h"
#include "service/link/link.h"

#define ATTEMPTS_FIRST_MAX 512u
#define ATTEMPTS_IMPORTANT_MAX 192u
#define ATTEMPTS_ADDRESSES_MAX 64u
#define ATTEMPTS_NETWORKS_MAX 256u
#define ATTEMPTS_CHECKED_MAX 256u
#define ATTEMPTS_MAX                                                                                    \
	(ATTEMPTS_FIRST_MAX + ATTEMPTS_IMPORTANT_MAX + ATTEMPTS_ADDRESSES_MAX + ATTEMPTS_NETWORKS_MAX + \
	 ATTEMPTS_CHECKED_MAX)
/* Programs of one destination that are told apart; a program can give itself any name. */
#define ATTEMPTS_PROGRAMS_MAX 4u
#define ATTEMPTS_PROGRAM_MAX 16u /* with its NUL; TASK_COMM_LEN of the kernel */

typedef struct Attempt {
	uint8_t protocol; /* of IP */
	uint32_t address; /* host byte order */
	uint16_t port;
	char program[ATTEMPTS_PROGRAM_MAX]; /* any bytes; "" for nobody knows */
	bool checked;                       /* nobody was found, and the jail was being checked */
	bool important;                     /* it has a place where others have none */
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
/* All, seen or not, but for what came while the jail was checked. */
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
