/* SPDX-License-Identifier: MIT */
/*
 * ORDER IS SECURITY:
 *  1. who calls, and may that process have a session at all (a confined one would leave its confinement);
 *  2. the message's shape and bounds;
 *  3. how much of this is going on already, before anything costs;
 *  4. the configuration: root's file, then what the caller's environment asks for on top. What would widen is
 *     put into words;
 *  5. the agent's name;
 *  6. polkit: about the launch, and about those words. Nothing has been made until its answer, and what was
 *     read above is what runs, whatever the file says by then;
 *  7. its turn (launch-queue.c): one user's launches do not hold up another's;
 *  8. who calls, once more: a password may have taken minutes;
 *  9. directory, socket, control group, lifeline, request; then the child (launch-start.c).
 */
#include "service/daemon/launch.h"

#include <malloc.h>

#include "dbus/errors.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/call.h"
#include "service/daemon/config-file.h"
#include "service/daemon/launch-start.h"
#include "service/daemon/launch-queue.h"
#include "service/daemon/log.h"
#include "service/daemon/widening.h"
#include "service/plan/profile.h"

#define SENTENCE_MAX 4096u
#define WORKSPACE_SHOWN_MAX 256u
/* So much was asked for since memory was last given back that it is worth the time. */
#define TRIM_BYTES (1u << 20)

void launch_forget_request(Launch *launch)
{
	launch_request_done(&launch->request);
	config_done(&launch->config);
	launch->config = CONFIG_INIT;
	launch->weight = 0;
}

/* Freed memory in small pieces stays with the process unless it is asked to return it (malloc_trim(3)). */
static void give_back(Manager *manager)
{
	if (manager->launches || manager->untrimmed < TRIM_BYTES)
		return;
	manager->untrimmed = 0;
	(void)malloc_trim(0);
}

void launch_free(Launch *launch)
{
	Manager *manager = launch->manager;

	for (Launch **l = &launch->manager->launches; *l; l = &(*l)->next)
		if (*l == launch) {
			*l = launch->next;
			break;
		}
	auth_query_cancel(launch->query);
	sd_bus_slot_unref(launch->probe);
	sd_event_source_disable_unref(launch->listening);
	sd_event_source_disable_unref(launch->deadline);
	close_fd(launch->listening_fd);
	close_fd(launch->lifeline_fd);
	session_group_free(launch->group);
	client_unref(launch->client);
	sd_bus_message_unref(launch->call);
	launch_forget_request(launch);
	caller_facts_done(&launch->facts);
	free(launch->widened);
	free(launch->row_call);
	row_list_done(&launch->rows);
	free(launch);
	give_back(manager);
	launch_queue_moved(manager);
}

void launch_refuse(Launch *launch, const char *error, const char *sentence)
{
	if (launch->kind->refused)
		launch->kind->refused(launch, error, sentence);
	else
		launch_answer_error(launch, error, sentence);
}

/*
 * Whoever asks to verify without a name asks for one agent after the other: that one of them is not installed
 * refuses nobody anything.
 */
static bool is_told_in_log(const LaunchKind *kind, const char *error)
{
	return kind->purpose == PURPOSE_AGENT || !error || !streq(error, CS_ERROR_AGENT_MISSING);
}

void launch_answer_error(Launch *launch, const char *error, const char *sentence)
{
	_cleanup_free_ char *shown = wire_text(error_sentence(error, sentence), SENTENCE_MAX);

	log_line("uid %u: %s of %s refused: %s", launch->client->uid, launch->kind->member,
		 launch->profile->name, shown ? shown : error);
	if (is_told_in_log(launch->kind, error))
		audit_refused(launch->manager->audit, launch->client->uid, launch->kind->member, error,
			      launch->profile->name,
			      launch->session && !launch->session->hidden ? launch->session->id : NULL);
	(void)sd_bus_reply_method_errorf(launch->call, error, "%s",
					 shown ? shown : error_sentence(error, NULL));
	launch_free(launch);
}

static Launch *launch_of(Manager *manager, const Session *session)
{
	for (Launch *l = manager->launches; l; l = l->next)
		if (l->session == session)
			return l;
	return NULL;
}

/* Return: a negative errno with *reterr, for error == name and what sentence says. */
static int refuse_call(sd_bus_error *reterr, int r, const char *name, const char *sentence)
{
	_cleanup_free_ char *shown = NULL;

	if (r == -ENOMEM)
		return sd_bus_error_set_errno(reterr, r);
	shown = wire_text(sentence ? sentence : strerror(-r), SENTENCE_MAX);
	sd_bus_error_setf(reterr, name, "%s", error_sentence(name, shown));
	return r;
}

static int check_account(Launch *launch, sd_bus_error *reterr)
{
	_cleanup_free_ char *problem = NULL;
	const User *user;
	int r;

	r = users_find(launch->manager->users, launch->client->uid, &user);
	if (r == -ENOENT)
		r = refuse(&problem, -EPERM, "A session is refused: uid %u has no account on this machine.",
			   launch->client->uid);
	else if (r < 0)
		(void)refuse(&problem, r, "The account of uid %u cannot be read: %s.", launch->client->uid,
			     strerror(-r));
	else if (!shell_is_login(user->shell))
		r = refuse(&problem, -EPERM,
			   "A session is refused: the account %s has no login shell (%s). A service would "
			   "leave its "
			   "confinement; call as a person.",
			   user->name, user->shell);
	return r < 0 ? refuse_call(reterr, r, CS_ERROR_NESTED_CALLER, problem) : 0;
}

int launch_check_caller(Launch *launch, sd_bus_error *reterr)
{
	_cleanup_free_ char *problem = NULL;
	int r;

	caller_facts_done(&launch->facts);
	r = caller_read(launch->client, &launch->facts, &problem);
	if (r < 0)
		return refuse_call(reterr, r,
				   r == -EPERM ? CS_ERROR_NESTED_CALLER : CS_ERROR_JAIL_UNAVAILABLE, problem);
	return check_account(launch, reterr);
}

int launch_check_limits(const Launch *launch, sd_bus_error *reterr)
{
	_cleanup_free_ char *problem = NULL;
	int r = caller_check_limits(launch->facts.limits, &problem);

	return r < 0 ? refuse_call(reterr, r, CS_ERROR_JAIL_UNAVAILABLE, problem) : 0;
}

/* TIOCSTI and its like type into a terminal whoever holds it: the caller's own never enters a jail. */
static int check_terminal(const Launch *launch, sd_bus_error *reterr)
{
	if (launch->request.terminals == 0 || launch->facts.terminal != launch->request.terminal)
		return 0;
	sd_bus_error_setf(
		reterr, CS_ERROR_BAD_REQUEST,
		"A descriptor is the caller's own terminal; pass the slave of a new pseudo-terminal.");
	return -EINVAL;
}

/* Pidfd, link, lifeline and pipe of each launch, or what it was given; the first two of each session. */
static int check_descriptors(const Launch *launch, size_t n_launches, sd_bus_error *reterr)
{
	size_t n = n_launches * 4 + registry_count(launch->manager->registry) * 2;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || n <= files.rlim_cur / 8 * 3)
		return 0;
	sd_bus_error_setf(
		reterr, CS_ERROR_LIMITS_EXCEEDED,
		"The service may open %llu files, which is not enough for more sessions; raise the limit "
		"that it starts with (LimitNOFILE).",
		(unsigned long long)files.rlim_cur);
	return -EBUSY;
}

int launch_check_pending(const Launch *launch, sd_bus_error *reterr)
{
	size_t n = 0, of_user = 0, weight = 0, weight_of_user = 0;

	for (const Launch *l = launch->manager->launches; l; l = l->next, n++) {
		bool same = l->client->uid == launch->client->uid;

		of_user += same;
		weight += l->weight;
		weight_of_user += same ? l->weight : 0;
	}
	/* What all have together refuses nobody's first one: others cannot use it up. */
	if ((weight > LAUNCHES_BYTES_MAX && of_user > 1) || weight_of_user > LAUNCHES_BYTES_OF_USER_MAX) {
		sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"Launches with long arguments or environments wait already, and together they "
			"may have %u MiB; try again later.",
			LAUNCHES_BYTES_OF_USER_MAX >> 20);
		return -EBUSY;
	}
	if ((n <= LAUNCHES_MAX || of_user == 1) && of_user <= LAUNCHES_OF_USER_MAX)
		return check_descriptors(launch, n, reterr);
	sd_bus_error_setf(reterr, CS_ERROR_LIMITS_EXCEEDED,
			  "%zu launches of yours are under way, and %u may be; try again later.", of_user - 1,
			  LAUNCHES_OF_USER_MAX);
	return -EBUSY;
}

int launch_check_sessions(const Launch *launch, sd_bus_error *reterr)
{
	uint64_t most = config_number(&launch->config, CONFIG_MAX_SESSIONS);
	size_t n = registry_count_of(launch->manager->registry, launch->client->uid);

	/* Those that have no session yet will have one. */
	for (const Launch *l = launch->manager->launches; l; l = l->next)
		n += !l->session && l != launch && l->client->uid == launch->client->uid;
	if (n < most)
		return 0;
	sd_bus_error_setf(reterr, CS_ERROR_LIMITS_EXCEEDED,
			  "You have %zu %s, and max-sessions in %s allows %llu; end one ('claude-sandbox "
			  "sessions' lists them).",
			  n, n == 1 ? "session" : "sessions", CS_CONFIG_PATH, (unsigned long long)most);
	return -EBUSY;
}

/* What is beyond the file is put into words; polkit is asked about them, and they are in the log. */
static int check_widenings(Launch *launch, char *const *widenings, sd_bus_error *reterr)
{
	int r;

	r = widening_words(widenings, &launch->widened);
	if (r == -E2BIG)
		return sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"The environment asks for more than %s gives, and for more than one question can "
			"name (%u bytes); let an administrator write it into the file.",
			CS_CONFIG_PATH, WIDENING_WORDS_MAX);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

static int check_configuration(Launch *launch, sd_bus_error *reterr)
{
	_cleanup_(strings_freep) char **widenings = NULL;
	_cleanup_free_ char *problem = NULL;
	int r;

	r = config_file_read_checked(CS_CONFIG_PATH, launch->manager->users, &launch->config, &problem);
	if (r < 0)
		return refuse_call(reterr, r, CS_ERROR_BAD_CONFIGURATION, problem);
	r = launch_check_sessions(launch, reterr);
	if (r < 0)
		return r;
	r = config_add_environment(&launch->config, launch->request.environment, &widenings, &problem);
	if (r < 0)
		return refuse_call(reterr, r, CS_ERROR_BAD_CONFIGURATION, problem);
	return check_widenings(launch, widenings, reterr);
}

int launch_check_agent(Launch *launch, sd_bus_error *reterr)
{
	const Profile *profile = profile_find(launch->request.agent), *known;
	_cleanup_free_ char *names = NULL;

	if (profile) {
		launch->profile = profile;
		return 0;
	}
	for (size_t i = 0; (known = profile_at(i)); i++) {
		_cleanup_free_ char *before = names;

		if (asprintf(&names, "%s%s%s", before ? before : "", before ? ", " : "", known->name) < 0) {
			names = NULL;
			return sd_bus_error_set_errno(reterr, -ENOMEM);
		}
	}
	sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "The agent '%s' is not known; there are: %s.",
			  launch->request.agent, names ? names : "none");
	return -EINVAL;
}

/* What it fetched would be gone with the jail, or lie where no launch looks for it. */
static int check_update(const Launch *launch, sd_bus_error *reterr)
{
	const char *name = launch->profile->name;

	if (launch->kind->purpose != PURPOSE_AGENT || !profile_updates(launch->profile, launch->request.argv))
		return 0;
	sd_bus_error_setf(
		reterr, CS_ERROR_BAD_REQUEST,
		"%s does not update itself in a jail; run 'sudo claude-sandbox install %s', or for one of "
		"your own '~/.local/bin/%s %s'.",
		name, name, name, launch->request.argv[0]);
	return -EPERM;
}

void launch_continue(Launch *launch)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;

	turns_begin(launch->manager->turns, launch->client->uid);
	if (launch_check_caller(launch, &error) < 0) {
		launch_refuse(launch, error.name, error.message);
		sd_bus_error_free(&error);
		return;
	}
	launch_start(launch);
}

static void on_decided(void *userdata, int result, const char *reason)
{
	Launch *launch = userdata;
	_cleanup_free_ char *sentence = NULL;

	launch->query = NULL;
	if (result >= 0) {
		launch_queue_add(launch);
		return;
	}
	if (launch->widened)
		(void)refuse(
			&sentence, result,
			"The environment asks for more than %s gives: %s. %s Or unset the variable, or let "
			"an administrator write it into the file.",
			CS_CONFIG_PATH, launch->widened, reason);
	launch_refuse(launch, auth_error_name(result), sentence ? sentence : reason);
}

/* Of what callers say, the dialog shows what is escaped and bounded, and never more of a path than its place.
 */
int launch_ask(Launch *launch, sd_bus_message *call, const char *action)
{
	_cleanup_free_ char *workspace = wire_text(launch->request.cwd, WORKSPACE_SHOWN_MAX);
	const char *const details[] = { "agent",   launch->profile->name, "workspace", workspace,
					"widened", launch->widened,       NULL };
	const AuthQuestion question = {
		.actions = { action, launch->widened ? CS_ACTION_WIDEN : NULL },
		.message = launch->widened
				   ? "Authentication is required to start $(agent) in $(workspace) with "
				     "more than the configuration allows: $(widened)"
				   : NULL,
		.details = launch->widened ? details : NULL,
	};

	if (!workspace)
		return -ENOMEM;
	return auth_ask_question(launch->manager->auth, launch->client, call, &question, on_decided, launch,
				 &launch->query);
}

int launch_new(Manager *manager, Client *client, sd_bus_message *call, const LaunchKind *kind, Launch **ret)
{
	ssize_t weight = wire_weigh(call, CLIENT_LAUNCH_BYTES_MAX);
	Launch *launch = calloc(1, sizeof(*launch));
	int r;

	if (weight < 0 || !launch) {
		free(launch);
		return weight < 0 ? (int)weight : -ENOMEM;
	}
	*launch = (Launch){
		.manager = manager,
		.client = client_ref(client),
		.kind = kind,
		.request = LAUNCH_REQUEST_INIT,
		.weight = (size_t)weight,
		.config = CONFIG_INIT,
		.listening_fd = FD_NONE,
		.lifeline_fd = FD_NONE,
		.next = manager->launches,
	};
	manager->launches = launch;
	manager->untrimmed += launch->weight;
	r = call_keep(call, &launch->call);
	if (r < 0) {
		launch_free(launch);
		return r;
	}
	*ret = launch;
	return 0;
}

int launch_begin(Manager *manager, Client *client, sd_bus_message *call, const char *action,
		 const LaunchKind *kind, sd_bus_error *reterr)
{
	Launch *launch;
	int r;

	r = launch_new(manager, client, call, kind, &launch);
	if (r < 0)
		return r;
	r = launch_check_caller(launch, reterr);
	if (r >= 0)
		r = launch_check_limits(launch, reterr);
	if (r >= 0)
		r = kind->read(launch, call, reterr);
	if (r >= 0)
		r = check_terminal(launch, reterr);
	if (r >= 0)
		r = launch_check_pending(launch, reterr);
	if (r >= 0)
		r = check_configuration(launch, reterr);
	if (r >= 0)
		r = launch_check_agent(launch, reterr);
	if (r >= 0)
		r = check_update(launch, reterr);
	if (r >= 0)
		r = launch_ask(launch, call, action);
	if (r < 0) {
		log_line("uid %u: %s refused: %s", client->uid, kind->member,
			 reterr->message ? reterr->message : strerror(-r));
		if (is_told_in_log(kind, reterr->name))
			audit_refused(manager->audit, client->uid, kind->member, reterr->name,
				      launch->profile ? launch->profile->name : NULL, NULL);
		launch_free(launch);
		return r;
	}
	if (r > 0)
		launch_queue_add(launch);
	return 1;
}

static int read_agents_request(Launch *launch, sd_bus_message *call, sd_bus_error *reterr)
{
	return launch_request_read(call, &launch->request, reterr);
}

static void agent_started(Launch *launch)
{
	const Session *session = launch->session;
	int r;

	r = sd_bus_reply_method_return(launch->call, "soh", session->id, session->path, launch->lifeline_fd);
	if (r < 0)
		launch_refuse(launch, SD_BUS_ERROR_FAILED, "The answer could not be sent; try again.");
	else
		launch_free(launch);
}

static void agent_ended(Launch *launch)
{
	launch_refuse(launch, launch->refusal ? launch->refusal : CS_ERROR_SESSION_DIED, launch->sentence);
}

const LaunchKind launch_of_agent = {
	.member = CS_MEMBER_LAUNCH,
	.purpose = PURPOSE_AGENT,
	.read = read_agents_request,
	.started = agent_started,
	.ended = agent_ended,
};

void launch_session_started(Manager *manager, Session *session)
{
	Launch *launch = launch_of(manager, session);

	if (launch)
		launch->kind->started(launch);
}

void launch_session_rows(Manager *manager, Session *session, const LinkRow *rows, uint32_t n)
{
	Launch *launch = launch_of(manager, session);

	if (launch && launch->kind->rows)
		launch->kind->rows(launch, rows, n);
}

void launch_session_failed(Manager *manager, Session *session, const char *error, const char *text)
{
	Launch *launch = launch_of(manager, session);

	/* Its own words reach its own user alone; the name is one of ours all the same. */
	if (launch)
		launch_refuse(launch, error_is_known(error) ? error : CS_ERROR_JAIL_UNAVAILABLE, text);
}

void launch_session_ended(Manager *manager, Session *session)
{
	Launch *launch = launch_of(manager, session);

	if (launch)
		launch->kind->ended(launch);
}

void launch_client_gone(Manager *manager, Client *client)
{
	for (Launch *l = manager->launches, *next; l; l = next) {
		next = l->next;
		if (l->client != client)
			continue;
		/* With the lifeline the terminal is gone; the session knows what to do, and has a time for
		 * it. */
		if (l->session && l->session->keeper) {
			l->lifeline_fd = close_fd(l->lifeline_fd);
			keeper_stop(l->session->keeper, KEEPER_GRACE_USEC, NULL);
		}
		launch_free(l);
	}
}

void launch_end_all(Manager *manager)
{
	while (manager->launches)
		launch_refuse(manager->launches, CS_ERROR_SHUTTING_DOWN, NULL);
}
