/* SPDX-License-Identifier: MIT */

/* What stands above the screen and takes the keys: texts, questions, choices, lines that are typed. */

#include "tui/app-state.h"

static Dialog *dialog_of(App *app)
{
	return &app->screen.dialog;
}

void app_close_dialog(App *app)
{
	Dialog *dialog = dialog_of(app);

	free(dialog->title);
	free(dialog->text);
	free(dialog->problem);
	line_editor_done(&dialog->line);
	*dialog = (Dialog){ 0 };
	app->places.lines = 0;
	effect_done(&app->pending);
	app->dirty = true;
}

static int set_texts(Dialog *dialog, const char *title, const char *text)
{
	dialog->title = title ? strdup(title) : NULL;
	dialog->text = text ? strdup(text) : NULL;
	return (title && !dialog->title) || (text && !dialog->text) ? -ENOMEM : 0;
}

void app_show(App *app, const char *title, const char *text)
{
	app_close_dialog(app);
	if (set_texts(dialog_of(app), title, text) >= 0)
		dialog_of(app)->kind = DIALOG_SHOW;
}

#define BESIDE 16u /* columns of the line where messages are that say where one is */

void app_tell_error(App *app, const char *sentence)
{
	FormatFlags flags = FORMAT_SENTENCE | (app->options.utf8 ? FORMAT_UTF8 : 0);
	size_t room = app->canvas.width > BESIDE ? app->canvas.width - BESIDE : 0;

	if (format_width(sentence, room + 1, flags) <= room || app->screen.dialog.kind != DIALOG_NONE) {
		app_tell(app, STYLE_BAD, sentence);
		return;
	}
	app_tell(app, STYLE_PLAIN, NULL);
	if (set_texts(dialog_of(app), "It was not done", sentence) >= 0)
		dialog_of(app)->kind = DIALOG_TELL;
}

void app_open_line(App *app, bool filter)
{
	Table *table = app_view(app)->table;
	Dialog *dialog = dialog_of(app);

	app_close_dialog(app);
	if (set_texts(dialog, filter ? "only rows with: " : "search: ", NULL) < 0 ||
	    line_editor_set(&dialog->line, filter ? table_filter_text(table) : NULL) < 0)
		return;
	/* top tells the two apart: nothing scrolls here. */
	dialog->top = filter;
	dialog->kind = DIALOG_LINE;
	app_tell(app, STYLE_PLAIN, NULL);
}

/* ---- prompts ---- */

static void accept_prompt(App *app);

static void on_checked(const FeedAnswer *answer, void *userdata)
{
	App *app = userdata;
	Dialog *dialog = dialog_of(app);
	bool entered = dialog->entered;

	if (dialog->kind != DIALOG_PROMPT || !dialog->unchecked)
		return;
	free(dialog->problem);
	dialog->problem = strdup(answer->error ?: "");
	dialog->unchecked = !dialog->problem;
	dialog->entered = false;
	app->dirty = app->urgent = true;
	if (entered && !dialog->unchecked)
		accept_prompt(app);
}

void app_check_prompt(App *app)
{
	ViewContext context = app_context(app, app->current);
	Dialog *dialog = dialog_of(app);
	Effect call = { 0 };

	free(dialog->problem);
	dialog->problem = NULL;
	dialog->entered = false;
	dialog->unchecked =
		app->pending.check &&
		app->pending.check(&context, line_editor_text(&dialog->line), &call, &dialog->problem);
	if (dialog->unchecked && feed_check(app->feed, &call, on_checked, app) < 0)
		dialog->problem = strdup("the service cannot be asked about it now; Enter tries again");
	effect_done(&call);
}

/* What the dialog was about is done with; what comes of it may open the next one. */
static void do_next(App *app, Effect *next)
{
	Effect effect = *next;

	*next = (Effect){ 0 };
	app_close_dialog(app);
	app_do(app, &effect);
}

static void accept_prompt(App *app)
{
	ViewContext context = app_context(app, app->current);
	Dialog *dialog = dialog_of(app);
	Effect next = { 0 };

	/* Asked anew: the service may have gone with the question. */
	if (dialog->unchecked) {
		app_check_prompt(app);
		dialog->entered = dialog->unchecked && !dialog->problem;
		return;
	}
	/* Known to be refused: the reason stands there. */
	if (dialog->problem && *dialog->problem) {
		term_beep(app->term);
		return;
	}
	if (!app->pending.accept || app->pending.accept(&context, line_editor_text(&dialog->line), &next) < 0)
		effect_done(&next);
	do_next(app, &next);
}

static void prompt_key(App *app, KeyCode code)
{
	int r;

	if (code == KEYCODE_ENTER) {
		accept_prompt(app);
		return;
	}
	r = line_editor_key(&dialog_of(app)->line, code);
	if (r > 0)
		app_check_prompt(app);
}

/* ---- the line at the bottom ---- */

static void line_changed(App *app, bool kept)
{
	Dialog *dialog = dialog_of(app);
	Table *table = app_view(app)->table;
	const char *text = line_editor_text(&dialog->line);

	if (dialog->top) {
		(void)table_filter(table, text);
		return;
	}
	(void)table_search(table, text);
	if (*text && !table_search_here(table) && kept)
		app_tell(app, STYLE_CAUTION, "no row holds that");
}

static void line_key(App *app, KeyCode code)
{
	Dialog *dialog = dialog_of(app);

	if (code == KEYCODE_ENTER) {
		line_changed(app, true);
		app_close_dialog(app);
	} else if (code == KEYCODE_BACKSPACE && dialog->line.n == 0) {
		app_close_dialog(app);
	} else if (line_editor_key(&dialog->line, code) > 0) {
		line_changed(app, false);
	}
}

static void drop_line(App *app)
{
	Table *table = app_view(app)->table;

	if (dialog_of(app)->top)
		(void)table_filter(table, NULL);
	else
		(void)table_search(table, NULL);
}

/* ---- texts, questions, choices ---- */

/* Return: was it a key that scrolls? */
static bool scroll(App *app, Command command)
{
	Dialog *dialog = dialog_of(app);
	size_t page = app->places.page, lines = app->places.lines;
	size_t last = lines > page ? lines - page : 0, top = MIN_OF(dialog->top, last);

	switch (command) {
	case COMMAND_UP:
		top = top > 0 ? top - 1 : 0;
		break;
	case COMMAND_DOWN:
		top++;
		break;
	case COMMAND_PAGE_UP:
		top = top > page ? top - page : 0;
		break;
	case COMMAND_PAGE_DOWN:
		top += page;
		break;
	case COMMAND_FIRST:
		top = 0;
		break;
	case COMMAND_LAST:
		top = last;
		break;
	default:
		return false;
	}
	dialog->top = MIN_OF(top, last);
	return true;
}

/* A text, or a sentence, that is left with any other key; not with what is pasted, nor with the mouse. */
static void show_key(App *app, const TermInput *input)
{
	bool scrolls = dialog_of(app)->kind == DIALOG_SHOW || app->places.lines > app->places.page;

	if (input->code == KEYCODE_NONE || input->pasted ||
	    (scrolls && scroll(app, key_command(input->code, ""))))
		return;
	app_close_dialog(app);
}

static void confirm_key(App *app, const TermInput *input)
{
	bool yes = input->code == 'y' || input->code == 'Y';

	if (input->pasted || (!yes && scroll(app, key_command(input->code, ""))))
		return;
	/* What has not been seen cannot be agreed to, be it that the window is small or a key came early. */
	if (yes && !dialog_of(app)->seen) {
		(void)scroll(app, COMMAND_PAGE_DOWN);
		term_beep(app->term);
	} else if (yes) {
		Effect effect = app->pending;

		app->pending = (Effect){ 0 };
		free(effect.question);
		effect.question = NULL;
		do_next(app, &effect);
	} else if (input->code == 'n' || input->code == 'N' || input->code == 'q') {
		app_close_dialog(app);
	}
}

static void choose_key(App *app, const TermInput *input)
{
	for (size_t i = 0; !input->pasted && i < app->pending.n_parts; i++) {
		Effect *choice = &app->pending.parts[i];

		if (!choice->text || (KeyCode)(uint8_t)choice->text[0] != input->code)
			continue;
		/* What it does may want the text for itself. */
		do_next(app, choice);
		return;
	}
	if (input->code == 'q')
		app_close_dialog(app);
	else if (!input->pasted)
		(void)scroll(app, key_command(input->code, ""));
}

void app_dialog_key(App *app, const TermInput *input)
{
	DialogKind kind = dialog_of(app)->kind;

	if (input->code == KEYCODE_ESCAPE || input->code == KEYCODE_CONTROL('c') ||
	    input->code == KEYCODE_CONTROL('g')) {
		if (kind == DIALOG_LINE)
			drop_line(app);
		app_close_dialog(app);
	} else if (kind == DIALOG_SHOW || kind == DIALOG_TELL) {
		show_key(app, input);
	} else if (kind == DIALOG_CONFIRM) {
		confirm_key(app, input);
	} else if (kind == DIALOG_CHOOSE) {
		choose_key(app, input);
	} else if (kind == DIALOG_PROMPT) {
		/* The end of a line that was pasted is no decision. */
		if (!input->pasted || input->code != KEYCODE_ENTER)
			prompt_key(app, input->code);
	} else if (kind == DIALOG_LINE) {
		if (!input->pasted || input->code != KEYCODE_ENTER)
			line_key(app, input->code);
	}
}
