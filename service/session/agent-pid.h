/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agent's PID inside the jail. Left alone, every agent is process 2 of its jail, and two sessions that share a
 * directory take each other's PID files for their own. So the agent gets a number that no other process of this
 * machine has at that moment: the one that the jail's init has outside.
 *
 * Init cannot choose it: bwrap leaves init in a user namespace below the one that owns the PID namespace. A
 * child of the session can, before init is told to start the agent.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"

typedef struct AgentPid AgentPid;

/* error: 0, or a positive errno: the agent gets the next number of its PID namespace. */
typedef void (*AgentPidDone)(void *userdata, int error);

/*
 * Make number the PID of the next process in the PID namespace of leader, the jail's init; leader_fd is its
 * pidfd. done comes from the loop, unless agent_pid_free() comes first. Return: 0 or a negative errno.
 */
int agent_pid_start(sd_event *event, pid_t leader, int leader_fd, pid_t number, AgentPidDone done,
		    void *userdata, AgentPid **ret);
AgentPid *agent_pid_free(AgentPid *agent);
DEFINE_CLEANUP(AgentPid, agent_pid_free)
