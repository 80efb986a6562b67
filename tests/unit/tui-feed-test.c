/* SPDX-License-Identifier: MIT */

/*
 * The feed on a bus of its own: the real dbus-daemon, started and killed here; the service's part, and that
 * of a stranger, are played on the same event loop by connections of their own.
 */

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dbus/wire.h"
#include "tests/unit/tui-fixture.h"
#include "tui/feed.h"

#define DEADLINE_USEC (10 * USEC_PER_SEC)

typedef struct World {
	sd_event *event;
	Model *model;
	Feed *feed;
	sd_bus *service, *stranger;
	char *directory, *socket, *config;
	pid_t bus_pid;
	unsigned subscribed, listed, routes;
	bool has_b; /* a second session runs */
	bool answered;
	char *error;
	char *listener; /* the feed's own name on the bus */
} World;

static void bus_starts(World *world)
{
	world->bus_pid = fork();
	assert_true(world->bus_pid >= 0);
	if (world->bus_pid == 0) {
		char *argument = NULL;

		(void)close(STDERR_FILENO);
		if (asprintf(&argument, "--config-file=%s", world->config) > 0)
			execl("/usr/bin/dbus-daemon", "dbus-daemon", argument, "--nofork", "--nopidfile",
			      "--nosyslog", (char *)NULL);
		_exit(1);
	}
}

static void bus_ends(World *world)
{
	assert_int_equal(kill(world->bus_pid, SIGKILL), 0);
	assert_int_equal(waitpid(world->bus_pid, NULL, 0), world->bus_pid);
	world->bus_pid = 0;
	world->service = sd_bus_close_unref(world->service);
	world->stranger = sd_bus_close_unref(world->stranger);
}

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / NSEC_PER_USEC;
}

#define UNTIL(world, condition)                                                              \
	do {                                                                                 \
		uint64_t end_ = now() + DEADLINE_USEC;                                       \
		while (!(condition)) {                                                       \
			if (now() > end_)                                                    \
				fail_msg("not in time: %s", #condition);                     \
			assert_true(sd_event_run((world)->event, 100 * USEC_PER_MSEC) >= 0); \
		}                                                                            \
	} while (0)

static sd_bus *join(World *world)
{
	_cleanup_free_ char *address = NULL;
	struct stat found;
	sd_bus *bus = NULL;
	uint64_t end = now() + DEADLINE_USEC;

	while (stat(world->socket, &found) < 0)
		assert_true(now() < end && sd_event_run(world->event, 10 * USEC_PER_MSEC) >= 0);
	assert_true(asprintf(&address, "unix:path=%s", world->socket) > 0);
	for (;;) {
		int r;

		assert_int_equal(sd_bus_new(&bus), 0);
		assert_true(sd_bus_set_address(bus, address) >= 0);
		assert_true(sd_bus_set_bus_client(bus, true) >= 0);
		r = sd_bus_start(bus);
		if (r >= 0)
			break;
		bus = sd_bus_close_unref(bus);
		assert_true(now() < end && sd_event_run(world->event, 10 * USEC_PER_MSEC) >= 0);
	}
	assert_true(sd_bus_attach_event(bus, world->event, SD_EVENT_PRIORITY_NORMAL) >= 0);
	return bus;
}

/* ---- the service ---- */

static int append_session(sd_bus_message *m, const char *id)
{
	int r = sd_bus_message_open_container(m, 'r', "sossuayts");

	if (r >= 0)
		r = sd_bus_message_append(m, "sossu", id, CS_SESSION_ROOT "/x", "claude", "ann", 1000u);
	if (r >= 0)
		r = sd_bus_message_append_array(m, 'y', "/src", 4);
	if (r >= 0)
		r = sd_bus_message_append(m, "ts", UINT64_C(5), "running");
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_properties(sd_bus_message *m, const char *id)
{
	int r;

	r = sd_bus_message_append(m, "a{sv}", 13, "Id", "s", id, "Agent", "s", "claude", "User", "s", "ann",
				  "Uid", "u", 1000u, "Workspace", "ay", 4, '/', 's', 'r', 'c', "Started", "t",
				  UINT64_C(5), "State", "s", "running", "Leader", "u", 7u, "Jailed", "b", 1,
				  "Warnings", "as", 0, "Posture", "a(sss)", 0, "ExitStatus", "i", -1,
				  "Denied", "t", UINT64_C(3));
	return r;
}

static int append_answer(World *world, sd_bus_message *call, sd_bus_message *reply)
{
	const char *member = sd_bus_message_get_member(call), *path = sd_bus_message_get_path(call);
	const char *id = starts_with(path, CS_SESSION_ROOT "/");

	if (streq(member, CS_MEMBER_SUBSCRIBE)) {
		world->subscribed++;
		free(world->listener);
		world->listener = copy(sd_bus_message_get_sender(call));
		return 0;
	}
	if (streq(member, CS_MEMBER_LIST_SESSIONS)) {
		int r = sd_bus_message_open_container(reply, 'a', "(sossuayts)");

		world->listed++;
		if (r >= 0)
			r = append_session(reply, ID_A);
		if (r >= 0 && world->has_b)
			r = append_session(reply, ID_B);
		return r < 0 ? r : sd_bus_message_close_container(reply);
	}
	if (streq(member, "GetAll") && id)
		return append_properties(reply, id);
	if (streq(member, "GetAll"))
		return sd_bus_message_append(reply, "a{sv}", 2, "Version", "s", "1", "ConfigError", "s", "");
	if (streq(member, CS_MEMBER_LIST_ROUTES)) {
		world->routes++;
		return sd_bus_message_append(reply, "a(sssss)", 1, "default", "internet", "jail0", "all else",
					     "in force");
	}
	if (streq(member, CS_MEMBER_LIST_DENIED))
		return sd_bus_message_append(reply, "a(tssqsst)", 0);
	if (streq(member, CS_MEMBER_DOCTOR))
		return sd_bus_message_append(reply, "a(sssss)", 2, "user.root", "ok", "t", "d", "",
					     "device.tun", "fail", "t", "d", "mend it");
	return -EOPNOTSUPP;
}

/* The word of a run, as the caller gives it. */
static void send_row(World *world, sd_bus_message *call)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	const char *key, *word = NULL;

	if (sd_bus_message_enter_container(call, 'a', "{sv}") <= 0)
		return;
	while (sd_bus_message_enter_container(call, 'e', "sv") > 0) {
		(void)sd_bus_message_read_basic(call, 's', &key);
		if (streq(key, "call"))
			(void)sd_bus_message_read(call, "v", "s", &word);
		else
			(void)sd_bus_message_skip(call, "v");
		(void)sd_bus_message_exit_container(call);
	}
	assert_non_null(word);
	assert_true(sd_bus_message_new_signal(world->service, &m, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					      CS_SIGNAL_ROW) >= 0);
	assert_true(sd_bus_message_append(m, "s(sssss)", word, "user.root", "ok", "title", "came by signal",
					  "") >= 0);
	assert_true(sd_bus_send_to(world->service, m, sd_bus_message_get_sender(call), NULL) >= 0);
}

static int on_call(sd_bus_message *call, void *userdata, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	World *world = userdata;

	if (!sd_bus_message_is_method_call(call, NULL, NULL))
		return 0;
	if (sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION))
		return sd_bus_reply_method_errorf(call, CS_ERROR_NOT_AUTHORIZED, "You may not.");
	if (sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_ADD_ALLOW_IP))
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
						  "Ask.");
	if (sd_bus_message_is_method_call(call, CS_MANAGER_INTERFACE, CS_MEMBER_DOCTOR))
		send_row(world, call);
	assert_true(sd_bus_message_new_method_return(call, &reply) >= 0);
	if (append_answer(world, call, reply) < 0)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_NOT_SUPPORTED, "not yet");
	assert_true(sd_bus_send(NULL, reply, NULL) >= 0);
	return 1;
}

static void service_starts(World *world)
{
	world->service = join(world);
	assert_true(sd_bus_add_filter(world->service, NULL, on_call, world) >= 0);
	assert_true(sd_bus_request_name_async(world->service, NULL, CS_BUS_NAME, 0, NULL, NULL) >= 0);
}

/*
 * To the feed alone: what is sent to everybody and is not from the service, the bus keeps from it by its
 * match rules; what is sent to it by name, nobody does.
 */
static void say(World *world, sd_bus *bus, const char *path, const char *interface, const char *member,
		const char *types, ...)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	va_list arguments;

	assert_true(sd_bus_message_new_signal(bus, &m, path, interface, member) >= 0);
	va_start(arguments, types);
	assert_true(sd_bus_message_appendv(m, types, arguments) >= 0);
	va_end(arguments);
	assert_true(sd_bus_send_to(bus, m, world->listener, NULL) >= 0);
}

static void say_denied(World *world, sd_bus *bus, const char *address)
{
	say(world, bus, CS_SESSION_ROOT "/" ID_A, CS_SESSION_INTERFACE, CS_SIGNAL_DENIED, "(tssqsst)",
	    UINT64_C(9), "tcp", address, 80, "curl (3)", "private", UINT64_C(1));
}

/* ---- the tests ---- */

static void on_changed(void *userdata)
{
}

static int set_up(void **state)
{
	World *world = calloc(1, sizeof(*world));
	FILE *f;

	assert_non_null(world);
	world->directory = copy("/tmp/tui-feed-XXXXXX");
	assert_non_null(mkdtemp(world->directory));
	assert_true(asprintf(&world->socket, "%s/run/bus", world->directory) > 0);
	assert_true(asprintf(&world->config, "%s/config", world->directory) > 0);
	f = fopen(world->config, "we");
	assert_non_null(f);
	fprintf(f,
		"<busconfig><type>custom</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>"
		"<policy context=\"default\"><allow send_destination=\"*\"/><allow send_type=\"signal\"/>"
		"<allow receive_sender=\"*\"/><allow own=\"*\"/><allow user=\"*\"/></policy></busconfig>\n",
		world->socket);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(sd_event_new(&world->event), 0);
	world->model = model_new();
	assert_int_equal(feed_new(&(FeedOptions){ .event = world->event,
						  .model = world->model,
						  .path = world->socket,
						  .changed = on_changed },
				  &world->feed),
			 0);
	feed_want(world->feed, MODEL_SESSIONS);
	*state = world;
	return 0;
}

static void make_directory(World *world)
{
	_cleanup_free_ char *path = NULL;

	assert_true(asprintf(&path, "%s/run", world->directory) > 0);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int tear_down(void **state)
{
	World *world = *state;
	_cleanup_free_ char *path = NULL;

	feed_free(world->feed);
	if (world->bus_pid > 0)
		bus_ends(world);
	model_free(world->model);
	sd_event_unref(world->event);
	(void)unlink(world->socket);
	(void)unlink(world->config);
	assert_true(asprintf(&path, "%s/run", world->directory) > 0);
	(void)rmdir(path);
	(void)rmdir(world->directory);
	free(world->directory);
	free(world->socket);
	free(world->config);
	free(world->error);
	free(world->listener);
	free(world);
	return 0;
}

static void everything_is_up(World *world)
{
	make_directory(world);
	bus_starts(world);
	service_starts(world);
	UNTIL(world, world->model->link == LINK_UP);
	UNTIL(world, world->model->n_sessions == 1 && world->model->sessions[0]->details_state == MODEL_HERE);
}

/* Not even the directory of the socket is there at first. */
static void the_bus_is_waited_for(void **state)
{
	World *world = *state;

	assert_int_equal(world->model->link, LINK_NO_BUS);
	assert_non_null(world->model->problem);
	make_directory(world);
	bus_starts(world);
	UNTIL(world, world->model->link == LINK_NO_SERVICE);
	service_starts(world);
	UNTIL(world, world->model->link == LINK_UP);
	UNTIL(world, world->model->n_sessions == 1);
	assert_null(world->model->problem);
}

static void everything_returns(void **state)
{
	World *world = *state;
	unsigned listed;

	everything_is_up(world);
	/* The service alone. */
	world->service = sd_bus_flush_close_unref(world->service);
	UNTIL(world, world->model->link == LINK_NO_SERVICE);
	assert_int_equal(world->model->n_sessions, 1);
	listed = world->listed;
	service_starts(world);
	UNTIL(world, world->model->link == LINK_UP && world->listed > listed);
	/* The bus. */
	bus_ends(world);
	UNTIL(world, world->model->link == LINK_NO_BUS);
	assert_int_equal(world->model->n_sessions, 1);
	assert_int_equal(unlink(world->socket), 0);
	bus_starts(world);
	service_starts(world);
	UNTIL(world, world->model->link == LINK_UP);
	/* The dead bus's socket lies there still. */
	bus_ends(world);
	UNTIL(world, world->model->link == LINK_NO_BUS);
	(void)unlink(world->socket);
	bus_starts(world);
	service_starts(world);
	UNTIL(world, world->model->link == LINK_UP);
}

static void signals_change_the_model(void **state)
{
	World *world = *state;
	ModelSession *a;

	everything_is_up(world);
	a = model_session(world->model, ID_A);
	assert_int_equal(a->denied_count, 3);
	say_denied(world, world->service, "10.0.0.1");
	UNTIL(world, a->denied.table.n_rows == 1);
	say(world, world->service, CS_SESSION_ROOT "/" ID_A, "org.freedesktop.DBus.Properties",
	    "PropertiesChanged", "sa{sv}as", CS_SESSION_INTERFACE, 1, "Denied", "t", UINT64_C(40), 0);
	UNTIL(world, a->denied_count == 40);
	say(world, world->service, CS_SESSION_ROOT "/" ID_A, CS_SESSION_INTERFACE, CS_SIGNAL_STATE_CHANGED,
	    "si", "offline", -1);
	UNTIL(world, streq(a->session.state, "offline"));
	world->has_b = true;
	say(world, world->service, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_SESSION_ADDED, "so", ID_B,
	    CS_SESSION_ROOT "/" ID_B);
	UNTIL(world, model_session(world->model, ID_B));
	say(world, world->service, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_SESSION_REMOVED, "so",
	    ID_B, CS_SESSION_ROOT "/" ID_B);
	UNTIL(world, !model_session(world->model, ID_B));
}

/* What is not looked at is not asked for; what is, is asked again when it may be another. */
static void what_is_wanted_is_asked(void **state)
{
	World *world = *state;

	everything_is_up(world);
	assert_int_equal(world->routes, 0);
	assert_int_equal(model_open(world->model, ID_A), 0);
	feed_want(world->feed, MODEL_SESSIONS | MODEL_ROUTES);
	UNTIL(world, model_session(world->model, ID_A)->routes.state == MODEL_HERE);
	assert_int_equal(world->routes, 1);
	say(world, world->service, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_ALLOW_IP_CHANGED, "");
	UNTIL(world, world->routes == 2);
	feed_want(world->feed, MODEL_SESSIONS);
	say(world, world->service, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_ALLOW_IP_CHANGED, "");
	/* What is not supported fails, and is not asked for for ever. */
	feed_want(world->feed, MODEL_SESSIONS | MODEL_POLICY);
	UNTIL(world, world->model->policy.state == MODEL_FAILED);
	assert_non_null(world->model->policy.problem);
	assert_int_equal(world->routes, 2);
}

/* Another user of the bus may send us any signal: none of them counts. */
static void strangers_are_not_believed(void **state)
{
	World *world = *state;
	const char *name = NULL;

	everything_is_up(world);
	world->stranger = join(world);
	UNTIL(world, sd_bus_get_unique_name(world->stranger, &name) >= 0);
	say_denied(world, world->stranger, "10.6.6.6");
	say(world, world->stranger, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_SESSION_REMOVED, "so",
	    ID_A, CS_SESSION_ROOT "/" ID_A);
	say(world, world->stranger, CS_SESSION_ROOT "/" ID_A, CS_SESSION_INTERFACE, CS_SIGNAL_STATE_CHANGED,
	    "si", "ended", 0);
	say(world, world->stranger, "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged",
	    "sss", CS_BUS_NAME, "", "");
	assert_true(sd_bus_flush(world->stranger) >= 0);
	/* What the service says comes behind it. */
	say_denied(world, world->service, "10.0.0.1");
	UNTIL(world, model_session(world->model, ID_A)->denied.table.n_rows > 0);
	assert_int_equal(model_session(world->model, ID_A)->denied.table.n_rows, 1);
	assert_string_equal(model_session(world->model, ID_A)->denied.table.cells[DENIED_ADDRESS],
			    "10.0.0.1");
	assert_string_equal(model_session(world->model, ID_A)->session.state, "running");
	assert_int_equal(world->model->link, LINK_UP);
}

static void on_done(const FeedAnswer *answer, void *userdata)
{
	World *world = userdata;

	world->answered = true;
	free(world->error);
	world->error = answer->error ? copy(answer->error) : NULL;
	if (answer->needs_password) {
		free(world->error);
		world->error = copy("password");
	}
}

static void calls_are_answered(void **state)
{
	World *world = *state;
	Effect stop = { .kind = EFFECT_CALL, .call = CALL_STOP, .session = (char *)ID_A };
	Effect add = { .kind = EFFECT_CALL, .call = CALL_ADD, .address = (char *)"10.0.0.1" };

	assert_true(feed_call(world->feed, &stop, false, on_done, world) < 0);
	everything_is_up(world);
	assert_int_equal(feed_call(world->feed, &stop, false, on_done, world), 0);
	UNTIL(world, world->answered);
	assert_string_equal(world->error, "You may not.");
	world->answered = false;
	assert_int_equal(feed_call(world->feed, &add, false, on_done, world), 0);
	UNTIL(world, world->answered);
	assert_string_equal(world->error, "password");
	/* With leave to ask, it is an error as any other. */
	world->answered = false;
	assert_int_equal(feed_call(world->feed, &add, true, on_done, world), 0);
	UNTIL(world, world->answered);
	assert_string_not_equal(world->error, "password");
	/* A later check makes the one before silent. */
	world->answered = false;
	assert_int_equal(feed_check(world->feed, &add, on_done, NULL), 0);
	assert_int_equal(feed_check(world->feed, &add, on_done, world), 0);
	UNTIL(world, world->answered);
}

static void rows_come_before_the_answer(void **state)
{
	World *world = *state;
	Effect doctor = { .kind = EFFECT_RUN, .part = MODEL_DOCTOR };
	Effect verify = { .kind = EFFECT_RUN, .part = MODEL_VERIFY, .session = (char *)ID_A };
	const ModelRun *run = &world->model->doctor;

	everything_is_up(world);
	/* What is seen without the service is there at once. */
	assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
	assert_int_equal(feed_run(world->feed, &doctor), 0);
	assert_int_equal(run->rows.n_rows, 1);
	assert_string_equal(run->rows.cells[RUN_ID], "entry.path");
	assert_string_equal(run->rows.cells[RUN_STATUS], "fail");
	assert_int_equal(run->state, RUN_GOING);
	assert_int_equal(feed_run(world->feed, &doctor), -EBUSY);
	UNTIL(world, run->state != RUN_GOING);
	assert_int_equal(run->state, RUN_ENDED);
	assert_false(run->passed);
	assert_int_equal(run->rows.n_rows, 3);
	assert_string_equal(run->rows.cells[RUN_MAX + RUN_DETAIL], "came by signal");
	assert_string_equal(run->rows.cells[2 * RUN_MAX + RUN_FIX], "mend it");
	/* A service that cannot. */
	assert_int_equal(feed_run(world->feed, &verify), 0);
	UNTIL(world, world->model->verify.state != RUN_GOING);
	assert_int_equal(world->model->verify.state, RUN_FAILED);
	assert_non_null(world->model->verify.problem);
}

/* Where nobody can be asked, what anybody can see is told, and that nobody answers. */
static void doctor_needs_no_service(void **state)
{
	World *world = *state;
	Effect doctor = { .kind = EFFECT_RUN, .part = MODEL_DOCTOR };
	const ModelRun *run = &world->model->doctor;
	bool told = false;

	assert_int_equal(feed_run(world->feed, &doctor), 0);
	assert_int_equal(run->state, RUN_ENDED);
	assert_false(run->passed);
	for (size_t i = 0; i < run->rows.n_rows; i++)
		told |= streq(run->rows.cells[i * RUN_MAX + RUN_ID], "service.bus") &&
			streq(run->rows.cells[i * RUN_MAX + RUN_STATUS], "fail");
	assert_true(told);
	assert_true(run->rows.n_rows > 1);
}

/* With nothing going on, nothing is woken. */
static void idle_is_idle(void **state)
{
	World *world = *state;

	everything_is_up(world);
	while (sd_event_run(world->event, 200 * USEC_PER_MSEC) > 0)
		;
	assert_int_equal(sd_event_run(world->event, USEC_PER_SEC), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_bus_is_waited_for),       TEST(everything_returns),
		TEST(signals_change_the_model),    TEST(what_is_wanted_is_asked),
		TEST(strangers_are_not_believed),  TEST(calls_are_answered),
		TEST(rows_come_before_the_answer), TEST(idle_is_idle),
		TEST(doctor_needs_no_service),
	};

	if (access("/usr/bin/dbus-daemon", X_OK) < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
