/* SPDX-License-Identifier: MIT */

/* What comes by signal: the window's size, stops and their end, who asks for a password, and orders to end.
 */

#include "tui/app-state.h"

#include <signal.h>

static void stop_here(void)
{
	sigset_t stop;

	/* A shell counts the whole job; where nobody could continue it, the kernel ignores this. */
	(void)kill(0, SIGTSTP);
	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
}

void app_suspend(App *app)
{
	bool on_screen = app->term && !app_is_away(app);

	if (on_screen)
		app_leave_screen(app);
	stop_here();
	if (on_screen)
		app_return_to_screen(app);
}

/*
 * Whoever asks for a password has stopped. With Ctrl-Z we are about to stop too; if not, pkttyagent(1) went
 * on with us and stopped itself a moment later, as it means to on the way to a stop: the question goes on. In
 * the background it cannot, so the whole job stops, and the shell sees it.
 */
static void go_on_asking(App *app)
{
	const TextAgent *agent = &app->call.agent;
	sigset_t waiting;

	if (!text_agent_was_stopped(agent) || sigpending(&waiting) < 0 || sigismember(&waiting, SIGTSTP) > 0)
		return;
	if (text_agent_has_terminal(agent))
		(void)kill(agent->pid, SIGCONT);
	else
		app_suspend(app);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	App *app = userdata;

	switch (info->ssi_signo) {
	case SIGWINCH:
		app->dirty = app->urgent = true;
		break;
	case SIGTSTP:
		app_suspend(app);
		break;
	case SIGCONT:
		/* After a stop that nobody could see coming, the modes are the shell's. */
		if (app->term && !app_is_away(app))
			app_return_to_screen(app);
		else if (app->call.agent.pid > 0)
			(void)kill(app->call.agent.pid, SIGCONT);
		break;
	case SIGCHLD:
		go_on_asking(app);
		break;
	case SIGINT:
	case SIGQUIT:
		/* Whoever asks for a password takes it, and what it was for fails. */
		if (app->term && app_is_away(app))
			break;
		_fallthrough_;
	default:
		app->ended = true;
	}
	return 0;
}

int app_take_signals(App *app)
{
	static const int signals[] = {
		SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP
	};
	sigset_t set;
	int r = 0;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTSOF(signals); i++)
		(void)sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(signals); i++)
		r = sd_event_add_signal(app->event, NULL, signals[i], on_signal, app);
	return r < 0 ? r : 0;
}
