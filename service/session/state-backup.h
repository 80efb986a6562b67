/* SPDX-License-Identifier: MIT */
#pragma once

/* What an agent's file had and lost, in its directory's "backups", where Claude keeps its own. */

#include "service/session/state-file.h"

/* Of each kind; older ones go. */
#define STATE_BACKUPS_MAX 10u

/* Keep loser as backups/NAME.replaced.NANOSECONDS. Return: 0 or a negative errno. */
int state_backup_text(int agent_fd, const char *name, const StateText *loser);
/* Move whatever name is, unread, to backups/NAME.unreadable.NANOSECONDS. Return: 0 or a negative errno. */
int state_backup_move(int agent_fd, const char *name);
