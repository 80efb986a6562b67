/* SPDX-License-Identifier: MIT */

/*
 * A session that was made to check its jail: everything is made as for the agent, by the same code in the
 * same order, and `verify` runs where the agent would. It has a terminal of the session's own, as an agent
 * has its person's; what it expects as descriptor 0, and the socket for its rows as descriptor 1.
 */

#include "service/session/session-state.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "dbus/names.h"
#include "service/session/sealed.h"
#include "service/session/verify-facts.h"

enum { KEY_EXPECTATIONS, KEY_ROWS, KEY_TERMINAL };

static bool is_checked(const Session *session)
{
	return session->request.purpose != PURPOSE_AGENT;
}

/* Nobody looks at the terminal; what is written to it must not wait. */
static int on_master(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Session *session = userdata;
	uint8_t forgotten[4096];
	ssize_t n = read(fd, forgotten, sizeof(forgotten));

	/* EIO: nobody has the other end (pty(7)); it may not have been opened yet. */
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		session->master = sd_event_source_disable_unref(session->master);
	return 0;
}

int session_verify_open(Session *session, char **ret_problem)
{
	int r;

	if (!is_checked(session))
		return 0;
	r = terminal_keys_make(&session->keys, &session->master_fd, ret_problem);
	if (r < 0)
		return r;
	r = sd_event_add_io(session->event, &session->master, session->master_fd, EPOLLIN, on_master,
			    session);
	return r < 0 ? r : 0;
}

static void on_row(void *userdata, const Row *row)
{
	const Session *session = userdata;

	if (session->doctor)
		doctor_take(session->doctor, row);
	else
		link_server_row(session->link, 0, row);
}

/* It is the agent here: init says so. */
static bool is_stopped(void *userdata)
{
	const Session *session = userdata;

	return session->stopped;
}

static void on_spoilt(void *userdata, const char *why)
{
	session_end_because(userdata, why);
}

int session_verify_hand_over(Session *session, char **ret_problem)
{
	static const VerifyRowsCalls calls = { .row = on_row, .is_stopped = is_stopped, .spoilt = on_spoilt };
	static char *argv[] = { (char *)"verify", NULL };
	int *keys = session->keys.fds, r;

	if (!is_checked(session))
		return 0;
	/* A start that is begun again hands over anew. */
	close_fdp(&keys[KEY_EXPECTATIONS]);
	close_fdp(&keys[KEY_ROWS]);
	session->rows = verify_rows_free(session->rows);
	session->expectations_fd = close_fd(session->expectations_fd);

	r = sealed_open("expectations", &keys[KEY_EXPECTATIONS]);
	if (r == 0) {
		session->expectations_fd = fcntl(keys[KEY_EXPECTATIONS], F_DUPFD_CLOEXEC, 3);
		r = session->expectations_fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = verify_rows_new(session->event, &calls, session, &session->rows, &keys[KEY_ROWS]);
	if (r < 0)
		return refuse(ret_problem, r, "what checks the jail cannot be handed its descriptors: %s",
			      strerror(-r));
	session->stand_in =
		(StandIn){ .program = (char *)CS_VERIFY_PATH,
			   .argv = argv,
			   .descriptors = 1u << KEY_EXPECTATIONS | 1u << KEY_ROWS | 1u << KEY_TERMINAL,
			   .terminals = 1u << KEY_TERMINAL };
	return 0;
}

static BatteryKind battery_of(const SessionRequest *request)
{
	if (request->purpose == PURPOSE_DOCTOR)
		return BATTERY_DOCTOR;
	return request->probes ? BATTERY_CHECKS_AND_PROBES : BATTERY_CHECKS;
}

/* Without any the checks say that they had nothing to aim at. */
static const ExpectedBait *lay_bait(Session *session, size_t *ret_n)
{
	session->bait = bait_free(session->bait);
	(void)bait_new(session->event, session->request.id, &session->bait);
	return bait_list(session->bait, ret_n);
}

int session_verify_expect(Session *session, char **ret_problem)
{
	_cleanup_free_ uint8_t *data = NULL;
	const ExpectedBait *baits;
	size_t size = 0, n_baits;
	int r;

	if (!is_checked(session))
		return 0;
	baits = lay_bait(session, &n_baits);
	r = verify_facts_encode(&(VerifySource){ .plan = &session->plan,
						 .request = &session->request,
						 .network = &session->network,
						 .wire = session->wire,
						 .battery = battery_of(&session->request),
						 .terminal_fd = session->keys.terminal_fd,
						 .made_mounts = session->made_mounts,
						 .baits = baits,
						 .n_baits = n_baits,
						 .bait_token = bait_token(session->bait),
						 .resolver = session->preparation.resolver,
						 .online = !session_is_offline(session) },
				&data, &size, ret_problem);
	if (r < 0)
		return r;
	r = sealed_fill(session->expectations_fd, data, size);
	session->expectations_fd = close_fd(session->expectations_fd);
	return r < 0 ? refuse(ret_problem, r, "what is expected cannot be handed over: %s", strerror(-r)) : 0;
}

void session_verify_begin(Session *session)
{
	if (session->rows && verify_rows_begin(session->rows) < 0)
		session_end_because(session, "the session was ended: what checks cannot be watched");
}

/* ---- of a session whose agent goes on ---- */

static void on_running_row(void *userdata, const Row *row)
{
	const Session *session = userdata;

	link_server_row(session->link, session->verify_serial, row);
}

static void on_running_done(void *userdata, int result, const char *why)
{
	Session *session = userdata;

	if (bait_is_spent(session->bait) && (result == 0 || result == LINK_CHECK_FAILED)) {
		result = -EUSERS;
		why = BAIT_SPENT;
	}
	link_server_verified(session->link, session->verify_serial, result, why);
	session->verify = verify_run_free(session->verify);
	session->bait = bait_free(session->bait);
	ledger_check(session->ledger, false);
}

int session_verify_running(void *userdata, uint32_t serial, bool probes, char **ret_problem)
{
	static const VerifyRunCalls calls = { .row = on_running_row, .done = on_running_done };
	Session *session = userdata;
	const ExpectedBait *baits;
	size_t n_baits;
	int r;

	if (session->phase == PHASE_STARTING)
		return -EINPROGRESS;
	if (session->phase != PHASE_RUNNING || session->request.purpose != PURPOSE_AGENT)
		return -ENOTCONN;
	/* What an earlier service asked for has nobody who waits for it. */
	session->verify = verify_run_free(session->verify);
	session->verify_serial = serial;
	baits = lay_bait(session, &n_baits);
	r = verify_run_new(session->event,
			   &(VerifySource){ .plan = &session->plan,
					    .request = &session->request,
					    .network = &session->network,
					    .wire = session->wire,
					    .battery = probes ? BATTERY_CHECKS_AND_PROBES : BATTERY_CHECKS,
					    .terminal_fd = FD_NONE,
					    .made_mounts = session->made_mounts,
					    .baits = baits,
					    .n_baits = n_baits,
					    .bait_token = bait_token(session->bait),
					    .leader = session->leader,
					    .resolver = session->preparation.resolver,
					    .online = !session_is_offline(session) },
			   &(VerifyJoin){ .leader = session->leader,
					  .leader_fd = session->leader_fd,
					  .plan = &session->plan,
					  .file_mode_mask = session->request.file_mode_mask,
					  .descriptors = session->descriptors },
			   &calls, session, &session->verify, ret_problem);
	if (r < 0)
		session->bait = bait_free(session->bait);
	else
		ledger_check(session->ledger, true);
	return r;
}

void session_verify_end(Session *session)
{
	if (verify_rows_drain(session->rows) < 0 && !session->why)
		session->why = strdup(VERIFY_ROWS_STRANGE);
	else if (bait_is_spent(session->bait) && !session->why)
		session->why = strdup(BAIT_SPENT);
	session->bait = bait_free(session->bait);
	if (!session->verify)
		return;
	link_server_verified(session->link, session->verify_serial, -ENOTCONN, NULL);
	session->verify = verify_run_free(session->verify);
}

void session_verify_done(Session *session)
{
	session->verify = verify_run_free(session->verify);
	session->bait = bait_free(session->bait);
	session->rows = verify_rows_free(session->rows);
	session->master = sd_event_source_disable_unref(session->master);
	session->master_fd = close_fd(session->master_fd);
	session->expectations_fd = close_fd(session->expectations_fd);
}
