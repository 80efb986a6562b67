/* SPDX-License-Identifier: MIT */
#pragma once

/* What a probe that runs has found, and what several probes need. For the files probes-*.c alone. */

#include "service/inside/probes.h"

#define PROBING_TEXT_MAX 600u

/* Shared with the process that waits for it: what was found before a probe's process died is found. */
struct Probing {
	const Expectations *expectations; /* NULL: nobody said where we are */
	unsigned n_blocked, n_escaped, n_unclear;
	char blocked[PROBING_TEXT_MAX], escaped[PROBING_TEXT_MAX], unclear[PROBING_TEXT_MAX];
	bool finished;
	bool stopped; /* a process of it was, by somebody else */
};

/* One way was refused, got through, or shows nothing. Several of each are told as far as there is room. */
void probing_blocked(Probing *p, const char *format, ...) _printf_(2, 3);
void probing_escaped(Probing *p, const char *format, ...) _printf_(2, 3);
void probing_unclear(Probing *p, const char *format, ...) _printf_(2, 3);
/* Refused, with that errno, positive or negative. */
void probing_refused(Probing *p, int error, const char *format, ...) _printf_(3, 4);
/* Is errno a want of something that agents can use up, or of time? It is no refusal, and shows nothing. */
bool probing_is_starved(int error);
/* By the answer of a system call: negative is refused, with errno; anything else got through. Return: result.
 */
long probing_result(Probing *p, long result, const char *format, ...) _printf_(3, 4);
/*
 * The same for a call that asks for rights before it looks at its arguments, which make no sense: an error of
 * these is what only the privileged see. refusals: errors that say no, ended by 0.
 */
long probing_rights(Probing *p, long result, const int *refusals, const char *format, ...) _printf_(4, 5);

/* Make the calls of a table, and judge each. how: before each name. */
void probing_calls(Probing *p, const ProbeCall *calls, const char *how);
/* What is not there is no way. */
void probing_files(Probing *p, const char *const *paths);
/* Do all that a probe says. */
void probing_attempt(Probing *p, const Probe *probe);

ProbeOutcome probing_outcome(const Probing *p);
/* "blocked: ...", one line. Return: text. */
const char *probing_text(const Probing *p, char *text, size_t size);

/* EPERM, EACCES, ENOSYS and EROFS, for probing_rights(). */
extern const int probing_refusals[];

/* The name of an errno, positive or negative. */
const char *probing_error(int error);

/*
 * probe-namespace.c: enter a new user namespace and more, flags being those of unshare(2), with a map of our
 * own uid and gid to root, or to themselves. A refusal is a finding. Return: whether we are there.
 */
typedef enum ProbeMapping {
	PROBE_UNMAPPED, /* all capabilities, no name */
	PROBE_AS_ROOT,
	PROBE_AS_SELF,
} ProbeMapping;
bool probing_unshare(Probing *p, unsigned long flags, ProbeMapping mapping);
/* Before a process of a probe can be traced by an agent beside it: what it knows of the outside is
 * overwritten in it. */
void probing_forget(Probing *p);

/* A new private directory in /tmp. path: room for PROBE_PLACE_MAX. Return: 0 or a negative errno. */
#define PROBE_PLACE_MAX 32u
int probe_place_make(char path[static PROBE_PLACE_MAX]);
/* With all that is in it. */
void probe_place_remove(const char *path);

/* Open, write text, close. Return: 0 or a negative errno. */
int probe_write(const char *path, const char *text);
/* The decimal number in a file. Return: 0 or a negative errno. */
int probe_number(const char *path, long *ret);
/* Has the kernel that file system without a module that a mount would load? (proc(5), filesystems) */
bool probe_has_file_system(const char *type);
/* The bait of that kind, or NULL. */
const ExpectedBait *probing_bait(const Probing *p, BaitKind kind);
/* The entry of the plan that decides what is seen at path, or NULL. */
const ExpectedEntry *probing_covering(const Probing *p, const char *path);
