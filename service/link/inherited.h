/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a child takes over from whoever forks it (fork(2)) and execve(2) keeps, beside limits, umask and
 * signals. The service forks a session in its caller's place: it reads these of the caller, and the session,
 * which is the caller's user by then, sets them. So the kernel decides what that user may have.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/link/pack.h"

#define INHERITED_BYTES_MAX 1024u /* of one value: a set of 8,192 processors */

typedef enum InheritedKind {
	INHERITED_PROCESSORS,
	INHERITED_SCHEDULING,
	INHERITED_DISK,
	INHERITED_MEMORY,
	INHERITED_PERSONALITY,
	INHERITED_SLACK,
	INHERITED_MAX,
} InheritedKind;

typedef struct InheritedValue {
	size_t n; /* 0: this kernel does not tell; then nothing is set */
	uint8_t bytes[INHERITED_BYTES_MAX];
} InheritedValue;

typedef struct Inherited {
	InheritedValue values[INHERITED_MAX];
} Inherited;

/* Whoever gives a pid holds the process, and asks afterwards whether it still runs. */
void inherited_read(pid_t pid, Inherited *ret);
/*
 * Make this process the heir. What the kernel refuses is left at what any process has, never at more, and is a
 * sentence of *warnings for the person. Return: 0 or -ENOMEM.
 */
int inherited_apply(const Inherited *inherited, char ***warnings);

void inherited_pack(const Inherited *inherited, PackWriter *w);
void inherited_unpack(PackReader *r, Inherited *ret);

#define MEMORY_NODES_MAX 1024u

typedef struct MemoryPolicy {
	uint32_t mode; /* set_mempolicy(2), with its flags */
	unsigned long nodes[MEMORY_NODES_MAX / (8 * sizeof(unsigned long))];
} MemoryPolicy;

/* Pure: a line of /proc/PID/numa_maps (numa(7)). Return: 0 or -EBADMSG. */
int memory_policy_parse(const char *line, MemoryPolicy *ret);
