/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/mounts.h"
#include "service/plan/view.h"
#include "service/session/git-discovery.h"
#include "service/session/git-identity.h"

/*
 * Does the repository that was found for workspace know workspace as a worktree of its own? The file .git
 * there may be an agent's work, and could name the repository of any other project, which would then be
 * writable at the next launch. So what is bound must point back itself: a linked worktree by the file gitdir
 * of its directory in the repository's "worktrees" (gitrepository-layout(5)); a submodule, whose directory is
 * the whole repository, by core.worktree.
 */
bool git_places_point_back(const PlanView *view, const GitPlaces *places, const PlanNode *workspace);

/*
 * Pure. Does git set set-group-ID bits, for core.sharedRepository (git-config(1)), when its files are made
 * under the umask mask? With one that takes nothing from those who share, the bit that a directory inherits
 * is enough and git changes no mode.
 */
bool git_needs_set_id(const GitPlaces *places, const GitIdentity *git, mode_t mask);

/* The repository that the person's git accepts here, so that it does inside as well, or NULL. */
const char *git_places_trusted(const GitPlaces *places, const GitIdentity *git);

/*
 * The places of the repository that belong to the workspace though they lie elsewhere, into facts (borrowed
 * from places): only where the workspace is the top of what git means and the repository points back to it.
 * What does not work inside, and why, is a warning; home: the user's, canonical, or NULL. Return: 0 or
 * -ENOMEM.
 */
int git_places_choose(const PlanView *view, const GitPlaces *places, const GitIdentity *git,
		      const PlanNode *workspace, const char *home, PlanFacts *facts, char ***warnings);
