/* SPDX-License-Identifier: MIT */
#include "tui/line-editor.h"

#include "dbus/text.h"

int line_editor_set(LineEditor *editor, const char *text)
{
	size_t n = strlen(text ?: "");
	char *copy = malloc(n + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text ?: "", n + 1);
	free(editor->text);
	*editor = (LineEditor){ .text = copy, .n = n, .size = n + 1, .cursor = n };
	return 0;
}

void line_editor_done(LineEditor *editor)
{
	free(editor->text);
	*editor = (LineEditor){ 0 };
}

const char *line_editor_text(const LineEditor *editor)
{
	return editor->text ?: "";
}

/* The start of the character before, and behind, a place; marks that combine go with their character. */
static size_t before(const LineEditor *editor, size_t at)
{
	uint32_t character = 0;

	while (at > 0) {
		at--;
		if (((uint8_t)editor->text[at] & 0xc0) == 0x80)
			continue;
		if (text_decode(editor->text + at, editor->n - at, &character) == 0 ||
		    text_cells(character) > 0)
			break;
	}
	return at;
}

static size_t behind(const LineEditor *editor, size_t at)
{
	uint32_t character = 0;
	size_t n;

	if (at < editor->n)
		at += text_decode(editor->text + at, editor->n - at, &character) ?: 1;
	while (at < editor->n && (n = text_decode(editor->text + at, editor->n - at, &character)) > 0 &&
	       text_cells(character) == 0)
		at += n;
	return at;
}

static size_t word_before(const LineEditor *editor, size_t at)
{
	while (at > 0 && editor->text[at - 1] == ' ')
		at--;
	while (at > 0 && editor->text[at - 1] != ' ')
		at--;
	return at;
}

static int cut(LineEditor *editor, size_t from, size_t to)
{
	if (from == to)
		return 0;
	memmove(editor->text + from, editor->text + to, editor->n - to + 1);
	editor->n -= to - from;
	editor->cursor = from;
	return 1;
}

static size_t encode(uint32_t character, char *to)
{
	if (character < 0x80) {
		to[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = (char)(0xc0 | character >> 6);
		to[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		to[0] = (char)(0xe0 | character >> 12);
		to[1] = (char)(0x80 | (character >> 6 & 0x3f));
		to[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | character >> 18);
	to[1] = (char)(0x80 | (character >> 12 & 0x3f));
	to[2] = (char)(0x80 | (character >> 6 & 0x3f));
	to[3] = (char)(0x80 | (character & 0x3f));
	return 4;
}

static int insert(LineEditor *editor, KeyCode code)
{
	char bytes[4];
	size_t n = encode(code, bytes);

	if (editor->n + n > LINE_EDITOR_MOST)
		return 0;
	if (editor->n + n + 1 > editor->size) {
		size_t size = editor->size * 2 + n + 1;
		char *grown = realloc(editor->text, size);

		if (!grown)
			return -ENOMEM;
		if (!editor->text)
			grown[0] = '\0';
		editor->text = grown;
		editor->size = size;
	}
	memmove(editor->text + editor->cursor + n, editor->text + editor->cursor,
		editor->n - editor->cursor + 1);
	memcpy(editor->text + editor->cursor, bytes, n);
	editor->n += n;
	editor->cursor += n;
	return 1;
}

int line_editor_key(LineEditor *editor, KeyCode code)
{
	if (code >= ' ' && code < KEYCODE_UP && code != KEYCODE_BACKSPACE)
		return text_shows(code) ? insert(editor, code) : -ENOKEY;
	switch (code) {
	case KEYCODE_LEFT:
	case KEYCODE_CONTROL('b'):
		editor->cursor = before(editor, editor->cursor);
		return 0;
	case KEYCODE_RIGHT:
	case KEYCODE_CONTROL('f'):
		editor->cursor = behind(editor, editor->cursor);
		return 0;
	case KEYCODE_HOME:
	case KEYCODE_CONTROL('a'):
		editor->cursor = 0;
		return 0;
	case KEYCODE_END:
	case KEYCODE_CONTROL('e'):
		editor->cursor = editor->n;
		return 0;
	case KEYCODE_BACKSPACE:
	case KEYCODE_CONTROL('h'):
		return cut(editor, before(editor, editor->cursor), editor->cursor);
	case KEYCODE_DELETE:
	case KEYCODE_CONTROL('d'):
		return cut(editor, editor->cursor, behind(editor, editor->cursor));
	case KEYCODE_CONTROL('u'):
		return cut(editor, 0, editor->cursor);
	case KEYCODE_CONTROL('k'):
		return cut(editor, editor->cursor, editor->n);
	case KEYCODE_CONTROL('w'):
		return cut(editor, word_before(editor, editor->cursor), editor->cursor);
	default:
		return -ENOKEY;
	}
}
