/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What one session is told about the addresses that it may reach: one thing after another, each confirmed by
 * the session before the next is said. The service remembers which of the configuration's addresses the
 * session has taken; of one that was taken over from an earlier service it asks.
 */

#include "dbus/base.h"
#include "service/daemon/registry.h"
#include "service/plan/config.h"

/* The configuration's addresses at one time, shared by all who are told of them. */
typedef struct AllowList {
	unsigned n_ref;
	size_t n;
	char **texts, **comments; /* NULL-terminated */
} AllowList;

/* Those that do not come from a caller's environment. Return: NULL without memory. */
AllowList *allow_list_new(const Config *config);
AllowList *allow_list_ref(AllowList *list);
AllowList *allow_list_unref(AllowList *list);
DEFINE_CLEANUP(AllowList, allow_list_unref)

typedef struct SessionReach SessionReach;
typedef struct ReachJob ReachJob;

/*
 * The end of a job. result: 0; -ESRCH when the session has ended; the session's refusal, with its own words
 * in problem (or NULL); -ETIMEDOUT; -ECONNRESET and others when it does not keep to the protocol. cells: of
 * session_reach_list() alone, valid during the call. The job is gone.
 */
typedef void (*ReachFunction)(void *userdata, int result, const char *problem, const LinkCells *cells);

/* known: what the session was started with, NULL for one that was taken over. Return: 0 or -ENOMEM. */
int session_reach_new(Session *session, const Config *known);
/* The session has ended: every job with it, -ESRCH. Return: NULL. */
SessionReach *session_reach_free(SessionReach *reach);

/* Is that result of a job the session's own no to something, after it was told all the rest? Any other error
 * says that it did not listen to the end. */
bool session_reach_is_refusal(int result);
/* Is one of the configuration's addresses open in it, as far as we know, that list does not have? */
bool session_reach_has_more(const Session *session, const AllowList *list);
/* Has it what list has, as far as we know, and nothing else? */
bool session_reach_is(const Session *session, const AllowList *list);

/*
 * Jobs, done in their order, and begun by session_reach_begin(), so that nothing ends before whoever asks is
 * ready. A session that does not answer one of them is not asked the rest. Return: 0 with *ret, which is gone
 * when function is called; or a negative errno.
 */
/* First what list has not is closed, then what it has is opened. */
int session_reach_sync(Session *session, AllowList *list, ReachFunction function, void *userdata,
		       ReachJob **ret);
/* The session's own. usec 0: until it ends. */
int session_reach_allow(Session *session, const char *address, uint64_t usec, ReachFunction function,
			void *userdata, ReachJob **ret);
int session_reach_revoke(Session *session, const char *address, ReachFunction function, void *userdata,
			 ReachJob **ret);
/* LINK_TABLE_ALLOWED. */
int session_reach_list(Session *session, ReachFunction function, void *userdata, ReachJob **ret);

/* To be called after each of them. */
void session_reach_begin(Session *session);
/* function is not called any more; what was said stays said. */
void reach_job_cancel(ReachJob *job);
