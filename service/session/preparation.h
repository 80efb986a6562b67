/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the plan cannot know by itself, found out on this machine as the caller: the workspace as an open
 * directory, who the caller is to git, the resolver, the temp root, sockets to be covered.
 */

#include "dbus/base.h"
#include "service/plan/mounts.h"
#include "service/session/git-identity.h"
#include "service/session/placeholders.h"
#include "service/session/project-state.h"
#include "service/session/resolver.h"
#include "service/session/terminal-keys.h"
#include "service/session/view.h"

typedef struct Preparation {
	const SessionRequest *request; /* borrowed */
	const Profile *profile;
	View view;
	char *cwd;          /* of the agent, once its state is made */
	PlanNode workspace; /* no descriptor when it cannot be had: the plan says why */
	bool no_workspace;  /* an empty one: the arguments need no other, or there may be none here */
	GitPlaces places;   /* its repository; nothing where there is no git to use it */
	GitIdentity git;
	bool resolver;  /* names can resolve inside */
	Resolver names; /* of the host at the launch, and what the jail was given of it */
	Placeholders placeholders;
	ProjectState project;
	char **warnings;
} Preparation;

#define PREPARATION_INIT                                   \
	((Preparation){ .workspace = PLAN_NODE_INIT,       \
			.places = GIT_PLACES_INIT,         \
			.placeholders = PLACEHOLDERS_INIT, \
			.project = PROJECT_STATE_INIT })

/*
 * guard_fd (SPAWN_FD_GUARD) is borrowed until preparation_release(). Return: 0; a negative errno with
 * *ret_problem (may be NULL).
 */
int preparation_init(Preparation *preparation, const SessionRequest *request, const Profile *profile,
		     int guard_fd, char **ret_problem);
/* An agent's state must have a place, or what it learns would be lost with the jail. Return: 0 or -ENOMEM. */
int preparation_make_state(Preparation *preparation);
void preparation_done(Preparation *preparation);
/* Nothing of the jail runs any more: what was made on the host for its mounts goes. */
void preparation_release(Preparation *preparation);
/* Find the workspace's repository. Return: 0 or -ENOMEM. */
int preparation_find_git(Preparation *preparation);
/* What git said; it is taken. */
void preparation_set_git(Preparation *preparation, GitIdentity *identity);

/* What resolver_render() is to make of the host's text. Return: as that. */
typedef struct PreparationNetwork PreparationNetwork;
int preparation_read_resolver(const PreparationNetwork *network, Resolver *ret);
/* Do names resolve inside with it? */
bool preparation_resolves(const PreparationNetwork *network, const Resolver *resolver);

struct PreparationNetwork {
	bool jailed;
	uint32_t forwarder; /* D, or 0 */
	bool private_proc;
};

/*
 * Gather the rest and make the plan. Return: 0; a negative errno with *ret_error (a CS_ERROR_ name, static)
 * and *ret_problem. Warnings are in preparation->warnings and in the plan's.
 */
int preparation_plan(Preparation *preparation, const PreparationNetwork *network, const TerminalKeys *keys,
		     Plan *ret, const char **ret_error, char **ret_problem);
