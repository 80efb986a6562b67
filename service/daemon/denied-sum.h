/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session says was denied to it, summed up for the end: a session is a hostile peer, so the memory is
 * bounded whatever it says. Pure.
 */

#include "dbus/base.h"
#include "service/link/link.h"

#define DENIED_SUM_MAX 32u
#define DENIED_TEXT_MAX 120u

typedef struct DeniedItem {
	char *what; /* "tcp 10.0.0.1:22 (ssh)", the program where it is known */
	uint64_t count;
} DeniedItem;

typedef struct DeniedSum {
	DeniedItem items[DENIED_SUM_MAX]; /* those that were denied most often come first */
	size_t n;
	bool full; /* there were more, which are not counted */
} DeniedSum;

void denied_sum_done(DeniedSum *sum);
/* rows of LINK_DENIED: each with the count up to now of its destination, program and reason. What cannot be
 * read is left out. */
void denied_sum_add(DeniedSum *sum, const LinkRow *rows, size_t n_rows);
/*
 * Which destinations a session has named already, of those that its table keeps one by one; above DENIED_SEEN_MAX
 * it is not a session of ours.
 */
#define DENIED_SEEN_MAX 1024u
typedef struct DeniedKey {
	uint32_t address;
	uint16_t port;
	char protocol[10];
} DeniedKey;
typedef struct DeniedSeen {
	DeniedKey *keys;
	size_t n;
} DeniedSeen;

void denied_seen_done(DeniedSeen *seen);
/*
 * Is the row of LINK_DENIED about a destination that was not named before? What stands for several, what came
 * while the jail was checked, and what cannot be read is about none. Without memory it is new.
 */
bool denied_seen_add(DeniedSeen *seen, const LinkRow *row);
/* "tcp 10.0.0.1:22 (ssh)", fit to be shown. Return: to be freed, or NULL without memory. */
char *denied_text(const LinkRow *row);

/* Attempts in all; stops at UINT64_MAX. */
uint64_t denied_sum_count(const DeniedSum *sum);
