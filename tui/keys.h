/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one table of keys: what each does, where, and how Help and the hint line name it. Pure: term makes key
 * codes of what the terminal sends.
 */

#include "dbus/base.h"

/* A key: a character (Unicode), or one of these above all of them. */
typedef uint32_t KeyCode;
enum {
	KEYCODE_NONE = 0,
	KEYCODE_TAB = '\t',
	KEYCODE_ENTER = '\r',
	KEYCODE_ESCAPE = 0x1b,
	KEYCODE_BACKSPACE = 0x7f,
	KEYCODE_UP = 0x110000,
	KEYCODE_DOWN,
	KEYCODE_LEFT,
	KEYCODE_RIGHT,
	KEYCODE_PAGE_UP,
	KEYCODE_PAGE_DOWN,
	KEYCODE_HOME,
	KEYCODE_END,
	KEYCODE_INSERT,
	KEYCODE_DELETE,
	KEYCODE_BACKTAB,
	KEYCODE_F1,
	KEYCODE_F5 = KEYCODE_F1 + 4,
	KEYCODE_F10 = KEYCODE_F1 + 9,
};
#define KEYCODE_CONTROL(letter) ((KeyCode)(letter)&0x1f)

typedef enum Command {
	COMMAND_NONE,
	/* moving */
	COMMAND_UP,
	COMMAND_DOWN,
	COMMAND_PAGE_UP,
	COMMAND_PAGE_DOWN,
	COMMAND_FIRST,
	COMMAND_LAST,
	COMMAND_LEFT,
	COMMAND_RIGHT,
	/* views */
	COMMAND_VIEW_1,
	COMMAND_VIEW_9 = COMMAND_VIEW_1 + 8,
	COMMAND_NEXT_VIEW,
	COMMAND_PREVIOUS_VIEW,
	COMMAND_OPEN,
	COMMAND_BACK,
	COMMAND_PREVIOUS_SESSION,
	COMMAND_NEXT_SESSION,
	COMMAND_HELP,
	COMMAND_QUIT,
	/* tables */
	COMMAND_SEARCH,
	COMMAND_SEARCH_NEXT,
	COMMAND_SEARCH_PREVIOUS,
	COMMAND_FILTER,
	COMMAND_SORT,
	COMMAND_REVERSE,
	COMMAND_DETAILS,
	COMMAND_COPY, /* the selected row as plain text, all of it, without decoration */
	COMMAND_REFRESH,
	COMMAND_REDRAW,
	COMMAND_SUSPEND,
	COMMAND_MOUSE, /* give the mouse back to the terminal, and take it */
	/* what a view can do with its selected row */
	COMMAND_STOP,
	COMMAND_VERIFY,
	COMMAND_PROBES,
	COMMAND_ALL_SESSIONS,
	COMMAND_ALLOW,
	COMMAND_ADD,
	COMMAND_EDIT,
	COMMAND_REMOVE,
	COMMAND_UNDO,
	COMMAND_SAVE,
	COMMAND_DIFF,
	COMMAND_WHY,
	COMMAND_RUN,
	COMMAND_MAX,
} Command;

typedef enum KeyGroup {
	KEY_GROUP_ACTION,
	KEY_GROUP_VIEWS,
	KEY_GROUP_TABLE,
	KEY_GROUP_MOVE,
	KEY_GROUP_PROGRAM,
	KEY_GROUP_MAX,
} KeyGroup;

#define KEY_CODES_MOST 4

typedef struct KeyBinding {
	Command command;
	KeyGroup group;
	KeyCode codes[KEY_CODES_MOST];
	const char *names; /* as Help writes them: "Up k" */
	const char *help;  /* what it does, for Help */
	const char *hint;  /* one word for the hint line; NULL: not there */
	const char *views; /* names of the views where it holds, a space between them; NULL: everywhere */
} KeyBinding;

/* index from 0. Return: NULL at the end. In the order of Help and of the hint line. */
const KeyBinding *key_binding_at(size_t index);
/* What a key does in a view; "": in no view, as a whole row is. Return: COMMAND_NONE for nothing. */
Command key_command(KeyCode code, const char *view);
bool key_binding_is_for(const KeyBinding *binding, const char *view);
const char *key_group_title(KeyGroup group);
/* The first of a binding's names, for the hint line: "Enter". Return: length of it in names. */
size_t key_first_name(const KeyBinding *binding);
