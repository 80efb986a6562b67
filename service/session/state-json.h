/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON (RFC 8259) as text: checked strictly, and taken apart without a copy. What an agent wrote comes here,
 * so nothing is built in memory from it: a tree of values would take a hundred times the size of the file.
 */

#include "dbus/base.h"

/* Deeper is refused: neither we nor what reads the file later should recurse as an agent likes. */
#define STATE_JSON_DEPTH_MAX 64u
/* Members of one object that are told apart; an object with more can be checked and copied, not merged. */
#define STATE_JSON_MEMBERS_MAX 65536u

/*
 * Is text one object, with nothing but white space around it: grammar, escapes, UTF-8, depth, and in no
 * object a key twice, however it is spelled? Two readers of such a text need not see the same. Return: 0,
 * -EBADMSG, -ENOMEM.
 */
int state_json_check(const char *text, size_t size);

typedef struct StateMember {
	const char *key, *value; /* into the text; the key with its quotes */
	size_t key_size, value_size;
	size_t position; /* in the object */
} StateMember;

typedef struct StateObject {
	StateMember *members; /* sorted by key */
	size_t n_members;
} StateObject;

void state_object_done(StateObject *object);
/*
 * The members of the object that text is. It must have passed state_json_check(), or be a value of one that
 * has. Return: 0, -E2BIG, -ENOMEM.
 */
int state_object_read(const char *text, size_t size, StateObject *ret);
/* Return: the member with this key (with its quotes, checked), however either spells it; or NULL. */
const StateMember *state_object_find(const StateObject *object, const char *key);

/* Are both, checked before, the same but for white space between tokens? */
bool state_json_same(const char *a, size_t a_size, const char *b, size_t b_size);

/* The string that a value of a checked text is, without escapes. Return: 0; -EBADMSG: no string, or a NUL in it; -ENOMEM. */
int state_json_string(const StateMember *member, char **ret);
