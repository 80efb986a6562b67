/* SPDX-License-Identifier: MIT */

/* What a view wants to be done, done: asked about first where it widens something, with a password where one
 * is needed. */

#include "tui/app-state.h"

void app_call_done(AppCall *call)
{
	sd_event_source_disable_unref(call->ready);
	text_agent_stop(&call->agent);
	effect_done(&call->effect);
	*call = (AppCall){ .agent = TEXT_AGENT_INIT };
}

/* ---- calls ---- */

static const Effect *current_part(const AppCall *call)
{
	return call->effect.kind == EFFECT_CHAIN ? &call->effect.parts[call->next] : &call->effect;
}

static void on_answer(const FeedAnswer *answer, void *userdata);

static void tell_finished(App *app, const char *error)
{
	const Effect *part = current_part(&app->call);
	ViewContext context = app_context(app, app->call.view);

	if (part->finished)
		part->finished(&context, part, error);
	app_refill(app, app->call.view);
}

static void end_call(App *app)
{
	bool asked = app->call.agent.pid > 0;

	app_call_done(&app->call);
	if (asked)
		app_return_to_screen(app);
}

static void fail_call(App *app, const char *sentence)
{
	tell_finished(app, sentence);
	end_call(app);
	app_tell_error(app, sentence);
}

static void send_part(App *app)
{
	int r = feed_call(app->feed, current_part(&app->call), app->call.interactive, on_answer, app);

	if (r < 0)
		fail_call(app, r == -ENOMEM
				       ? "no memory; close something and try again"
				       : "the service cannot be asked now; press R when it is there again");
}

static int on_agent_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	App *app = userdata;

	app->call.ready = sd_event_source_disable_unref(app->call.ready);
	send_part(app);
	return 0;
}

/*
 * An agent of the desktop, where there is one, asks in its own window. Of another machine, this one's agents
 * cannot ask.
 */
static void ask_password(App *app)
{
	AppCall *call = &app->call;

	call->interactive = true;
	if (!app->model->host) {
		app_leave_screen(app);
		printf("\nclaude-sandbox-tui: this needs an administrator's password; Ctrl-C leaves it.\n");
		(void)fflush(stdout);
		if (text_agent_start(&call->agent) < 0) {
			app_return_to_screen(app);
		} else if (sd_event_add_io(app->event, &call->ready, call->agent.ready_fd, EPOLLIN,
					   on_agent_ready, app) >= 0) {
			return;
		}
	}
	send_part(app);
}

static void tell_unconfirmed(App *app, const FeedAnswer *answer)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;

	while (answer->unconfirmed && answer->unconfirmed[n])
		n++;
	if (n > 0 && asprintf(&text, "%s, but %zu session%s did not confirm it: %s%s",
			      current_part(&app->call)->done ?: "done", n, n == 1 ? "" : "s",
			      answer->unconfirmed[0], n == 1 ? "" : ", ...") >= 0)
		app_tell(app, STYLE_CAUTION, text);
	else if (current_part(&app->call)->done)
		app_tell(app, STYLE_GOOD, current_part(&app->call)->done);
	else
		app_tell(app, STYLE_PLAIN, NULL);
}

static void on_answer(const FeedAnswer *answer, void *userdata)
{
	App *app = userdata;
	AppCall *call = &app->call;

	if (answer->needs_password) {
		ask_password(app);
		return;
	}
	if (answer->error) {
		fail_call(app, answer->error);
		return;
	}
	tell_finished(app, NULL);
	tell_unconfirmed(app, answer);
	if (call->effect.kind == EFFECT_CHAIN && ++call->next < call->effect.n_parts) {
		send_part(app);
		return;
	}
	if (call->effect.kind == EFFECT_CHAIN && call->effect.done &&
	    !(answer->unconfirmed && answer->unconfirmed[0]))
		app_tell(app, STYLE_GOOD, call->effect.done);
	end_call(app);
	app->dirty = true;
}

static void begin_call(App *app, Effect *effect)
{
	AppCall *call = &app->call;

	if (call->going) {
		app_tell(app, STYLE_CAUTION, "the call before is not answered yet");
		return;
	}
	if (effect->kind == EFFECT_CHAIN && effect->n_parts == 0)
		return;
	*call = (AppCall){ .going = true, .effect = *effect, .view = app->current, .agent = TEXT_AGENT_INIT };
	*effect = (Effect){ 0 };
	app_tell(app, STYLE_MESSAGE, "asking the service ...");
	send_part(app);
}

/* ---- all the others ---- */

static void go(App *app, const Effect *effect)
{
	size_t i = 0;

	if (effect->session) {
		(void)model_open(app->model, effect->session);
		(void)table_select_key(app->views[0].table, effect->session);
	}
	while (effect->view && i < app->n_views && !streq(app->views[i].view->name, effect->view))
		i++;
	if (effect->view)
		app_go(app, i);
	app_update_wants(app);
}

static int open_dialog(App *app, Effect *effect)
{
	Dialog *dialog = &app->screen.dialog;
	const char *title = effect->title, *text = effect->text;

	app_close_dialog(app);
	if (effect->question) {
		dialog->kind = DIALOG_CONFIRM;
		text = effect->question;
		title = title ?: "Really?";
	} else if (effect->kind == EFFECT_PROMPT) {
		dialog->kind = DIALOG_PROMPT;
		if (line_editor_set(&dialog->line, text) < 0)
			return -ENOMEM;
		text = effect->comment;
	} else {
		dialog->kind = DIALOG_CHOOSE;
	}
	if ((title && !(dialog->title = strdup(title))) || (text && !(dialog->text = strdup(text))))
		return -ENOMEM;
	app->pending = *effect;
	*effect = (Effect){ 0 };
	dialog->choices = app->pending.parts;
	dialog->n_choices = dialog->kind == DIALOG_CHOOSE ? app->pending.n_parts : 0;
	if (dialog->kind == DIALOG_PROMPT)
		app_check_prompt(app);
	return 0;
}

static void run(App *app, const Effect *effect)
{
	const View *view = effect->part == MODEL_DOCTOR ? &view_doctor : &view_verify;

	if (feed_run(app->feed, effect) == -EBUSY)
		app_tell(app, STYLE_CAUTION, "the checks before are not done yet");
	for (size_t i = 0; i < app->n_views; i++)
		if (app->views[i].view == view)
			app_go(app, i);
}

void app_do(App *app, Effect *effect)
{
	bool asks = effect->question || effect->kind == EFFECT_PROMPT || effect->kind == EFFECT_CHOOSE;

	if (asks && open_dialog(app, effect) < 0) {
		app_close_dialog(app);
		app_tell(app, STYLE_BAD, "no memory; close something and try again");
	}
	switch (effect->kind) {
	case EFFECT_NONE:
	case EFFECT_PROMPT:
	case EFFECT_CHOOSE:
		break;
	case EFFECT_REFRESH:
		app_refill(app, app->current);
		break;
	case EFFECT_TELL:
		app_tell(app, STYLE_MESSAGE, effect->text);
		break;
	case EFFECT_SHOW:
		app_show(app, effect->title, effect->text);
		break;
	case EFFECT_GO:
		go(app, effect);
		break;
	case EFFECT_COMPARE:
		(void)model_compare(app->model, effect->session);
		app_update_wants(app);
		app_refill(app, app->current);
		break;
	case EFFECT_QUIT:
		app->ended = true;
		break;
	case EFFECT_OWN:
		app->model->all = false;
		model_touch(app->model, MODEL_SESSIONS);
		break;
	case EFFECT_CALL:
	case EFFECT_CHAIN:
		begin_call(app, effect);
		break;
	case EFFECT_RUN:
		run(app, effect);
		break;
	}
	effect_done(effect);
	app->dirty = true;
}

void app_run_action(App *app, Command command)
{
	AppView *view = app_view(app);
	ViewContext context = app_context(app, app->current);
	const char *key = table_selected_key(view->table);

	for (const ViewAction *action = view->view->actions; action && action->command != COMMAND_NONE;
	     action++) {
		Effect effect = { 0 };

		if (action->command != command)
			continue;
		if (action->run(&context, key, &effect) < 0) {
			effect_done(&effect);
			app_tell(app, STYLE_BAD, "no memory; close something and try again");
			return;
		}
		app_do(app, &effect);
		return;
	}
}
