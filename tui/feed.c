/* SPDX-License-Identifier: MIT */
#include "tui/feed-state.h"

#include <assert.h>

#include "dbus/client-remote.h"

void feed_changed(Feed *feed)
{
	feed->options.changed(feed->options.userdata);
}

char *feed_sentence(const Feed *feed, int error, const sd_bus_error *e)
{
	return feed->model->host ? client_remote_sentence(feed->model->host, error, e)
				 : client_sentence(error, e);
}

/* ---- questions ---- */

Question *question_new(Feed *feed, const char *session, void (*take)(Question *, sd_bus_message *))
{
	_cleanup_(question_freep) Question *question = calloc(1, sizeof(*question));

	if (!question)
		return NULL;
	question->feed = feed;
	question->take = take;
	if (session && !(question->session = strdup(session)))
		return NULL;
	return TAKE_PTR(question);
}

Question *question_free(Question *question)
{
	if (!question)
		return NULL;
	sd_bus_slot_unref(question->slot);
	free(question->session);
	free(question);
	return NULL;
}

static void unlink_question(Feed *feed, const Question *question)
{
	for (Question **at = &feed->questions; *at; at = &(*at)->next) {
		if (*at != question)
			continue;
		*at = question->next;
		if (question->counted)
			feed->n_asked--;
		if (feed->check == question)
			feed->check = NULL;
		return;
	}
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(question_freep) Question *question = userdata;
	Feed *feed = question->feed;

	unlink_question(feed, question);
	question->take(question, reply);
	feed_pump(feed);
	feed_changed(feed);
	return 0;
}

int feed_ask(Feed *feed, sd_bus_message *m, Question **question)
{
	Question *taken = *question;
	int r;

	r = sd_bus_call_async(feed->bus, &taken->slot, m, on_reply, taken, FEED_NO_LIMIT);
	if (r < 0)
		return r;
	if (taken->counted)
		feed->n_asked++;
	taken->next = feed->questions;
	feed->questions = TAKE_PTR(*question);
	return 0;
}

void feed_drop_check(Feed *feed)
{
	Question *check = feed->check;

	if (check) {
		unlink_question(feed, check);
		question_free(check);
	}
}

void feed_forget(Feed *feed)
{
	while (feed->questions) {
		Question *question = feed->questions;

		unlink_question(feed, question);
		question_free(question);
	}
}

int feed_message(Feed *feed, const char *session, const char *member, sd_bus_message **ret)
{
	_cleanup_free_ char *path = NULL;

	if (!feed->bus)
		return -ENOTCONN;
	if (asprintf(&path, "%s%s%s", session ? CS_SESSION_ROOT : CS_MANAGER_PATH, session ? "/" : "",
		     session ?: "") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return sd_bus_message_new_method_call(feed->bus, ret, CS_BUS_NAME, path,
					      session ? CS_SESSION_INTERFACE : CS_MANAGER_INTERFACE, member);
}

/* ---- the connection ---- */

void feed_set_owner(Feed *feed, const char *owner)
{
	free(feed->owner);
	feed->owner = owner ? strdup(owner) : NULL;
}

static void set_link(Feed *feed, ModelLink link, const char *sentence)
{
	(void)model_set_link(feed->model, link, sentence);
}

/* What of the manager has no signal of its own, or may have been missed. */
static void make_all_stale(Feed *feed)
{
	feed->stale_list = true;
	model_make_stale(feed->model, NULL, ~0u);
}

static void take_subscription(Question *question, sd_bus_message *reply)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	Feed *feed = question->feed;

	feed->subscribing = false;
	/* What is told next says more. */
	if (error && sd_bus_is_open(feed->bus) <= 0)
		return;
	if (error) {
		_cleanup_free_ char *sentence = feed_sentence(feed, -sd_bus_message_get_errno(reply), error);

		/* Without leave to start it, that it does not run is what was known before. */
		if (feed->model->link != LINK_NO_SERVICE || question->interactive)
			set_link(feed, LINK_NO_SERVICE, sentence);
		return;
	}
	feed_set_owner(feed, sd_bus_message_get_sender(reply));
	feed->shown = true;
	/* What happens in its directory is nothing to wake up for any more. */
	feed->socket = bus_socket_free(feed->socket);
	set_link(feed, LINK_UP, NULL);
	make_all_stale(feed);
}

void feed_subscribe(Feed *feed, bool start)
{
	_cleanup_(question_freep) Question *question = NULL;
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	if (feed->subscribing)
		return;
	question = question_new(feed, NULL, take_subscription);
	r = question ? feed_message(feed, NULL, CS_MEMBER_SUBSCRIBE, &m) : -ENOMEM;
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, start);
	if (r >= 0) {
		question->interactive = start;
		r = feed_ask(feed, m, &question);
	}
	if (r < 0) {
		_cleanup_free_ char *sentence = feed_sentence(feed, r, NULL);

		set_link(feed, LINK_NO_SERVICE, sentence);
		return;
	}
	feed->subscribing = true;
}

static void connect_bus(Feed *feed);

static void on_socket(void *userdata)
{
	Feed *feed = userdata;

	if (!feed->bus) {
		connect_bus(feed);
		feed_changed(feed);
	}
}

static int open_at(const char *path, sd_bus **ret)
{
	_cleanup_free_ char *address = NULL;

	if (asprintf(&address, "unix:path=%s", path) < 0) {
		address = NULL;
		return -ENOMEM;
	}
	return client_open_address(address, ret);
}

static int open_bus(Feed *feed, sd_bus **ret, sd_bus_error *reterr)
{
	if (feed->model->host)
		return client_open_remote(feed->model->host, ret, reterr);
	return feed->options.path ? open_at(feed->options.path, ret) : client_open(ret, reterr);
}

static void fail_bus(Feed *feed, int error, const sd_bus_error *e)
{
	_cleanup_free_ char *sentence = feed_sentence(feed, error, e), *again = NULL;

	if (sentence && feed->model->host && feed->shown &&
	    asprintf(&again, "%s; press R to connect again", sentence) < 0)
		again = NULL;
	set_link(feed, LINK_NO_BUS, again ?: sentence);
	/* ssh may ask for a password on the terminal: it is started again only when a person says so. */
	if (feed->model->host)
		return;
	if (!feed->socket)
		(void)bus_socket_new(feed->options.event, feed->options.path ?: CLIENT_BUS_PATH, on_socket,
				     feed, &feed->socket);
	else
		bus_socket_failed(feed->socket);
}

static void connect_bus(Feed *feed)
{
	_cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	r = open_bus(feed, &feed->bus, &error);
	if (r >= 0)
		r = sd_bus_attach_event(feed->bus, feed->options.event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		r = feed_listen(feed);
	if (r < 0) {
		feed->bus = sd_bus_close_unref(feed->bus);
		fail_bus(feed, r, &error);
		return;
	}
	set_link(feed, LINK_CONNECTING, NULL);
	feed_subscribe(feed, true);
}

static int on_lost(sd_event_source *source, void *userdata)
{
	Feed *feed = userdata;

	feed->lost = sd_event_source_disable_unref(feed->lost);
	feed_forget(feed);
	feed->subscribing = feed->listing = false;
	feed->leave = sd_event_source_disable_unref(feed->leave);
	feed->model->all = false;
	feed_set_owner(feed, NULL);
	feed->bus = sd_bus_close_unref(feed->bus);
	feed_end_runs(feed, "the connection to the service broke before all rows had come; run it again");
	fail_bus(feed, -ECONNRESET, NULL);
	/* It may have come again before anybody watched for it. */
	if (!feed->model->host)
		connect_bus(feed);
	feed_changed(feed);
	return 0;
}

void feed_lose_bus(Feed *feed)
{
	if (!feed->lost && sd_event_add_defer(feed->options.event, &feed->lost, on_lost, feed) < 0)
		feed->lost = NULL;
}

int feed_new(const FeedOptions *options, Feed **ret)
{
	Feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return -ENOMEM;
	feed->options = *options;
	feed->model = options->model;
	connect_bus(feed);
	*ret = feed;
	return 0;
}

Feed *feed_free(Feed *feed)
{
	if (!feed)
		return NULL;
	feed_forget(feed);
	sd_event_source_disable_unref(feed->lost);
	sd_event_source_disable_unref(feed->leave);
	bus_socket_free(feed->socket);
	sd_bus_close_unref(feed->bus);
	free(feed->owner);
	for (size_t i = 0; i < ELEMENTSOF(feed->runs); i++)
		free(feed->runs[i]);
	free(feed);
	return NULL;
}

void feed_want(Feed *feed, unsigned parts)
{
	feed->wants = parts;
	feed_pump(feed);
}

bool feed_is_connecting(const Feed *feed)
{
	return feed->model->link == LINK_CONNECTING;
}

void feed_refresh(Feed *feed)
{
	if (!feed->bus) {
		connect_bus(feed);
	} else if (feed->model->link != LINK_UP) {
		feed_subscribe(feed, true);
	} else {
		make_all_stale(feed);
		feed_pump(feed);
	}
	feed_changed(feed);
}
