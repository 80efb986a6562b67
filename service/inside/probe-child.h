/* SPDX-License-Identifier: MIT */
#pragma once

/* The processes of probes: one for each, and those that a probe makes. */

#include "service/inside/probing.h"

typedef struct ProbeChild {
	const Probe *probe;
	pid_t pid;
	int pid_fd;
	Probing *shared; /* NULL: it could not be started */
} ProbeChild;

/* Start a probe in a process of its own. Failure is found at the end. */
void probe_child_start(ProbeChild *child, const Probe *probe, const Expectations *expectations);
/*
 * Wait for it until deadline_usec of CLOCK_MONOTONIC, then kill what is left of it. *ret_text: the verdict in
 * words, to be freed, NULL without memory. Return: the outcome; -ETIME when it did not come back; -ECHILD
 * when it died.
 */
int probe_child_finish(ProbeChild *child, uint64_t deadline_usec, char **ret_text);

/* Within a probe: do something in a process that ends, and wait for it. What it finds counts. */
void probing_apart(Probing *p, void (*function)(Probing *p, void *userdata), void *userdata);

/* A process with those namespaces, which ends at once. Return: 0, or -1 and errno. */
typedef enum ProbeClone { PROBE_CLONE, PROBE_CLONE3 } ProbeClone;
int probe_clone(ProbeClone call, uint64_t flags);

/* What a program had become when it ended. */
typedef struct ProbeIdentity {
	uid_t uid[4]; /* real, effective, saved, of the file system */
	gid_t gid[4];
	uint64_t permitted; /* capabilities */
} ProbeIdentity;

/* Run a program with nothing to read and nowhere to write. Return: 0 or a negative errno. */
int probe_execute(char *const argv[], ProbeIdentity *ret);
