/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The mounts of this process, as the kernel says them (proc_pid_mountinfo(5)), held against the plan: each
 * entry is looked at where its path leads, and no mount stands beside them.
 */

#include "service/inside/battery.h"

typedef struct Mount {
	uint64_t id, parent;
	unsigned major, minor; /* of the file system */
	const char *root;      /* what of it is mounted */
	const char *place;
	size_t place_length;
	const char *type;    /* of the file system */
	unsigned long flags; /* MS_ of mount(2), of the mount: all that a remount must name to keep it */
} Mount;

typedef struct Mounts {
	char *text; /* what the rows borrow */
	Mount *rows;
	size_t n;
} Mounts;

void mounts_done(Mounts *mounts);
/* Take a text in that format apart; it is copied. Return: 0, -EBADMSG, -ENOMEM. */
int mounts_parse(const char *text, Mounts *ret);
/* Of this process. */
int mounts_read(Mounts *ret);
/* The last one at place, or NULL. */
const Mount *mounts_at(const Mounts *mounts, const char *place);
size_t mounts_count(const Mounts *mounts, const char *place);
const Mount *mounts_by_id(const Mounts *mounts, uint64_t id);

/* The row that judges an entry; every entry but a caller's descriptor has one. "03", ... */
const char *mounts_row(const Expectations *e, const ExpectedEntry *entry);
/*
 * Did an agent make what is at path? In a session that runs, everything that lies in its private directories
 * themselves, and not on something mounted in them.
 */
bool mounts_is_agents(const Expectations *e, const char *path);
/* In a check: judge the entries of that row, each in full; how many there are is said. */
void mounts_judge(Battery *b, const char *row);
/* In a check: mounts that are no entry's and no mount of the host's below one. */
void mounts_judge_others(Battery *b);
