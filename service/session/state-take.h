/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/session/state-files.h"

/*
 * Inside, the name of the person's file is a link to the agents'. A program that saves by renaming puts a
 * file in the place of the link; take that over into the agents' file, as if it had been written through the
 * link, and put the link back. home_fd: the home as the jail has it, which is hostile: nothing in it is
 * followed, and what is not a file of a sensible size stays where it is.
 *
 * Under the user's lock, which is waited for; run it in a process of its own, and state_sync() after it.
 * Nothing is lost by a death between: first the agents' file is written, then the link comes back. Return: 1
 * when something was taken, 0 when there was nothing; -EAGAIN: come again; another negative errno.
 */
int state_take(const StateFiles *files, int home_fd, char ***warnings);
