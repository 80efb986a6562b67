/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One state file by its directory and name: looked at, read whole, replaced whole. The directory may be one
 * that an agent writes, so the name may be anything at any moment: a link, a FIFO, a directory, a file of a
 * gigabyte, a file under a lease (fcntl(2), F_SETLEASE). Nothing here follows a link, waits, or reads more
 * than STATE_BYTES_MAX and a header.
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "dbus/base.h"

/* Claude's file has some ten kilobytes, after years of histories some megabytes. */
#define STATE_BYTES_MAX (16u * 1024 * 1024)

/* What our own record has before such a text. */
#define STATE_HEADER_MAX 64u

/* Which bytes a name stood for; all zero: none. */
typedef struct StateStamp {
	uint64_t device, inode, size;
	int64_t modified_nsec, changed_nsec; /* CLOCK_REALTIME */
} StateStamp;

typedef enum StateCondition {
	STATE_ABSENT,
	STATE_VALID,
	STATE_UNREADABLE, /* a file of the user's that is not a JSON object, or too large, or unreadable to them */
	STATE_FOREIGN, /* a link, no regular file, or somebody else's */
} StateCondition;

typedef struct StateText {
	StateCondition condition;
	mode_t mode; /* st_mode of what is there, 0 for nothing */
	StateStamp stamp;
	char *text; /* of STATE_VALID alone; a NUL follows */
	size_t size;
} StateText;

void state_text_done(StateText *text);

bool state_stamp_equal(const StateStamp *a, const StateStamp *b);
/* Return: 0, with a zero stamp when there is nothing; a negative errno. */
int state_file_stamp(int directory_fd, const char *name, StateStamp *ret);
/*
 * Read and check. json: must it be a JSON object? Return: 0 with the condition; -EAGAIN when it changed
 * meanwhile or is under a lease: come again; another negative errno.
 */
int state_file_read(int directory_fd, const char *name, uid_t uid, bool json, StateText *ret);

/* The name of the file's successor while it is written, beside it; whoever writes holds the user's lock. */
#define STATE_SUCCESSOR_SUFFIX ".claude-sandbox"
/* And what it has while it is looked at once more before it is removed. */
#define STATE_REMOVED_SUFFIX ".claude-sandbox-removed"

/*
 * Put size bytes of text in the place of name, whatever that is: written beside it, renamed. durable: with
 * fsync(2), before and after. Return: 0 or a negative errno.
 */
int state_file_put(int directory_fd, const char *name, const char *text, size_t size, bool durable);
/*
 * The same, durable, with this mode, in the place of the one that is expected; if that is another one by now,
 * nothing changes. Return: 0; -EAGAIN when it is another one; another negative errno.
 */
int state_file_replace(int directory_fd, const char *name, mode_t mode, const char *text, size_t size,
		       const StateStamp *expected);
/*
 * Remove name if it is the one that is expected. Return: 0; -EAGAIN when it is another one, which stays; another
 * negative errno.
 */
int state_file_remove(int directory_fd, const char *name, const StateStamp *expected);
/* Remove what a killed writer left beside name; what one that removed had set aside comes back. */
void state_file_sweep(int directory_fd, const char *name);
