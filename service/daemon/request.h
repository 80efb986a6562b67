/* SPDX-License-Identifier: MIT */
#pragma once

/* The messages of callers, checked: bounds before memory, shapes before meaning. */

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "service/link/slots.h"

#define REQUEST_AGENT_MAX 64u
/* execve(2): MAX_ARG_STRLEN, 32 pages with the end of the string. */
#define REQUEST_STRING_MAX (128u * 1024 - 1)

typedef struct LaunchRequest {
	char *agent;
	char **argv, **environment;
	char *cwd;
	int fds[SLOTS_MAX];                 /* owned; FD_NONE for a slot that is empty */
	uint32_t descriptors;               /* bit n: slot n is not */
	uint8_t further[SLOTS_FURTHER_MAX]; /* their keys */
	uint32_t terminals;                 /* bit n: it is a terminal */
	dev_t terminal;                     /* which, if any */
	bool background;                    /* it is another job's at the moment */
} LaunchRequest;

#define LAUNCH_REQUEST_INIT ((LaunchRequest){ .fds = SLOTS_NONE })

void launch_request_done(LaunchRequest *request);

/*
 * Read the agent, environment and directory of a Verify message; what follows is its options. Return: as
 * launch_request_read().
 */
int verify_request_read(sd_bus_message *m, LaunchRequest *ret, sd_bus_error *reterr);

/*
 * Read a Launch message. It keeps nothing of m: descriptors are duplicates. Return: 0, or a negative errno
 * with *reterr set to BadRequest or LimitsExceeded and a sentence.
 */
int launch_request_read(sd_bus_message *m, LaunchRequest *ret, sd_bus_error *reterr);

/*
 * May this descriptor become 0, 1 or 2 of an agent? Terminals that are the slave of a pseudo-terminal,
 * regular files, pipes, FIFOs, connected stream sockets of AF_UNIX and /dev/null, zero, full, random, urandom
 * may. Never asks the file system behind it. *ret_terminal is the terminal's number, 0 for others.
 * Return: 0, or -EINVAL with *ret_problem, what it is instead.
 */
int descriptor_check(int fd, dev_t *ret_terminal, char **ret_problem);

/* The longest option of type 's', in bytes. */
#define REQUEST_OPTION_MAX 128u

/* An option that a member takes: its key, its one-letter type, and where its value goes: a number for 't' and
 * 'b', a text (allocated, replaced) for 's' and OPTION_BYTES, strings (likewise) for OPTION_VECTOR. */
#define OPTION_BYTES 'B'  /* "ay", at most a path's length */
#define OPTION_VECTOR 'V' /* "aay", as large as an environment may be */
typedef struct OptionSpec {
	const char *key;
	char type;
	uint64_t *value;
	char **text;
	char ***vector;
} OptionSpec;

/*
 * Read an a{sv} of exactly these options; specs may be NULL with n_specs 0. Return: 0, or a negative errno
 * with *reterr (BadRequest naming the key).
 */
int options_read(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, sd_bus_error *reterr);
