/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/view.h"
#include "service/session/git-identity.h"

/*
 * Does the repository that git names for workspace know workspace as a worktree of its own? The file .git
 * there may be an agent's work, and could name the repository of any other project, which would then be
 * writable at the next launch. So the repository, where no agent of this workspace writes, must point back: a
 * linked worktree by the file gitdir in its directory (gitrepository-layout(5)), a submodule by
 * core.worktree.
 */
bool git_places_point_back(const PlanView *view, const GitIdentity *git, const char *workspace);
