/* SPDX-License-Identifier: MIT */
#pragma once

/* What the service has, and what it decides about it. It speaks through manager-bus and session-bus. */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/daemon/allow-seen.h"
#include "service/daemon/audit.h"
#include "service/daemon/auth.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/client.h"
#include "service/daemon/config-watch.h"
#include "service/daemon/keeper.h"
#include "service/daemon/registry.h"
#include "service/daemon/signals.h"
#include "service/daemon/turns.h"
#include "service/daemon/users.h"

/* Without session, subscriber or request. */
#define MANAGER_IDLE_USEC (30 * USEC_PER_SEC)

typedef struct Launch Launch;
typedef struct Stop Stop;
typedef struct Sight Sight;
typedef struct TableQuery TableQuery;
typedef struct AllowCall AllowCall;
typedef struct VerifyRun VerifyRun;
typedef struct LogCall LogCall;

typedef struct Manager {
	sd_event *event;
	sd_bus *bus;
	Turns *turns; /* of users, for everything that costs time */
	Registry *registry;
	Clients *clients;
	Auth *auth;
	Users *users;
	Cgroups *cgroups;
	Signals signals;
	Audit *audit;
	AllowSeen *allow_seen;
	Launch *launches;          /* not answered yet */
	uint64_t last_turn;        /* of the launches, see launch-queue.h */
	Stop *stops;               /* likewise */
	Sight *sights;             /* likewise: who asks to see what others run */
	TableQuery *table_queries; /* what sessions are asked for callers */
	AllowCall *allow_calls;    /* about addresses, not ended yet */
	LogCall *log_calls;        /* that read the audit log */
	VerifyRun *verify_runs;    /* of sessions that check their own jail for callers */
	size_t untrimmed;          /* bytes that launches asked for since memory was given back */
	bool stopping;             /* the service ends; nothing new begins */
	bool named;                /* it has its name and is at work */
	bool unit;                 /* systemd started it, and ends who has given the name away */
	bool leaving;              /* nobody needed it: what has come since then is served, then it ends */
	bool released;             /* the name is given away for good */
	bool machine_started;      /* no service has run since then: what was running has ended with it */
	sd_event_source *idle, *after, *late, *terminate, *interrupt;
	sd_event_source *launch_turns; /* a launch has gone: whose turn is it? */
	sd_event_source *settling;     /* sessions were taken over, and some have not said how they are */
	ConfigWatch *config_watch;
} Manager;

/* bus is attached to event and started. Return: 0 or a negative errno. */
int manager_new(sd_event *event, sd_bus *bus, Manager **ret);
Manager *manager_free(Manager *manager);
DEFINE_CLEANUP(Manager, manager_free)

/* Ask for the name; sessions of an earlier service are taken over when it is ours. Return: 0 or a negative
 * errno. */
int manager_run(Manager *manager);
/* Somebody wants something: the time of idleness begins anew. */
void manager_touch(Manager *manager);

/* Somebody has subscribed, or a session listens, or does no longer. */
void manager_subscribers_changed(Manager *manager);

/* The keeper's events of every session, for launch and adopt. */
extern const KeeperEvents manager_keeper_events;

/*
 * Stop a session, as the sender of call wants it; call is answered when the session has ended, or refused.
 * Return: 1 when the answer comes later, or a negative errno with *reterr.
 */
int manager_stop(Manager *manager, Client *client, sd_bus_message *call, const char *id, uint64_t grace_usec,
		 const char *action, sd_bus_error *reterr);
