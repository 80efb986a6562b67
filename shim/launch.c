/* SPDX-License-Identifier: MIT */
#include "shim/launch.h"

#include <sys/epoll.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "dbus/client-doctor.h"
#include "dbus/errors.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/link/lifeline.h"
#include "service/link/link.h"
#include "shim/complain.h"
#include "shim/launch-call.h"
#include "shim/proxy.h"
#include "shim/signals.h"
#include "shim/terminal.h"
#include "dbus/text-agent.h"

/*
 *   CALLING   Launch is under way: the terminal is untouched, a signal ends us, and with us the call (the
 *             service sees our connection go).
 *   WARNINGS  the lifeline is ours; its warnings go to standard error before the agent's first byte.
 *   RUNNING   bytes are copied, signals and stops are passed on.
 *   ENDING    the agent is gone; what it said last is still being written.
 *
 * The agent's side of the PTY, and what goes to the agent beside it, is closed here as soon as the service has it, or
 * the end of the output would never be seen. A success without warnings writes nothing of its own.
 */
typedef enum LaunchPhase {
	LAUNCH_CALLING,
	LAUNCH_WARNINGS,
	LAUNCH_RUNNING,
	LAUNCH_ENDING,
} LaunchPhase;

typedef struct Launch {
	LaunchPhase phase;
	const char *agent;
	char *const *arguments, *const *environment;
	Streams streams;
	Further further;
	Terminal terminal;
	sigset_t ignored; /* by whoever called launch */
	int slave_fd, signal_fd, lifeline_fd;
	sd_event *event;
	sd_bus *bus;
	sd_event_source *signals, *lifeline, *grace, *asking;
	TextAgent text_agent; /* while somebody may be typing a password */
	bool interactive;     /* so Launch was told */
	uint64_t early;       /* SIGNAL_BIT()s of what came before the agent was known to run */
	int early_end;        /* the first of them that would end us; 0 for none */
	Proxy *proxy;         /* NULL without a terminal */
	bool background;      /* as Launch was told */
	bool lost;            /* the session ended without a word */
	char *why;            /* the session itself ended the agent: said once the terminal is given back */
	LaunchEnd end;
} Launch;

#define LOST                                                                             \
	"the session ended without saying how the agent did; the agent is gone with it " \
	"('claude-sandbox log' may name the cause)"
/* One word of bits holds who was sent by somebody, and above them who was made by a key. */
#define KEY_BITS 32
#define SIGNAL_BIT(number, key) (1ULL << ((number) + ((key) ? KEY_BITS : 0)))
#define SIGNAL_GRACE_USEC (100 * USEC_PER_MSEC)

#define LAUNCH_INIT                               \
	((Launch){ .terminal = TERMINAL_INIT,     \
		   .slave_fd = FD_NONE,           \
		   .signal_fd = FD_NONE,          \
		   .lifeline_fd = FD_NONE,        \
		   .text_agent = TEXT_AGENT_INIT, \
		   .end = { .status = CS_EXIT_REFUSED } })

static void asking_end(Launch *launch)
{
	launch->asking = sd_event_source_disable_unref(launch->asking);
	text_agent_stop(&launch->text_agent);
}

static void bus_leave(Launch *launch)
{
	if (launch->bus)
		(void)sd_bus_detach_event(launch->bus);
	launch->bus = sd_bus_close_unref(launch->bus);
}

static void launch_done(Launch *launch)
{
	if (launch->proxy)
		proxy_finish(launch->proxy);
	launch->proxy = proxy_free(launch->proxy);
	bus_leave(launch);
	asking_end(launch);
	sd_event_source_disable_unref(launch->signals);
	sd_event_source_disable_unref(launch->lifeline);
	sd_event_source_disable_unref(launch->grace);
	sd_event_unref(launch->event);
	terminal_done(&launch->terminal);
	close_fd(launch->slave_fd);
	close_fd(launch->signal_fd);
	close_fd(launch->lifeline_fd);
	free(launch->why);
}

/* The loop ends after the event that is being handled. */
static void finish(Launch *launch, LaunchEnd end)
{
	launch->end = end;
	(void)sd_event_exit(launch->event, 0);
}

static void finish_by(Launch *launch, int number)
{
	finish(launch, (LaunchEnd){ .signal = number });
}

/* The terminal first: a sentence in raw mode would be torn. */
static void finish_refused(Launch *launch, int status, const char *sentence)
{
	if (launch->proxy && launch->phase >= LAUNCH_RUNNING)
		proxy_finish(launch->proxy);
	complain(sentence);
	finish(launch, (LaunchEnd){ .status = status });
}

static void lifeline_send(Launch *launch, LifelineKind kind, int number)
{
	const LifelineMessage message = { .kind = kind, .number = number };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	/* A session that reads nothing loses signals: waiting for it would stop the terminal too. */
	if (lifeline_encode(&message, &data, &size) == 0)
		(void)packet_send(launch->lifeline_fd, data, size);
}

static void on_drained(void *userdata)
{
	Launch *launch = userdata;

	(void)sd_event_exit(launch->event, 0);
}

/* What is closed at our end is what tells the session: it hangs the agent up. */
static void on_gone(void *userdata)
{
	Launch *launch = userdata;

	if (launch->phase < LAUNCH_ENDING)
		finish_by(launch, SIGHUP);
	else
		(void)sd_event_exit(launch->event, 0);
}

static void agent_resume(Launch *launch)
{
	bool behind = launch->proxy && proxy_is_behind(launch->proxy);

	lifeline_send(launch, behind ? LIFELINE_RESUME_BEHIND : LIFELINE_RESUME, 0);
}

static void on_forward(void *userdata)
{
	Launch *launch = userdata;

	if (launch->phase == LAUNCH_RUNNING)
		agent_resume(launch);
}

/* key: the whole foreground group of the agent is meant, else the agent alone. */
static void signal_while_running(Launch *launch, int number, bool key)
{
	bool behind;

	switch (number) {
	case SIGWINCH:
		/* A new size of the PTY is the agent's SIGWINCH. */
		if (launch->proxy && proxy_resize(launch->proxy))
			return;
		break;
	case SIGCONT:
		/* We may have been stopped by somebody, or moved to the foreground or out of it. */
		if (launch->proxy) {
			terminal_revisit(&launch->terminal);
			behind = proxy_is_behind(launch->proxy);
			(void)proxy_resume(launch->proxy);
			if (behind != proxy_is_behind(launch->proxy)) {
				agent_resume(launch);
				return;
			}
		}
		break;
	case SIGHUP:
		if (launch->proxy && terminal_is_gone(&launch->terminal)) {
			on_gone(launch);
			return;
		}
		break;
	default:
		break;
	}
	lifeline_send(launch, key ? LIFELINE_KEY : LIFELINE_SIGNAL, number);
}

/* Those that were kept, as SIGNAL_BIT()s. */
static void signals_told(Launch *launch, uint64_t signals)
{
	for (int number = 1; number < KEY_BITS; number++)
		if (signals & (SIGNAL_BIT(number, false) | SIGNAL_BIT(number, true)))
			signal_while_running(launch, number, signals & SIGNAL_BIT(number, true));
}

static void agent_started(Launch *launch)
{
	launch->phase = LAUNCH_RUNNING;
	/* Nothing is left to ask, and a connection costs memory here and at the bus. */
	bus_leave(launch);
	if (launch->proxy) {
		(void)proxy_start(launch->proxy);
		if (proxy_is_behind(launch->proxy) != launch->background)
			agent_resume(launch);
	}
	signals_told(launch, launch->early);
}

/*
 * What came to us while we were stopped came before the continuation, and ends an agent that is still
 * stopped when it is continued: told the other way round the agent runs for a moment, in which it may stop
 * anew. Return: bit n for each signal n that a continuation would undo or that asks for one: for later.
 */
static uint64_t signals_before_resume(Launch *launch)
{
	uint64_t later = 0;
	bool key;
	int number;

	while ((number = signals_read(launch->signal_fd, &key)) > 0)
		if (number == SIGTSTP || number == SIGCONT || number == SIGWINCH)
			later |= SIGNAL_BIT(number, key);
		else
			signal_while_running(launch, number, key);
	return later;
}

static void agent_stopped(Launch *launch, int number)
{
	bool waits = number == SIGTTIN || number == SIGTTOU, paint = false, stopped;
	uint64_t later;

	if (launch->proxy && waits && proxy_has_come_forward(launch->proxy)) {
		(void)proxy_resume(launch->proxy);
		agent_resume(launch);
		return;
	}
	if (launch->proxy)
		proxy_suspend(launch->proxy);
	stopped = signals_stop_self(number);
	if (launch->proxy)
		paint = proxy_resume(launch->proxy);
	later = signals_before_resume(launch);
	/* Whom nobody stops would ask again at once, for ever. */
	if (waits && !stopped)
		lifeline_send(launch, LIFELINE_RESUME, 0);
	else
		agent_resume(launch);
	/* It did not know that its screen was taken away. */
	if (paint)
		lifeline_send(launch, LIFELINE_KEY, SIGWINCH);
	signals_told(launch, later);
}

/* Nothing of the agent runs any more; what it said last may still be under way. */
static void launch_drain(Launch *launch, LaunchEnd end)
{
	launch->phase = LAUNCH_ENDING;
	launch->end = end;
	(void)sd_event_source_set_enabled(launch->lifeline, SD_EVENT_OFF);
	if (launch->proxy)
		proxy_drain(launch->proxy);
	else
		(void)sd_event_exit(launch->event, 0);
}

static void agent_exited(Launch *launch, int status)
{
	if (launch->phase < LAUNCH_RUNNING)
		agent_started(launch);
	launch_drain(launch, WIFSIGNALED(status) ? (LaunchEnd){ .signal = WTERMSIG(status) }
						 : (LaunchEnd){ .status = WEXITSTATUS(status) });
}

static void lifeline_message(Launch *launch, const LifelineMessage *message)
{
	switch (message->kind) {
	case LIFELINE_WARNING:
		if (launch->phase < LAUNCH_RUNNING)
			complain(message->text);
		else if (!launch->why)
			launch->why = strdup(message->text);
		break;
	case LIFELINE_STARTED:
		if (launch->phase < LAUNCH_RUNNING)
			agent_started(launch);
		break;
	case LIFELINE_STOPPED:
		agent_stopped(launch, message->number);
		break;
	case LIFELINE_EXITED:
		agent_exited(launch, message->number);
		break;
	default:
		break;
	}
}

static int on_lifeline(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_(lifeline_message_done) LifelineMessage message = { .kind = LIFELINE_KIND_MAX };
	uint8_t data[LIFELINE_PACKET_MAX];
	Launch *launch = userdata;
	ssize_t n;

	n = packet_receive(fd, data, sizeof(data));
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n > 0 && lifeline_decode(data, (size_t)n, &message) == 0) {
		lifeline_message(launch, &message);
		return 0;
	}
	launch->lost = true;
	launch_drain(launch, (LaunchEnd){ .status = CS_EXIT_REFUSED });
	return 0;
}

static int on_grace(sd_event_source *source, uint64_t usec, void *userdata)
{
	Launch *launch = userdata;

	if (launch->phase >= LAUNCH_RUNNING)
		return 0;
	if (launch->early_end)
		finish_by(launch, launch->early_end);
	else {
		launch->early &= ~(SIGNAL_BIT(SIGTSTP, false) | SIGNAL_BIT(SIGTSTP, true));
		(void)signals_stop_self(SIGTSTP);
	}
	return 0;
}

/*
 * The agent can run, and say so to whoever reads its output, before we are told. A signal that was sent
 * because of that is the agent's; only what is typed to cancel has no time to lose.
 */
static void signal_while_calling(Launch *launch, int number, bool key)
{
	launch->early |= SIGNAL_BIT(number, key);
	if (number == SIGCONT || number == SIGWINCH || launch->early_end)
		return;
	if (number != SIGTSTP)
		launch->early_end = number;
	launch->grace = sd_event_source_disable_unref(launch->grace);
	if (sd_event_add_time_relative(launch->event, &launch->grace, CLOCK_MONOTONIC, SIGNAL_GRACE_USEC, 0,
				       on_grace, launch) < 0)
		finish_by(launch, number);
}

static int on_signal(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Launch *launch = userdata;
	bool key;
	int number;

	while ((number = signals_read(fd, &key)) > 0) {
		if (launch->phase < LAUNCH_RUNNING && sigismember(&launch->ignored, number) > 0)
			continue;
		if (launch->phase < LAUNCH_RUNNING)
			signal_while_calling(launch, number, key);
		else if (launch->phase == LAUNCH_RUNNING)
			signal_while_running(launch, number, key);
	}
	return 0;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *reterr);

static int send_call(Launch *launch)
{
	const LaunchCall what = { .agent = launch->agent,
				  .arguments = launch->arguments,
				  .environment = launch->environment,
				  .streams = &launch->streams,
				  .further = &launch->further,
				  .interactive = launch->interactive,
				  .background = launch->background,
				  .slave_fd = launch->slave_fd };

	return launch_call_send(launch->bus, &what, on_reply, launch);
}

static void ask_again(Launch *launch)
{
	int r = send_call(launch);

	if (r < 0)
		finish_refused(launch, CS_EXIT_REFUSED,
			       "the launch cannot be asked for once more; try again");
}

static int on_text_agent(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Launch *launch = userdata;

	launch->asking = sd_event_source_disable_unref(launch->asking);
	ask_again(launch);
	return 0;
}

/*
 * A password would help, and a person is at the terminal. Only now is there an agent that asks for it, so
 * that launches that ask for nothing do not pay for one; the call is made once more, and allows it. Without
 * that agent too: that of a desktop may be there.
 */
static void ask_with_password(Launch *launch)
{
	launch->interactive = true;
	if (text_agent_start(&launch->text_agent) < 0 ||
	    sd_event_add_io(launch->event, &launch->asking, launch->text_agent.ready_fd, EPOLLIN,
			    on_text_agent, launch) < 0)
		ask_again(launch);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	Launch *launch = userdata;
	int r;

	if (error && client_needs_password(error) && !launch->interactive &&
	    launch->terminal.use != TERMINAL_NONE) {
		ask_with_password(launch);
		return 0;
	}
	asking_end(launch);
	/* The key that ends us ended the agent too that would have asked: the refusal is only what came of
	 * it. */
	if (error && launch->interactive && launch->early_end) {
		finish_by(launch, launch->early_end);
		return 0;
	}
	if (error) {
		_cleanup_free_ char *sentence =
			client_sentence_from(launch->bus, sd_bus_error_get_errno(error), error);
		bool missing = sd_bus_error_has_name(error, CS_ERROR_AGENT_MISSING);

		finish_refused(launch, missing ? CS_EXIT_MISSING : CS_EXIT_REFUSED,
			       sentence ? sentence : "not enough memory");
		return 0;
	}

	r = launch_call_read(reply, &launch->lifeline_fd);
	if (r >= 0)
		r = sd_event_add_io(launch->event, &launch->lifeline, launch->lifeline_fd, EPOLLIN,
				    on_lifeline, launch);
	if (r < 0) {
		finish_refused(launch, CS_EXIT_REFUSED,
			       "the service's answer makes no sense: are the programs of one version?");
		return 0;
	}
	/* What the session has said already comes before what we are asked to do now. */
	(void)sd_event_source_set_priority(launch->lifeline, SD_EVENT_PRIORITY_NORMAL - 2);
	launch->slave_fd = close_fd(launch->slave_fd);
	further_close(&launch->further);
	launch->phase = LAUNCH_WARNINGS;
	return 0;
}

static int open_terminal(Launch *launch)
{
	const ProxyEvents events = {
		.drained = on_drained, .gone = on_gone, .forward = on_forward, .userdata = launch
	};
	_cleanup_close_ int master_fd = FD_NONE;
	int r;

	r = terminal_open(&launch->streams, &launch->terminal);
	if (r < 0 || launch->terminal.use == TERMINAL_NONE)
		return r;
	r = terminal_make_pty(&launch->terminal, &master_fd, &launch->slave_fd);
	if (r < 0)
		return r;
	r = proxy_new(launch->event, &launch->terminal, master_fd, &events, &launch->proxy);
	if (r >= 0)
		(void)TAKE_FD(master_fd);
	return r;
}

static int call(Launch *launch, char *const *arguments, char *const *environment, sd_bus_error *reterr)
{
	int r;

	launch->arguments = arguments;
	launch->environment = environment;
	launch->background =
		launch->terminal.use != TERMINAL_NONE && !terminal_is_foreground(&launch->terminal);
	r = client_open(&launch->bus, reterr);
	if (r >= 0)
		r = sd_bus_attach_event(launch->bus, launch->event, SD_EVENT_PRIORITY_NORMAL - 2);
	/* A bus that goes away while we wait answers the call with an error of its own. */
	if (r >= 0)
		r = send_call(launch);
	return r < 0 ? r : 0;
}

static int start(Launch *launch, char *const *arguments, char *const *environment, char **reterr)
{
	static const char *const names[STREAMS_N] = { "input", "output", "error" };
	_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	int r, key = 0;

	further_find(&launch->further);
	r = streams_probe(&launch->streams, &key);
	if (r < 0)
		return refuse(reterr, r,
			      "standard %s is a directory, by which an agent could leave its jail; "
			      "use a file, a pipe or a terminal",
			      names[key]);
	r = signals_open(&launch->signal_fd, &launch->ignored);
	if (r >= 0)
		r = sd_event_new(&launch->event);
	if (r >= 0)
		r = sd_event_add_io(launch->event, &launch->signals, launch->signal_fd, EPOLLIN, on_signal,
				    launch);
	if (r >= 0)
		r = sd_event_source_set_priority(launch->signals, SD_EVENT_PRIORITY_NORMAL - 1);
	if (r < 0)
		return refuse(reterr, r, "the event loop cannot be made: %s", strerrordesc_np(-r));
	r = open_terminal(launch);
	if (r < 0)
		return refuse(reterr, r,
			      "no pseudo-terminal can be made for the agent: %s; is /dev/pts mounted?",
			      strerrordesc_np(-r));

	r = call(launch, arguments, environment, &error);
	if (r < 0) {
		if (sd_bus_error_is_set(&error))
			*reterr = client_sentence(r, &error);
		else if (r == -ENOENT)
			return refuse(reterr, r,
				      "the current directory is no longer there; change to another one");
		else
			return refuse(reterr, r, "the launch cannot be asked for: %s", strerrordesc_np(-r));
	}
	return r;
}

LaunchEnd launch_run(const char *agent, char *const *arguments, char *const *environment)
{
	_cleanup_(launch_done) Launch launch = LAUNCH_INIT;
	_cleanup_free_ char *problem = NULL;
	int r;

	launch.agent = agent;
	r = start(&launch, arguments, environment, &problem);
	if (r < 0) {
		error_add_fix(&problem, r);
		complain(problem ? problem : "not enough memory");
		return (LaunchEnd){ .status = CS_EXIT_REFUSED };
	}
	r = sd_event_loop(launch.event);
	if (r < 0)
		finish_refused(&launch, CS_EXIT_REFUSED, "the event loop failed");
	if (launch.why && !launch.lost) {
		if (launch.proxy)
			proxy_finish(launch.proxy);
		complain(launch.why);
	}
	if (launch.lost)
		finish_refused(&launch, CS_EXIT_REFUSED, LOST);
	return launch.end;
}
