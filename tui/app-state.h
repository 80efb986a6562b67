/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the program share. */

#include <systemd/sd-event.h>

#include "dbus/text-agent.h"
#include "tui/app.h"
#include "tui/draw.h"
#include "tui/feed.h"
#include "tui/term.h"

#define APP_VIEWS_MOST 12

typedef struct AppView {
	const View *view;
	Table *table;
	void *state;
	bool filled; /* rows were made from this generation of what the view wants */
	uint64_t generation;
	uint64_t filled_usec, cost_usec; /* when, and how long it took */
	char *headline;
} AppView;

/* A call, or several one after another, and who asks for a password if that is needed. */
typedef struct AppCall {
	bool going, interactive;
	Effect effect; /* CALL or CHAIN; owned */
	size_t next;   /* of a chain */
	size_t view;   /* whose effect it is */
	TextAgent agent;
	sd_event_source *ready;
} AppCall;

typedef struct App {
	AppOptions options;
	sd_event *event;
	sd_event_source *input, *frame, *minute;
	Model *model;
	Feed *feed;
	Term *term;
	Canvas canvas;
	DrawPlaces places;
	Screen screen;
	AppView views[APP_VIEWS_MOST];
	size_t n_views, current, before;
	char *message, *details, *details_key;
	uint64_t message_count; /* grows with each message */
	Effect pending;         /* what the dialog is about; owned */
	AppCall call;
	uint64_t drawn_usec, click_usec;
	uint64_t late_usec; /* when rows that are old may be made again; 0: none are old */
	size_t click_row;
	bool dirty, urgent, ended, mouse_wanted;
	bool connecting; /* ssh may be asking something on the terminal */
	int result;
} App;

AppView *app_view(App *app);
ViewContext app_context(App *app, size_t view);

/* text is copied; NULL: none. */
void app_tell(App *app, Style style, const char *text);
/* Why something was not done: a line, or a window where that is too short for it. */
void app_tell_error(App *app, const char *sentence);
/* Make the rows if the model, or the view's own state, is another one. */
void app_fill(App *app);
void app_refill(App *app, size_t view);
void app_go(App *app, size_t view);
void app_draw(App *app);
/* The selected row of Sessions is the open session. */
void app_follow_selection(App *app);
void app_update_wants(App *app);

/* Ask for everything again; connect to the other machine again. */
void app_refresh(App *app);
/* Is the terminal somebody else's now? */
bool app_is_away(const App *app);
/* Stop until the shell continues us. */
void app_suspend(App *app);
/* They come on the event loop from now on. Return: 0 or a negative errno. */
int app_take_signals(App *app);
/* The terminal is for somebody else, and back. */
void app_leave_screen(App *app);
void app_return_to_screen(App *app);

/* Carry out: *effect is taken. */
void app_do(App *app, Effect *effect);
void app_run_action(App *app, Command command);
void app_call_done(AppCall *call);

void app_close_dialog(App *app);
void app_show(App *app, const char *title, const char *text);
void app_open_line(App *app, bool filter);
/* Return: true when the key was the dialog's. */
void app_dialog_key(App *app, const TermInput *input);
void app_check_prompt(App *app);

void app_key(App *app, const TermInput *input);
void app_command(App *app, Command command);
