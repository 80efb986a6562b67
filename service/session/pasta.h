/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * pasta, the wire: a child in the foreground that carries frames between the tap jail0 and sockets of the
 * host. It decides nothing; addresses, routes and the filter are there before it comes and stay when it goes.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "dbus/base.h"

typedef struct Pasta Pasta;

/* pasta has ended and is reaped. line: the last line of its error output, or NULL. */
typedef void (*PastaEnded)(void *userdata, const char *line);

/*
 * How pasta joins the holder's namespaces. By descriptors that it inherits it needs no right to look at another
 * process, which AppArmor's profile in Debian 12's package does not give; by the process it opens them itself.
 */
typedef enum PastaWay {
	PASTA_BY_DESCRIPTORS,
	PASTA_BY_PROCESS,
} PastaWay;

typedef struct PastaOptions {
	const char *path; /* program_find() */
	uid_t uid;
	gid_t gid;
	pid_t holder; /* whose namespaces are joined */
	PastaWay way;
	uint32_t forwarder;  /* D in host byte order, or 0 */
	uint32_t server;     /* the host's, which D is forwarded to, or 0: none */
	bool knows_dns_host; /* else it reads the server in resolv.conf(5) itself */
} PastaOptions;

/* Does this pasta have the option --dns-host (2024 and later)? Its table of options, in the file at path, tells. */
bool pasta_knows_dns_host(const char *path);

/* Start it. Return: 0, or a negative errno with *ret_problem. */
int pasta_start(sd_event *event, const PastaOptions *options, PastaEnded ended, void *userdata, Pasta **ret,
		char **ret_problem);
/*
 * Does it run with the arguments that these options make, as the kernel tells them (proc_pid_cmdline(5))?
 * Once it has made the wire; before, it may not have been executed yet. Return: 0; -EREMCHG or another
 * negative errno with *ret_problem.
 */
int pasta_read_back(const Pasta *pasta, const PastaOptions *options, char **ret_problem);
/* The profile of AppArmor that it runs under ("pasta (enforce)"). Return: to be freed; NULL where there is none. */
char *pasta_profile(const Pasta *pasta);
/* Kill, without waiting for its death; ended is not called any more. */
void pasta_end(Pasta *pasta);
/* Kill, reap, close. Return: NULL. ended is not called. */
Pasta *pasta_free(Pasta *pasta);
DEFINE_CLEANUP(Pasta, pasta_free)

/* The arguments, argv[0] first, NULL-terminated, to be freed with strings_free(); NULL without memory. */
char **pasta_arguments(const PastaOptions *options);
