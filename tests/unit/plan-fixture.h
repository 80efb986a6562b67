/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A request, facts and an invented machine on which every entry of the plan has something to do. "~" at the
 * start of a path or at the start of a value is the home.
 */

#include "service/plan/mounts.h"
#include "tests/unit/fake-view.h"

typedef struct PlanFixture {
	const char *home, *canonical_home;
	uid_t uid;
	FakeNode *nodes, *more;
	FakeView fake;
	PlanView view;
	SessionRequest request;
	PlanFacts facts;
	PlanNode held[4]; /* of the facts */
	char **sockets;
	Plan plan;
	const char *error;
	char *problem;
	char **owned; /* every string that was made */
} PlanFixture;

/* who: "root", "user", or "moved": a user whose /home/user is /var/home/user by a link of /home. */
void plan_fixture_init(PlanFixture *fixture, const char *who, const char *agent);
void plan_fixture_done(PlanFixture *fixture);
/* Put nodes over those of the machine; a mode of 0 takes one away. Once, before plan_fixture_make(). */
void plan_fixture_add(PlanFixture *fixture, const FakeNode *more);
/* The caller's own install of that agent, a program at its usual place, unless the machine has it. */
void plan_fixture_install(PlanFixture *fixture, const char *agent);
/* One more value of the configuration, from line 7 of its file. */
void plan_fixture_configure(PlanFixture *fixture, ConfigKey key, const char *text);
/* The caller's PATH, where "~" at the start of a part is the home; NULL: none. */
void plan_fixture_set_path(PlanFixture *fixture, const char *path);
/* "NAME=VALUE", after those that are there. */
void plan_fixture_setenv(PlanFixture *fixture, const char *variable);
/* Return: what plan_make() does; twice in a row is fine. */
int plan_fixture_make(PlanFixture *fixture);
/* Return: the entry at destination (the last one), or NULL. */
const Entry *plan_fixture_entry(const PlanFixture *fixture, const char *destination);
/* What is at path, held for the facts; at most as often as the fixture has places. */
const PlanNode *plan_fixture_node(PlanFixture *fixture, const char *path);
bool plan_fixture_warns(const PlanFixture *fixture, const char *part);
/* How many warnings, but for the one of the socket that the invented workspace has. */
size_t plan_fixture_warnings(const PlanFixture *fixture);
/* "~" put in. Owned by the fixture. */
const char *plan_fixture_path(PlanFixture *fixture, const char *path);
