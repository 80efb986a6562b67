/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What hides a place from the agent is a mount, and a mount lies on what is there, not on its name. No agent
 * can move that (anchors.h), but when somebody outside moves that away, removes it, or renames another thing
 * over it, the mount goes along or goes for good (mount_namespaces(7), "Restrictions on mount namespaces";
 * since Linux 3.18 a mount point of another namespace may be removed), and what is put in its place is in
 * sight of the agent.
 *
 * So the directories that hold such places are watched. At every event of a watched name, and at every change
 * of the jail's mounts, each place is looked at through the jail's root: it must still show what it showed at
 * the start. Where its owner replaced a file or a directory, the mask is put on again (mask-renew.h). Where
 * that cannot be done, or agents write there, it is told once and the session has to end.
 *
 * The directories that the entry-point guard keeps in place are watched in the same way: they must be what
 * their names lead to, inside and outside.
 *
 * Before the agent starts every bind is looked at as well: it must be seen where the plan has it.
 *
 * Covered listening sockets are not among these places: their programs replace them at every restart.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "service/plan/mounts.h"

typedef struct MaskWatch MaskWatch;

/* entry: what no longer lies at its place. Called once at most; it may free the watch. */
typedef void (*MaskWatchGone)(void *userdata, const Entry *entry);

/*
 * Watch, from before the jail is made. plan must outlive the watch. What cannot be watched is appended to
 * *warnings, one line. Return: 0; -ENOMEM; another negative errno of sd-event.
 */
int mask_watch_new(sd_event *event, const Plan *plan, MaskWatchGone gone, void *userdata, char ***warnings,
		   MaskWatch **ret);
/* For a process that is about to end: closing what inotify(7) watches waits for the kernel, often 10 ms. */
MaskWatch *mask_watch_free(MaskWatch *watch);
DEFINE_CLEANUP(MaskWatch, mask_watch_free)

/*
 * The jail is made: hold its root and its table of mounts. leader: its init, whose pid is known to be right.
 * Return: 0; a negative errno when it cannot be looked into (-ESRCH: it ends).
 */
int mask_watch_enter(MaskWatch *watch, pid_t leader);

/*
 * After mask_watch_enter(), before the agent starts: are all mounts where the plan has them? Return: one that
 * is not, or NULL.
 */
const Entry *mask_watch_first(MaskWatch *watch);

/* After mask_watch_enter(): look for the first time, and from now on at every event. Return: 0 or a negative
 * errno. */
int mask_watch_start(MaskWatch *watch);

/*
 * Call changed too when what the absolute path names is changed, replaced, made or removed; again for each
 * path, with the same function. Best effort. Until mask_watch_stop().
 */
typedef void (*MaskWatchBeside)(void *userdata);
void mask_watch_beside(MaskWatch *watch, const char *path, MaskWatchBeside changed);

/* Nothing is looked at any more, or ever; what is held stays held until mask_watch_free(). */
void mask_watch_stop(MaskWatch *watch);
