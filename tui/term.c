/* SPDX-License-Identifier: MIT */
#include "tui/term.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <wchar.h>

#include "dbus/print.h"
#include "tui/guardian.h"
#include "tui/looks.h"

/* Last: it makes macros of common words. */
#include <term.h>
#undef lines
#undef columns

#define ESCAPE_MSEC 25         /* how long the rest of a key's sequence may take */
#define PASTE_ON "\033[?2004h" /* xterm's control sequences, "Bracketed Paste Mode" */
#define PASTE_OFF "\033[?2004l"
#define MOUSE_OFF "\033[?1006l\033[?1002l\033[?1000l"

/* Beyond curses' own keys. */
#define KEY_PASTE_BEGIN (KEY_MAX + 1)
#define KEY_PASTE_END (KEY_MAX + 2)

struct Term {
	SCREEN *curses;
	struct termios natural;
	Guardian guardian;
	char *farewell;
	attr_t attributes[STYLE_MAX];
	short pairs[STYLE_MAX], match_pair;
	attr_t match;
	Canvas last; /* what is on the terminal */
	bool forgotten, pasting, mouse, left;
};

bool term_prepare(void)
{
	/* A planted description of a terminal, or locale, could send anything, or read any file. */
	static const char *const variables[] = {
		"TERMINFO",
		"TERMINFO_DIRS",
		"TERMCAP",
		"TERMPATH",
		"LOCPATH",
		"LINES",
		"COLUMNS",
		"ESCDELAY",
		"NCURSES_NO_PADDING",
		"NCURSES_NO_SETBUF",
		"NCURSES_NO_UTF8_ACS",
		"NCURSES_NO_HARD_TABS",
		"NCURSES_NO_MAGIC_COOKIE",
		"NCURSES_ASSUMED_COLORS",
		"NCURSES_CONSOLE2",
		"NCURSES_GPM_TERMS",
		"NCURSES_TRACE",
	};
	bool utf8 = print_style(stdout).utf8;

	for (size_t i = 0; i < ELEMENTSOF(variables); i++)
		(void)unsetenv(variables[i]);
	utf8 = utf8 && setlocale(LC_CTYPE, "C.UTF-8") && streq(nl_langinfo(CODESET), "UTF-8");
	if (!utf8)
		(void)setlocale(LC_CTYPE, "C");
	return utf8;
}

/* ---- which terminal ---- */

/* A name that nobody has described here is taken for the one that it begins like. */
static int find_terminal(char **ret_problem)
{
	static const struct {
		const char *begins, *like;
	} relatives[] = {
		{ "screen", "screen-256color" },
		{ "tmux", "tmux-256color" },
		{ "linux", "linux" },
		{ "vt", "vt100" },
		{ "", "xterm-256color" },
		{ "", "xterm" },
		{ "", "vt100" },
	};
	const char *name = getenv("TERM");
	int error = 0;

	if (!name || !*name || strchr(name, '/'))
		return refuse(
			ret_problem, -ENOTTY,
			"TERM does not name a terminal; set it (TERM=xterm), or print a view with --dump");
	if (streq(name, "dumb"))
		return refuse(ret_problem, -ENOTTY,
			      "the terminal cannot move its cursor (TERM=dumb); print a view with --dump");
	if (setupterm(name, STDOUT_FILENO, &error) == OK)
		goto found;
	for (size_t i = 0; i < ELEMENTSOF(relatives); i++) {
		if (!starts_with(name, relatives[i].begins) ||
		    setupterm(relatives[i].like, STDOUT_FILENO, &error) != OK)
			continue;
		if (setenv("TERM", relatives[i].like, 1) < 0)
			return -ENOMEM;
		goto found;
	}
	return refuse(ret_problem, -ENOTTY,
		      "no terminal '%s' is described here; set TERM to another one (xterm), or print a view "
		      "with --dump",
		      name);
found:
	if (!cursor_address)
		return refuse(ret_problem, -ENOTTY,
			      "the terminal '%s' cannot move its cursor; print a view with --dump", name);
	return 0;
}

/* Without padding, which only terminals of old need. */
static char *make_farewell(void)
{
	const char *const parts[] = { MOUSE_OFF PASTE_OFF, exit_attribute_mode, exit_ca_mode,
				      cursor_normal,       keypad_local,        "\r" };
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		for (const char *p = parts[i]; p && *p; p++) {
			const char *end = p[0] == '$' && p[1] == '<' ? strchr(p, '>') : NULL;

			if (end)
				p = end;
			else
				(void)fputc(*p, f);
		}
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- looks ---- */

static void take_looks(Term *term, bool colour)
{
	int colours = 0;

	if (colour && has_colors() && start_color() == OK) {
		(void)use_default_colors();
		colours = COLORS;
	}
	for (size_t i = 0; i < STYLE_MAX; i++) {
		Look look = looks_of((Style)i, colours);

		term->attributes[i] = A_NORMAL | (look.bold ? A_BOLD : 0) | (look.dim ? A_DIM : 0) |
				      (look.underline ? A_UNDERLINE : 0) | (look.reverse ? A_REVERSE : 0);
		if (look.foreground < 0 && look.background < 0)
			continue;
		term->pairs[i] = (short)(i + 1);
		if (init_pair(term->pairs[i], look.foreground, look.background) == ERR)
			term->pairs[i] = 0;
	}
	term->match = colours >= 8 ? A_BOLD : A_BOLD | A_UNDERLINE;
	if (colours >= 8) {
		term->match_pair = STYLE_MAX + 1;
		if (init_pair(term->match_pair, COLOR_BLACK, COLOR_YELLOW) == ERR)
			term->match_pair = 0;
	}
}

/* ---- taking and giving back ---- */

static void take(Term *term)
{
	struct termios modes;

	(void)putp(PASTE_ON);
	(void)fflush(stdout);
	if (tcgetattr(STDIN_FILENO, &modes) == 0)
		guardian_tell(&term->guardian, &modes);
}

int term_new(bool colour, Term **ret, char **ret_problem)
{
	_cleanup_free_ Term *term = NULL;
	int r;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refuse(ret_problem, -ENOTTY,
			      "this needs a terminal as standard input and output; print a view with --dump");
	r = find_terminal(ret_problem);
	if (r < 0)
		return r;
	term = calloc(1, sizeof(*term));
	if (!term)
		return -ENOMEM;
	term->guardian = GUARDIAN_INIT;
	term->forgotten = true;
	if (tcgetattr(STDIN_FILENO, &term->natural) < 0)
		return refuse(ret_problem, -errno, "the terminal's modes cannot be read: %s",
			      strerror(errno));
	term->farewell = make_farewell();
	/* curses reads it for itself. */
	(void)del_curterm(cur_term);
	/* Before curses, whose memory it does not need. */
	if (term->farewell)
		(void)guardian_start(&term->guardian, STDOUT_FILENO, &term->natural, term->farewell);
	term->curses = newterm(NULL, stdout, stdin);
	if (!term->curses) {
		guardian_stop(&term->guardian);
		free(term->farewell);
		return refuse(ret_problem, -ENOTTY,
			      "the terminal '%s' cannot be used for a screen; print a view with --dump",
			      getenv("TERM"));
	}
	/* Its own handler would take the screen back while it is somebody else's. */
	(void)signal(SIGTSTP, SIG_DFL);
	(void)set_escdelay(ESCAPE_MSEC);
	(void)raw();
	(void)noecho();
	(void)nonl();
	(void)intrflush(stdscr, FALSE);
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)curs_set(0);
	(void)mouseinterval(0);
	(void)define_key("\033[200~", KEY_PASTE_BEGIN);
	(void)define_key("\033[201~", KEY_PASTE_END);
	take_looks(term, colour);
	take(term);
	*ret = TAKE_PTR(term);
	return 0;
}

void term_leave(Term *term)
{
	if (term->left)
		return;
	term->left = true;
	(void)putp(PASTE_OFF);
	(void)curs_set(1);
	(void)endwin();
	(void)fflush(stdout);
	guardian_tell(&term->guardian, NULL);
}

void term_return(Term *term)
{
	(void)reset_prog_mode();
	term->left = false;
	term->forgotten = true;
	(void)curs_set(0);
	take(term);
}

Term *term_free(Term *term)
{
	if (!term)
		return NULL;
	term_leave(term);
	guardian_stop(&term->guardian);
	delscreen(term->curses);
	canvas_done(&term->last);
	free(term->farewell);
	free(term);
	return NULL;
}

/* ---- the picture ---- */

void term_size(Term *term, size_t *ret_width, size_t *ret_height)
{
	struct winsize size = { 0 };
	int width = 80, height = 24;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) >= 0 && size.ws_col > 0 && size.ws_row > 0) {
		/* What a program says of its terminal is not to make us draw for minutes. */
		width = MIN_OF(size.ws_col, (unsigned short)1000);
		height = MIN_OF(size.ws_row, (unsigned short)1000);
	}
	if (width != COLS || height != LINES) {
		(void)resize_term(height, width);
		term->forgotten = true;
	}
	*ret_width = (size_t)width;
	*ret_height = (size_t)height;
}

static void put_cell(const Term *term, int y, int x, const CanvasCell *cell)
{
	wchar_t characters[CANVAS_CHARACTERS + 1] = { 0 };
	unsigned style = cell->style & ~(STYLE_SELECTED | STYLE_MATCH);
	attr_t attributes = term->attributes[style];
	short pair = term->pairs[style];
	cchar_t shown;

	for (size_t i = 0; i < CANVAS_CHARACTERS; i++)
		characters[i] = (wchar_t)cell->characters[i];
	if (cell->style & STYLE_SELECTED) {
		attributes = (attributes & ~(attr_t)(A_DIM | A_UNDERLINE)) | A_REVERSE;
		pair = 0;
	}
	if (cell->style & STYLE_MATCH) {
		attributes =
			term->match | (cell->style & STYLE_SELECTED && !term->match_pair ? A_REVERSE : 0);
		pair = term->match_pair;
	}
	if (setcchar(&shown, characters, attributes, pair, NULL) == OK)
		(void)mvadd_wch(y, x, &shown);
}

void term_forget(Term *term)
{
	term->forgotten = true;
}

void term_show(Term *term, const Canvas *canvas, size_t cursor_y, size_t cursor_x)
{
	size_t line = canvas->width * sizeof(*canvas->cells);

	if (term->left)
		return;
	if (term->forgotten || term->last.width != canvas->width || term->last.height != canvas->height) {
		(void)clearok(curscr, TRUE);
		(void)erase();
		term->forgotten = true;
		if (canvas_resize(&term->last, canvas->width, canvas->height) < 0)
			return;
	}
	for (size_t y = 0; y < canvas->height; y++) {
		const CanvasCell *cells = canvas->cells + y * canvas->width;

		if (!term->forgotten && memcmp(cells, term->last.cells + y * canvas->width, line) == 0)
			continue;
		memcpy(term->last.cells + y * canvas->width, cells, line);
		(void)move((int)y, 0);
		(void)clrtoeol();
		for (size_t x = 0; x < canvas->width; x++)
			if (!cells[x].follows)
				put_cell(term, (int)y, (int)x, &cells[x]);
	}
	term->forgotten = false;
	(void)curs_set(cursor_y < canvas->height && cursor_x < canvas->width);
	if (cursor_y < canvas->height && cursor_x < canvas->width)
		(void)move((int)cursor_y, (int)cursor_x);
	(void)refresh();
}

/* ---- keys ---- */

static const struct {
	wint_t curses;
	KeyCode code;
} keys[] = {
	{ KEY_UP, KEYCODE_UP },
	{ KEY_DOWN, KEYCODE_DOWN },
	{ KEY_LEFT, KEYCODE_LEFT },
	{ KEY_RIGHT, KEYCODE_RIGHT },
	{ KEY_PPAGE, KEYCODE_PAGE_UP },
	{ KEY_NPAGE, KEYCODE_PAGE_DOWN },
	{ KEY_HOME, KEYCODE_HOME },
	{ KEY_A1, KEYCODE_HOME },
	{ KEY_FIND, KEYCODE_HOME },
	{ KEY_END, KEYCODE_END },
	{ KEY_C1, KEYCODE_END },
	{ KEY_SELECT, KEYCODE_END },
	{ KEY_A3, KEYCODE_PAGE_UP },
	{ KEY_C3, KEYCODE_PAGE_DOWN },
	{ KEY_IC, KEYCODE_INSERT },
	{ KEY_DC, KEYCODE_DELETE },
	{ KEY_BACKSPACE, KEYCODE_BACKSPACE },
	{ KEY_BTAB, KEYCODE_BACKTAB },
	{ KEY_ENTER, KEYCODE_ENTER },
};

static KeyCode special_key(wint_t key)
{
	if (key >= KEY_F(1) && key <= KEY_F(12))
		return KEYCODE_F1 + (key - KEY_F(1));
	for (size_t i = 0; i < ELEMENTSOF(keys); i++)
		if (keys[i].curses == key)
			return keys[i].code;
	return KEYCODE_NONE;
}

static void read_mouse(TermInput *input)
{
	MEVENT event;

	if (getmouse(&event) != OK || event.x < 0 || event.y < 0)
		return;
	input->y = (size_t)event.y;
	input->x = (size_t)event.x;
	if (event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
		input->mouse = TERM_MOUSE_PRESS;
	else if (event.bstate & BUTTON4_PRESSED)
		input->mouse = TERM_MOUSE_UP;
	else if (event.bstate & BUTTON5_PRESSED)
		input->mouse = TERM_MOUSE_DOWN;
}

bool term_input(Term *term, TermInput *ret)
{
	TermInput input = { .pasted = term->pasting };
	wint_t key;
	int r;

	if (term->left)
		return false;
	r = get_wch(&key);
	if (r == ERR)
		return false;
	if (r != KEY_CODE_YES) {
		input.code = key == '\n' ? KEYCODE_ENTER : key == '\b' ? KEYCODE_BACKSPACE : (KeyCode)key;
	} else if (key == KEY_PASTE_BEGIN || key == KEY_PASTE_END) {
		term->pasting = key == KEY_PASTE_BEGIN;
	} else if (key == KEY_MOUSE) {
		read_mouse(&input);
	} else {
		input.code = special_key(key);
	}
	*ret = input;
	return true;
}

void term_mouse(Term *term, bool on)
{
	if (on == term->mouse)
		return;
	term->mouse = on;
	/* Of an event that is not asked for curses waits, blocking, for the one behind it. */
	(void)mousemask(on ? ALL_MOUSE_EVENTS : 0, NULL);
}

void term_beep(Term *term)
{
	(void)beep();
}
