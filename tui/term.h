/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The terminal, by curses: taken, left for a while, given back; keys in, a canvas out. The one file that
 * knows curses.
 */

#include "tui/canvas.h"
#include "tui/keys.h"

typedef struct Term Term;

typedef enum TermMouse {
	TERM_MOUSE_NONE,
	TERM_MOUSE_PRESS, /* the first button */
	TERM_MOUSE_UP,    /* the wheel */
	TERM_MOUSE_DOWN,
} TermMouse;

typedef struct TermInput {
	KeyCode code; /* KEYCODE_NONE: of the mouse, or nothing that counts */
	bool pasted;  /* it was not typed */
	TermMouse mouse;
	size_t y, x;
} TermInput;

/*
 * What the environment says of characters and of terminals is read here, before anything else: the C
 * library's locale becomes C.UTF-8 or C, and variables by which a stranger could choose what is sent to the
 * terminal are dropped.
 */
bool term_prepare(void);

/*
 * Take the terminal of standard input and output. colour: false for a picture without colours. Return: 0, or
 * a negative errno with *ret_problem, a sentence.
 */
int term_new(bool colour, Term **ret, char **ret_problem);
Term *term_free(Term *term);
DEFINE_CLEANUP(Term, term_free)

/* As it was, until term_return(): for the shell, or for a question on the terminal. */
void term_leave(Term *term);
void term_return(Term *term);

/* The size now. */
void term_size(Term *term, size_t *ret_width, size_t *ret_height);
/* A picture of the terminal's size. cursor: where it stands; SIZE_MAX: it is not seen. */
void term_show(Term *term, const Canvas *canvas, size_t cursor_y, size_t cursor_x);
/* Everything is sent once more with the next picture. */
void term_forget(Term *term);
/* The next key. Return: false when there is none. */
bool term_input(Term *term, TermInput *ret);
void term_mouse(Term *term, bool on);
/* What cannot be done is said so. */
void term_beep(Term *term);
