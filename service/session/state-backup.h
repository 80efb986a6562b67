/* SPDX-License-Identifier: MIT */
#pragma once

/* What one of two files had and lost, in "backups" of the directory that the agent has, where Claude keeps its own. */

#include "service/session/state-file.h"

/* Of each kind; older ones go. */
#define STATE_BACKUPS_MAX 10u

/* Keep loser as backups/NAME.replaced.NANOSECONDS. Return: 0 or a negative errno. */
int state_backup_text(int agent_fd, const char *name, const StateText *loser);
/* Move what name in directory_fd is, unread, to backups/NAME.unreadable.NANOSECONDS. Return: 0 or a negative errno. */
int state_backup_move(int agent_fd, int directory_fd, const char *name);
