/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The ledger: reads what comes out of the tun deny0, writes down who tried to reach what, answers at once
 * that it is prohibited, and forwards nothing. Denial does not depend on it.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/link/link.h"
#include "service/session/network.h"

typedef struct Ledger Ledger;

/* There is something that ledger_news() would give. At most a few times a second. */
typedef void (*LedgerFunction)(void *userdata);

/*
 * network is borrowed, locked and jailed; what its self-test left is thrown away. Return: 0, also where there
 * is no device (*ret is NULL then); a negative errno.
 */
int ledger_new(sd_event *event, const Network *network, LedgerFunction function, void *userdata,
	       Ledger **ret);
/* All functions but this take NULL for a ledger that knows of nothing. */
Ledger *ledger_free(Ledger *ledger);
DEFINE_CLEANUP(Ledger, ledger_free)

/* Programs are looked for below this process from now on. */
void ledger_enter(Ledger *ledger, pid_t leader);
/*
 * A check of the jail begins, or has ended: what nobody below that process was found to send meanwhile is most
 * likely the check's own. It has rows of its own and is in no total.
 */
void ledger_check(Ledger *ledger, bool begins);
/* Note what still waits, as far as it is not endless, and read no more: the network may go. What was noted
 * stays. */
void ledger_stop(Ledger *ledger);

/* How many attempts there were. */
uint64_t ledger_total(const Ledger *ledger);
/* All rows of LINK_TABLE_DENIED; the news among them, at most LINK_SERVER_DENIED_MAX. Return: 0 or -ENOMEM.
 */
int ledger_rows(Ledger *ledger, LinkRow **ret_rows, uint32_t *ret_n);
int ledger_news(Ledger *ledger, LinkRow **ret_rows, uint32_t *ret_n);
