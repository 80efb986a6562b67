/* SPDX-License-Identifier: MIT */
#pragma once

/* What the feed's files share. */

#include "dbus/client.h"
#include "dbus/wire.h"
#include "tui/bus-socket.h"
#include "tui/feed.h"

#define FEED_NO_LIMIT UINT64_MAX /* sd_bus_call_async(3): 0 would be a default of 25 s */
#define FEED_AT_ONCE 16u         /* questions about sessions under way at the same time */
#define PROPERTIES_INTERFACE "org.freedesktop.DBus.Properties"

typedef struct Question Question;

struct Feed {
	FeedOptions options;
	Model *model;
	sd_bus *bus;
	char *owner; /* unique name of the service; NULL: it has gone */
	BusSocket *socket;
	sd_event_source *lost;  /* the bus has gone: cleaned up behind its own callback */
	sd_event_source *leave; /* everybody's sessions are seen until then */
	Question *questions;
	Question *check;
	unsigned wants, n_asked;
	bool subscribing, listing, stale_list;
	bool shown;    /* the service has answered once */
	char *runs[2]; /* the word by which rows of Doctor and Verify are known; NULL: none is going */
	uint64_t n_runs;
};

/* A call under way. It is freed when its answer has been looked at, or with the bus. */
struct Question {
	Feed *feed;
	Question *next;
	sd_bus_slot *slot;
	/* reply: what came, an error among them. */
	void (*take)(Question *question, sd_bus_message *reply);
	ModelPart part;
	char *session; /* NULL: of the manager */
	EffectCall call;
	bool interactive, counted;
	FeedDone done;
	void *userdata;
};

/*
 * Send m. *question is taken. Return: 0, or a negative errno, and take is not called.
 */
int feed_ask(Feed *feed, sd_bus_message *m, Question **question);
Question *question_new(Feed *feed, const char *session, void (*take)(Question *, sd_bus_message *));
Question *question_free(Question *question);
DEFINE_CLEANUP(Question, question_free)
/* All of them, without an answer: the bus has gone. */
void feed_forget(Feed *feed);

/* A call of the manager, or of a session. */
int feed_message(Feed *feed, const char *session, const char *member, sd_bus_message **ret);
/* What to say about an error reply. Return: to be freed, or NULL without memory. */
char *feed_sentence(const Feed *feed, int error, const sd_bus_error *e);
void feed_changed(Feed *feed);

/* The check under way is no longer wanted. */
void feed_drop_check(Feed *feed);
/* The properties of a session, which may not be known yet. */
void feed_ask_details(Feed *feed, const char *id);
/* Everybody's sessions came. */
void feed_take_all(Feed *feed, sd_bus_message *reply);
/* Ask for what is wanted, missing, and not asked for yet. */
void feed_pump(Feed *feed);

/* Whatever the bus tells unasked. Return: 0 or a negative errno. */
int feed_listen(Feed *feed);
/* The service has another owner, or (NULL) none. */
void feed_set_owner(Feed *feed, const char *owner);
/* Become its subscriber. start: begin the service where it does not run. */
void feed_subscribe(Feed *feed, bool start);
void feed_lose_bus(Feed *feed);
/* The row of a run came by signal. */
void feed_take_row(Feed *feed, sd_bus_message *m);
/* Runs end with the connection. */
void feed_end_runs(Feed *feed, const char *sentence);
