/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the service says becomes the model: sd-bus on the event loop, every call asynchronous, signals instead
 * of questions. When the service goes, its name's next owner brings everything back; when the bus itself
 * goes, its socket is watched for. Nothing here waits, and while nothing happens nothing runs.
 *
 * Signals are believed only from the owner of the service's name: another user of the bus may send us any.
 */

#include <systemd/sd-event.h>

#include "tui/view.h"

typedef struct Feed Feed;

typedef struct FeedOptions {
	sd_event *event;
	Model *model;     /* outlives the feed; its host is where to look */
	const char *path; /* of the bus's socket; NULL: the system bus */
	/* Something came in and the model may be another. */
	void (*changed)(void *userdata);
	void *userdata;
} FeedOptions;

/* Begin to connect. Return: 0, -ENOMEM, or the error of the event loop. That no bus answers is no error. */
int feed_new(const FeedOptions *options, Feed **ret);
Feed *feed_free(Feed *feed);
DEFINE_CLEANUP(Feed, feed_free)

/* Parts that are looked at from now on: what is not known of them, or old, is asked for. */
void feed_want(Feed *feed, unsigned parts);
/* Ask for everything once more; connect, and start the service, where they have gone. */
void feed_refresh(Feed *feed);
/* Is a connection being made that has not failed yet? */
bool feed_is_connecting(const Feed *feed);

/* How a call ended. */
typedef struct FeedAnswer {
	const char *error;        /* NULL: well; else a sentence */
	bool needs_password;      /* it was not interactive, and a password would have helped */
	char *const *unconfirmed; /* sessions that did not confirm, or NULL */
} FeedAnswer;
typedef void (*FeedDone)(const FeedAnswer *answer, void *userdata);

/* A call of the service (effect->call). done is called once, later. Return: 0 or a negative errno. */
int feed_call(Feed *feed, const Effect *effect, bool interactive, FeedDone done, void *userdata);
/* Only whether effect, CALL_ADD, could be done; a later check makes the one before silent. */
int feed_check(Feed *feed, const Effect *effect, FeedDone done, void *userdata);
/* EFFECT_RUN: Verify or Doctor; its rows come into the model. Return: 0, -EBUSY while one is going, ... */
int feed_run(Feed *feed, const Effect *effect);
