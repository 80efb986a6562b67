/* SPDX-License-Identifier: MIT */
#pragma once

/* A launch that was allowed becomes a session: what launch.c and launch-start.c share. */

#include "service/daemon/caller.h"
#include "service/daemon/launch.h"
#include "service/daemon/request.h"
#include "service/daemon/row-list.h"
#include "service/daemon/session-group.h"
#include "service/plan/config.h"
#include "service/plan/profile.h"

struct Launch {
	Manager *manager;
	Client *client;
	const LaunchKind *kind;
	sd_bus_message *call; /* kept for its answer alone */
	LaunchRequest request;
	size_t weight; /* of request, see wire_weigh(); 0 when it is no longer held */
	Config config;
	CallerFacts facts;
	char *widened; /* what it asks for beyond the configuration, in words; NULL for nothing */
	const Profile *profile;
	AuthQuery *query;
	uint64_t turn; /* its place in the queue; 0 while nobody has allowed it */

	/* From here on there is a process. */
	Session *session;
	SessionGroup *group;
	int lifeline_fd;  /* the end that is returned */
	int listening_fd; /* closes when the session listens */
	sd_event_source *listening, *deadline;
	const char *refusal;  /* what to answer when the session ends without a word; NULL: that it died */
	const char *sentence; /* static; NULL: the general one */

	/* Of Verify and Doctor. */
	bool running; /* what checks was executed */
	bool probes;
	char *row_call; /* the option call: rows are sent as they come; NULL: in the answer alone */
	RowList rows;
	sd_bus_slot *probe; /* of polkit itself, for Doctor */
	const char *action; /* likewise: what polkit is to be asked about then */

	Launch *next;
};

/* From the spawn to the agent. */
#define LAUNCH_DEADLINE_USEC (60 * USEC_PER_SEC)

/* Its turn has come: look at the caller once more and start. May free the launch. */
void launch_continue(Launch *launch);
/* Spawn the session. Answers the call and frees the launch when that fails. */
void launch_start(Launch *launch);

/* Free what was asked for: bytes, descriptors, configuration. */
void launch_forget_request(Launch *launch);
/* Answer with an error (never empty), or as the kind does, and free. */
void launch_refuse(Launch *launch, const char *error, const char *sentence);
/* The first of these, whatever the kind. */
void launch_answer_error(Launch *launch, const char *error, const char *sentence);
void launch_free(Launch *launch);

/* The parts of launch_begin(). Return: as that. *ret is in the manager's list, and call is kept. */
int launch_new(Manager *manager, Client *client, sd_bus_message *call, const LaunchKind *kind, Launch **ret);
int launch_check_caller(Launch *launch, sd_bus_error *reterr);
int launch_check_limits(const Launch *launch, sd_bus_error *reterr);
int launch_check_pending(const Launch *launch, sd_bus_error *reterr);
int launch_check_sessions(const Launch *launch, sd_bus_error *reterr);
int launch_check_agent(Launch *launch, sd_bus_error *reterr);
/* Return: 1 for yes at once, 0 when the answer starts or refuses the launch later, a negative errno. */
int launch_ask(Launch *launch, sd_bus_message *call, const char *action);
