/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A record: what both files have in common (the base), after a line "SIDE DIGEST" that says which file was
 * written, and what, to come there. In a directory that no agent sees.
 */

#include "service/session/state-file.h"
#include "service/session/state-merge.h"

typedef enum StateSide {
	STATE_AGENT,
	STATE_HOST,
} StateSide;

typedef struct StateRecord {
	StateSide side;
	uint64_t digest;
} StateRecord;

uint64_t state_record_digest(const char *text, size_t size);
/*
 * ret holds the base; one that is damaged, or is to be JSON and is not, counts as unreadable. ret_record may be NULL. Return: 0 or a
 * negative errno.
 */
int state_record_read(int directory_fd, const char *name, uid_t uid, bool json, StateRecord *ret_record,
		      StateText *ret);
/* Return: 0 or a negative errno. */
int state_record_write(int directory_fd, const char *name, StateSide side, const StateVersion *written,
		       const StateVersion *base);
