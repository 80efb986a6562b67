/* SPDX-License-Identifier: MIT */
#include "shim/modes.h"

#include <stdarg.h>

#define ESCAPE '\x1b'
#define BELL '\a'
#define CANCEL '\x18'
#define SUBSTITUTE '\x1a'
#define PARAMETER_MAX 99999u

typedef struct PrivateMode {
	uint32_t number;
	bool natural; /* what a terminal has when no program asked for anything */
	bool soft;    /* a soft reset (DECSTR) brings it back */
} PrivateMode;

/* In the order of the undo; the cursor comes back last, where it is seen to stay. */
static const PrivateMode PRIVATE_MODES[] = {
	{ 2026, false, false }, /* synchronized output */
	{ 9, false, false },    { 1000, false, false }, { 1001, false, false },
	{ 1002, false, false }, { 1003, false, false }, /* mouse tracking */
	{ 1005, false, false }, { 1006, false, false }, { 1015, false, false },
	{ 1016, false, false }, /* mouse encodings */
	{ 1004, false, false }, /* focus reports */
	{ 2004, false, false }, /* bracketed paste */
	{ 2031, false, false }, /* colour scheme reports */
	{ 2048, false, false }, /* size reports */
	{ 1, false, true },     /* cursor keys */
	{ 7, true, false },     /* wrap at the right edge */
	{ 25, true, true },     /* cursor */
};
STATIC_ASSERT(ELEMENTSOF(PRIVATE_MODES) <= 64);

typedef struct Text {
	char *bytes;
	size_t n;
} Text;

_printf_(2, 3) static void text_add(Text *text, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(text->bytes + text->n, MODES_TEXT_MAX - text->n, format, arguments);
	va_end(arguments);
	if (n > 0 && (size_t)n < MODES_TEXT_MAX - text->n)
		text->n += (size_t)n;
}

static void modes_reset(Modes *modes)
{
	*modes = MODES_INIT;
}

static void modes_reset_soft(Modes *modes)
{
	for (size_t i = 0; i < ELEMENTSOF(PRIVATE_MODES); i++)
		if (PRIVATE_MODES[i].soft)
			modes->changed &= ~(1ULL << i);
	modes->keypad = false;
}

static ModesKeyboard *keyboard_current(Modes *modes)
{
	return &modes->keyboards[modes->alternate != 0];
}

static uint32_t parameter(const Modes *modes, uint32_t index, uint32_t missing)
{
	return index < modes->n_parameters && modes->parameters[index] > 0 ? modes->parameters[index]
									   : missing;
}

static void private_mode_set(Modes *modes, uint32_t number, bool on)
{
	if (number == 47 || number == 1047 || number == 1049) {
		modes->alternate = on ? number : 0;
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(PRIVATE_MODES); i++) {
		if (PRIVATE_MODES[i].number != number)
			continue;
		if (on == PRIVATE_MODES[i].natural)
			modes->changed &= ~(1ULL << i);
		else
			modes->changed |= 1ULL << i;
	}
}

static void keyboard_push(ModesKeyboard *keyboard, uint32_t flags)
{
	if (keyboard->depth == MODES_KEYBOARD_DEPTH_MAX) {
		memmove(keyboard->flags, keyboard->flags + 1,
			sizeof(keyboard->flags) - sizeof(keyboard->flags[0]));
		keyboard->depth--;
	}
	keyboard->flags[keyboard->depth++] = flags;
}

static void keyboard_pop(ModesKeyboard *keyboard, uint32_t n)
{
	keyboard->depth -= MIN_OF(n, keyboard->depth);
}

/* how: 1 all flags as given, 2 the given ones on, 3 the given ones off. */
static void keyboard_set(ModesKeyboard *keyboard, uint32_t flags, uint32_t how)
{
	uint32_t *current = keyboard->depth > 0 ? &keyboard->flags[keyboard->depth - 1] : &keyboard->base;

	switch (how) {
	case 1:
		*current = flags;
		break;
	case 2:
		*current |= flags;
		break;
	case 3:
		*current &= ~flags;
		break;
	default:
		break;
	}
}

static void keyboard_control(Modes *modes)
{
	ModesKeyboard *keyboard = keyboard_current(modes);

	switch (modes->marker) {
	case '>':
		keyboard_push(keyboard, parameter(modes, 0, 0));
		break;
	case '<':
		keyboard_pop(keyboard, parameter(modes, 0, 1));
		break;
	case '=':
		keyboard_set(keyboard, parameter(modes, 0, 0), parameter(modes, 1, 1));
		break;
	default:
		break;
	}
}

static void control_final(Modes *modes, char final)
{
	bool on = final == 'h';

	if (modes->intermediate) {
		if (modes->intermediate == '!' && final == 'p' && !modes->marker)
			modes_reset_soft(modes);
		return;
	}

	switch (final) {
	case 'h':
	case 'l':
		for (uint32_t i = 0; modes->marker == '?' && i < modes->n_parameters; i++)
			private_mode_set(modes, modes->parameters[i], on);
		break;
	case 'u':
		keyboard_control(modes);
		break;
	case 'm':
		/* Without a value the resource, without a resource all of them, is as it was. */
		if (modes->marker == '>' && (parameter(modes, 0, 4) == 4))
			modes->other_keys = parameter(modes, 1, 0);
		break;
	case 'n':
		if (modes->marker == '>' && parameter(modes, 0, 0) == 4)
			modes->other_keys = 0;
		break;
	default:
		break;
	}
}

static void control_begin(Modes *modes)
{
	modes->state = MODES_CONTROL;
	modes->marker = 0;
	modes->intermediate = 0;
	modes->n_parameters = 0;
	modes->parameters[0] = 0;
}

static void parameter_end(Modes *modes)
{
	/* What comes after the last that is kept is read into the same place and dropped. */
	if (modes->n_parameters + 1 < MODES_PARAMETERS_MAX)
		modes->n_parameters++;
	modes->parameters[modes->n_parameters] = 0;
}

static void control_feed(Modes *modes, char byte)
{
	uint32_t *current = &modes->parameters[modes->n_parameters];

	if (byte >= '0' && byte <= '9') {
		*current = MIN_OF(*current * 10 + (uint32_t)(byte - '0'), PARAMETER_MAX);
	} else if (byte == ';' || byte == ':')
		parameter_end(modes);
	else if (byte >= '<' && byte <= '?')
		modes->marker = byte;
	else if (byte >= ' ' && byte <= '/')
		modes->intermediate = byte;
	else if (byte >= '@' && byte <= '~') {
		parameter_end(modes);
		control_final(modes, byte);
		modes->state = MODES_GROUND;
	} else if (byte == CANCEL || byte == SUBSTITUTE)
		modes->state = MODES_GROUND;
	else if (byte == ESCAPE)
		modes->state = MODES_ESCAPE;
	/* Other control characters act at once and leave the sequence as it is (ECMA-48, 5.5). */
}

static void escape_feed(Modes *modes, char byte)
{
	modes->state = MODES_GROUND;
	switch (byte) {
	case '[':
		control_begin(modes);
		break;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		modes->state = MODES_STRING;
		break;
	case '=':
		modes->keypad = true;
		break;
	case '>':
		modes->keypad = false;
		break;
	case 'c':
		modes_reset(modes);
		break;
	case ESCAPE:
		modes->state = MODES_ESCAPE;
		break;
	default:
		break;
	}
}

/* Text and strings are passed over by memchr(3): nearly all output is text. */
static const char *skip(Modes *modes, const char *p, const char *end)
{
	const char *escape = memchr(p, ESCAPE, (size_t)(end - p));
	const char *stop = escape ? escape : end;

	if (modes->state == MODES_STRING) {
		for (const char *q = p; q < stop; q++) {
			if (*q == BELL || *q == CANCEL || *q == SUBSTITUTE) {
				modes->state = MODES_GROUND;
				return q + 1;
			}
		}
	}
	if (!escape)
		return end;
	modes->state = modes->state == MODES_STRING ? MODES_STRING_ESCAPE : MODES_ESCAPE;
	return escape + 1;
}

void modes_feed(Modes *modes, const void *bytes, size_t n)
{
	const char *p = bytes, *end = p + n;

	while (p < end) {
		switch (modes->state) {
		case MODES_GROUND:
		case MODES_STRING:
			p = skip(modes, p, end);
			break;
		case MODES_STRING_ESCAPE:
			/* ESC ends a string; "\" after it belongs to that, anything else begins anew. */
			if (*p == '\\') {
				modes->state = MODES_GROUND;
				p++;
			} else
				modes->state = MODES_ESCAPE;
			break;
		case MODES_ESCAPE:
			escape_feed(modes, *p++);
			break;
		case MODES_CONTROL:
			control_feed(modes, *p++);
			break;
		}
	}
}

static void keyboard_undo(const ModesKeyboard *keyboard, Text *text)
{
	if (keyboard->depth > 0)
		text_add(text, "\x1b[<%uu", keyboard->depth);
	if (keyboard->base)
		text_add(text, "\x1b[=0;1u");
}

static void keyboard_redo(const ModesKeyboard *keyboard, Text *text)
{
	if (keyboard->base)
		text_add(text, "\x1b[=%u;1u", keyboard->base);
	for (uint32_t i = 0; i < keyboard->depth; i++)
		text_add(text, "\x1b[>%uu", keyboard->flags[i]);
}

static bool keyboard_differs(const ModesKeyboard *keyboard)
{
	return keyboard->depth > 0 || keyboard->base != 0;
}

static bool modes_differ(const Modes *modes)
{
	return modes->changed || modes->alternate || modes->keypad || modes->other_keys ||
	       keyboard_differs(&modes->keyboards[0]);
}

size_t modes_undo(const Modes *modes, char bytes[static MODES_TEXT_MAX])
{
	Text text = { .bytes = bytes };

	if (!modes_differ(modes))
		return 0;
	/* An agent that was killed in the middle of a sequence would have it swallow the beginning of ours.
	 */
	if (modes->state == MODES_STRING || modes->state == MODES_STRING_ESCAPE)
		text_add(&text, "\x1b\\");
	else if (modes->state != MODES_GROUND)
		text_add(&text, "%c", CANCEL);

	for (size_t i = 0; i < ELEMENTSOF(PRIVATE_MODES); i++)
		if (modes->changed & (1ULL << i))
			text_add(&text, "\x1b[?%u%c", PRIVATE_MODES[i].number,
				 PRIVATE_MODES[i].natural ? 'h' : 'l');
	if (modes->keypad)
		text_add(&text, "\x1b>");
	if (modes->other_keys)
		text_add(&text, "\x1b[>4m");
	/* Each screen has its own stack: that of the alternate one is reached only while it shows. */
	if (modes->alternate) {
		keyboard_undo(&modes->keyboards[1], &text);
		text_add(&text, "\x1b[?%ul", modes->alternate);
	}
	keyboard_undo(&modes->keyboards[0], &text);
	return text.n;
}

size_t modes_redo(const Modes *modes, char bytes[static MODES_TEXT_MAX])
{
	Text text = { .bytes = bytes };

	keyboard_redo(&modes->keyboards[0], &text);
	if (modes->alternate) {
		text_add(&text, "\x1b[?%uh", modes->alternate);
		keyboard_redo(&modes->keyboards[1], &text);
	}
	if (modes->other_keys)
		text_add(&text, "\x1b[>4;%um", modes->other_keys);
	if (modes->keypad)
		text_add(&text, "\x1b=");
	for (size_t i = 0; i < ELEMENTSOF(PRIVATE_MODES); i++)
		if (modes->changed & (1ULL << i))
			text_add(&text, "\x1b[?%u%c", PRIVATE_MODES[i].number,
				 PRIVATE_MODES[i].natural ? 'l' : 'h');
	return text.n;
}
