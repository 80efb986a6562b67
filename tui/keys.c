/* SPDX-License-Identifier: MIT */
#include "tui/keys.h"

#include <assert.h>

#define OF_SESSION "exposure routes denied verify"
#define TABLES "sessions exposure routes denied allow-ip policy verify doctor help"

static const KeyBinding bindings[] = {
	/* What a view can do with its rows comes first: the hint line has room for the first ones only. */
	{ COMMAND_OPEN,
	  KEY_GROUP_ACTION,
	  { KEYCODE_ENTER },
	  "Enter",
	  "open: what this agent sees and may change",
	  "open",
	  "sessions" },
	{ COMMAND_OPEN,
	  KEY_GROUP_ACTION,
	  { KEYCODE_ENTER },
	  "Enter",
	  "the whole row",
	  "show",
	  "exposure routes denied allow-ip policy help" },
	{ COMMAND_OPEN,
	  KEY_GROUP_ACTION,
	  { KEYCODE_ENTER },
	  "Enter",
	  "the whole row, with its fix",
	  "show",
	  "verify doctor" },
	{ COMMAND_ALLOW,
	  KEY_GROUP_ACTION,
	  { 'a' },
	  "a",
	  "allow the address: for this session, for an hour, or always",
	  "allow",
	  "denied" },
	{ COMMAND_ADD, KEY_GROUP_ACTION, { 'a' }, "a", "add an address", "add", "allow-ip" },
	{ COMMAND_EDIT, KEY_GROUP_ACTION, { 'e' }, "e", "edit the comment", "edit", "allow-ip" },
	{ COMMAND_REMOVE,
	  KEY_GROUP_ACTION,
	  { 'x', KEYCODE_DELETE },
	  "x Del",
	  "take the address back",
	  "remove",
	  "allow-ip" },
	{ COMMAND_UNDO,
	  KEY_GROUP_ACTION,
	  { 'u' },
	  "u",
	  "undo the last change that is not saved",
	  "undo",
	  "allow-ip" },
	{ COMMAND_SAVE, KEY_GROUP_ACTION, { 's' }, "s", "save the changes", "save", "allow-ip" },
	{ COMMAND_RUN, KEY_GROUP_ACTION, { 'r' }, "r", "run the checks", "run", "verify doctor" },
	{ COMMAND_PROBES,
	  KEY_GROUP_ACTION,
	  { 'p' },
	  "p",
	  "run the checks and try to break out",
	  "probes",
	  "verify" },
	{ COMMAND_STOP,
	  KEY_GROUP_ACTION,
	  { 'x', KEYCODE_DELETE },
	  "x Del",
	  "stop the session",
	  "stop",
	  "sessions" },
	{ COMMAND_VERIFY,
	  KEY_GROUP_ACTION,
	  { 'v' },
	  "v",
	  "check the session's jail from inside",
	  "verify",
	  "sessions" },
	{ COMMAND_ALL_SESSIONS,
	  KEY_GROUP_ACTION,
	  { 'A' },
	  "A",
	  "everybody's sessions, with an administrator's password, or only your own",
	  "all",
	  "sessions" },
	{ COMMAND_DIFF,
	  KEY_GROUP_ACTION,
	  { '=' },
	  "=",
	  "compare with another session",
	  "compare",
	  "exposure" },

	{ COMMAND_WHY,
	  KEY_GROUP_ACTION,
	  { 'w' },
	  "w",
	  "why: which row decides about a path or an address",
	  "why",
	  "exposure routes" },
	{ COMMAND_ALLOW,
	  KEY_GROUP_ACTION,
	  { 'a' },
	  "a",
	  "allow an address that is refused: for this session, for an hour, or always",
	  "allow",
	  "routes" },
	{ COMMAND_ALL_SESSIONS,
	  KEY_GROUP_ACTION,
	  { 'A' },
	  "A",
	  "the attempts of all sessions, or of the open one",
	  "all",
	  "denied" },

	{ COMMAND_HELP, KEY_GROUP_VIEWS, { '?', KEYCODE_F1 }, "? F1", "this help", "help", NULL },
	{ COMMAND_SEARCH,
	  KEY_GROUP_TABLE,
	  { '/' },
	  "/",
	  "search, and highlight what is found",
	  "search",
	  TABLES },
	{ COMMAND_SEARCH_NEXT, KEY_GROUP_TABLE, { 'n' }, "n", "the next one", NULL, TABLES },
	{ COMMAND_SEARCH_PREVIOUS, KEY_GROUP_TABLE, { 'N' }, "N", "the one before", NULL, TABLES },
	{ COMMAND_FILTER,
	  KEY_GROUP_TABLE,
	  { 'f', '&' },
	  "f &",
	  "show only rows with some text (empty: all)",
	  "filter",
	  TABLES },
	{ COMMAND_SORT, KEY_GROUP_TABLE, { 'o' }, "o", "order by the next column", "order", TABLES },
	{ COMMAND_REVERSE, KEY_GROUP_TABLE, { 'O' }, "O", "turn the order round", NULL, TABLES },
	{ COMMAND_DETAILS,
	  KEY_GROUP_TABLE,
	  { 'd' },
	  "d",
	  "the pane with the selected row, or not",
	  "details",
	  TABLES },
	{ COMMAND_COPY,
	  KEY_GROUP_TABLE,
	  { 'c' },
	  "c",
	  "the row as plain text, to be copied with the mouse",
	  NULL,
	  TABLES },

	{ COMMAND_UP, KEY_GROUP_MOVE, { KEYCODE_UP, 'k', KEYCODE_CONTROL('p') }, "Up k", "up", NULL, NULL },
	{ COMMAND_DOWN,
	  KEY_GROUP_MOVE,
	  { KEYCODE_DOWN, 'j', KEYCODE_CONTROL('n') },
	  "Down j",
	  "down",
	  NULL,
	  NULL },
	{ COMMAND_PAGE_UP,
	  KEY_GROUP_MOVE,
	  { KEYCODE_PAGE_UP, KEYCODE_CONTROL('b') },
	  "PgUp ^B",
	  "a page up",
	  NULL,
	  NULL },
	{ COMMAND_PAGE_DOWN,
	  KEY_GROUP_MOVE,
	  { KEYCODE_PAGE_DOWN, KEYCODE_CONTROL('f'), ' ' },
	  "PgDn ^F Space",
	  "a page down",
	  NULL,
	  NULL },
	{ COMMAND_FIRST, KEY_GROUP_MOVE, { KEYCODE_HOME, 'g' }, "Home g", "to the first", NULL, NULL },
	{ COMMAND_LAST, KEY_GROUP_MOVE, { KEYCODE_END, 'G' }, "End G", "to the last", NULL, NULL },

	{ COMMAND_VIEW_1, KEY_GROUP_VIEWS, { '1' }, "1 to 9", "the view of that number", NULL, NULL },
	{ COMMAND_VIEW_1 + 1, KEY_GROUP_VIEWS, { '2' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_1 + 2, KEY_GROUP_VIEWS, { '3' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_1 + 3, KEY_GROUP_VIEWS, { '4' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_1 + 4, KEY_GROUP_VIEWS, { '5' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_1 + 5, KEY_GROUP_VIEWS, { '6' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_1 + 6, KEY_GROUP_VIEWS, { '7' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_1 + 7, KEY_GROUP_VIEWS, { '8' }, NULL, NULL, NULL, NULL },
	{ COMMAND_VIEW_9, KEY_GROUP_VIEWS, { '9' }, NULL, NULL, NULL, NULL },
	{ COMMAND_NEXT_VIEW,
	  KEY_GROUP_VIEWS,
	  { KEYCODE_TAB, KEYCODE_RIGHT, 'l' },
	  "Tab Right l",
	  "the next view",
	  NULL,
	  NULL },
	{ COMMAND_PREVIOUS_VIEW,
	  KEY_GROUP_VIEWS,
	  { KEYCODE_BACKTAB, KEYCODE_LEFT, 'h' },
	  "Shift-Tab Left h",
	  "the view before",
	  NULL,
	  NULL },
	{ COMMAND_NEXT_SESSION, KEY_GROUP_VIEWS, { ']' }, "]", "the next session", NULL, OF_SESSION },
	{ COMMAND_PREVIOUS_SESSION, KEY_GROUP_VIEWS, { '[' }, "[", "the session before", NULL, OF_SESSION },
	{ COMMAND_BACK,
	  KEY_GROUP_VIEWS,
	  { KEYCODE_ESCAPE, KEYCODE_BACKSPACE },
	  "Esc Backspace",
	  "back: drop the search, then the filter, then to where you came from",
	  NULL,
	  NULL },

	{ COMMAND_REFRESH,
	  KEY_GROUP_PROGRAM,
	  { 'R', KEYCODE_F5, KEYCODE_CONTROL('r') },
	  "R F5",
	  "ask the service for everything again; start it where it has gone",
	  NULL,
	  NULL },
	{ COMMAND_REDRAW,
	  KEY_GROUP_PROGRAM,
	  { KEYCODE_CONTROL('l') },
	  "^L",
	  "draw the screen again",
	  NULL,
	  NULL },
	{ COMMAND_MOUSE,
	  KEY_GROUP_PROGRAM,
	  { 'm' },
	  "m",
	  "leave the mouse to the terminal, or take it",
	  NULL,
	  NULL },
	{ COMMAND_SUSPEND,
	  KEY_GROUP_PROGRAM,
	  { KEYCODE_CONTROL('z') },
	  "^Z",
	  "back to the shell; fg returns",
	  NULL,
	  NULL },
	{ COMMAND_QUIT,
	  KEY_GROUP_PROGRAM,
	  { 'q', KEYCODE_F10, KEYCODE_CONTROL('c') },
	  "q F10 ^C",
	  "quit",
	  "quit",
	  NULL },
};

static const char *const titles[] = {
	[KEY_GROUP_ACTION] = "What you can do", [KEY_GROUP_VIEWS] = "Views",
	[KEY_GROUP_TABLE] = "Tables",           [KEY_GROUP_MOVE] = "Moving",
	[KEY_GROUP_PROGRAM] = "The program",
};

const KeyBinding *key_binding_at(size_t index)
{
	return index < ELEMENTSOF(bindings) ? &bindings[index] : NULL;
}

/* Is name one of the words of list? */
static bool is_among(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; n > 0 && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
			return true;
	return false;
}

bool key_binding_is_for(const KeyBinding *binding, const char *view)
{
	return !binding->views || is_among(binding->views, view);
}

Command key_command(KeyCode code, const char *view)
{
	for (size_t i = 0; code != KEYCODE_NONE && i < ELEMENTSOF(bindings); i++)
		for (size_t k = 0; k < KEY_CODES_MOST && key_binding_is_for(&bindings[i], view); k++)
			if (bindings[i].codes[k] == code)
				return bindings[i].command;
	return COMMAND_NONE;
}

const char *key_group_title(KeyGroup group)
{
	assert(group < KEY_GROUP_MAX);
	return titles[group];
}

size_t key_first_name(const KeyBinding *binding)
{
	return strcspn(binding->names ?: "", " ");
}
