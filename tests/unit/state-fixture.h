/* SPDX-License-Identifier: MIT */
#pragma once

/* A home of a test's own, with an agent's directory in it, and what is in its files. */

#include "service/session/state-files.h"
#include "service/session/view.h"

typedef struct StateFixture {
	char *root, *home;
	View view;
	StateFiles files;
	char **warnings;
} StateFixture;

#define HOST_FILE ".claude.json"
#define AGENT_FILE ".claude/.claude.json"
#define RECORD ".local/state/claude-sandbox"
#define PROJECT RECORD "/projects/k"

int state_fixture_make(void **state);
int state_fixture_remove(void **state);
/*
 * Keep the files of that agent: all of them, between the home and PROJECT; or the one in the home alone, between it
 * and ~/.claude, with which a fixture begins.
 */
void state_fixture_list(StateFixture *f, const char *agent, bool home_file_alone);

/* All below take names below the home. */
char *state_path(const StateFixture *f, const char *name);
void state_put(const StateFixture *f, const char *name, const char *text);
/* Return: the text, to be freed; NULL when there is no regular file. */
char *state_get(const StateFixture *f, const char *name);
void state_holds(const StateFixture *f, const char *name, const char *text);
/* Names in a directory, sorted and separated by spaces. */
void state_lists(const StateFixture *f, const char *directory, const char *names);

/* Add key to the object in directory/.claude.json, as Claude does: lock, read, write beside, rename. Return:
 * false while another holds the lock. */
bool state_save(const StateFixture *f, const char *directory, const char *key);
