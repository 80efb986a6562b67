/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which modes of the person's terminal the agent has changed, as seen in its output, and the bytes that
 * change exactly those back. A pure parser: bounded state, any bytes, any chunk borders.
 *
 * Sequences: ECMA-48 (control sequences and strings), xterm's ctlseqs (private modes, DECKPAM,
 * modifyOtherKeys, DECSTR, RIS) and the kitty keyboard protocol (push, pop, set; one stack for each screen).
 */

#include "dbus/base.h"

#define MODES_PARAMETERS_MAX 32u
#define MODES_KEYBOARD_DEPTH_MAX 8u /* kitty and others drop the oldest entry of a longer stack */
#define MODES_TEXT_MAX 1024u        /* enough for any answer of modes_undo() and modes_redo() */

typedef enum ModesState {
	MODES_GROUND,
	MODES_ESCAPE,
	MODES_CONTROL, /* after CSI */
	MODES_STRING,  /* after OSC, DCS, SOS, PM or APC */
	MODES_STRING_ESCAPE,
} ModesState;

typedef struct ModesKeyboard {
	uint32_t flags[MODES_KEYBOARD_DEPTH_MAX];
	uint32_t depth; /* entries that the agent pushed and did not pop */
	uint32_t base;  /* flags set without a push, 0 when reset */
} ModesKeyboard;

typedef struct Modes {
	ModesState state;
	char marker;       /* first byte of a control sequence when it is one of < = > ? */
	char intermediate; /* last byte of 0x20-0x2f, or 0 */
	uint32_t parameters[MODES_PARAMETERS_MAX];
	uint32_t n_parameters; /* complete ones; the one being read is at this index */

	uint64_t changed;   /* bit i: row i of the table of private modes is not as it was */
	uint32_t alternate; /* 47, 1047 or 1049 while the alternate screen shows, else 0 */
	bool keypad;
	uint32_t other_keys;        /* value of modifyOtherKeys, 0 as it was */
	ModesKeyboard keyboards[2]; /* main screen, alternate screen */
} Modes;

#define MODES_INIT ((Modes){ .state = MODES_GROUND })

/* Look at n bytes of the agent's output. */
void modes_feed(Modes *modes, const void *bytes, size_t n);
/*
 * Write what gives the terminal its own modes back; nothing when nothing was changed. The record stays, for
 * modes_redo(). Return: bytes written, at most MODES_TEXT_MAX.
 */
size_t modes_undo(const Modes *modes, char text[static MODES_TEXT_MAX]);
/* Write what sets the agent's modes again after modes_undo(). Return: bytes written. */
size_t modes_redo(const Modes *modes, char text[static MODES_TEXT_MAX]);
