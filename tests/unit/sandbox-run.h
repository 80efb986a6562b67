/* SPDX-License-Identifier: MIT */
#pragma once

/* The command, with a peer in the service's place. */

#include "dbus/client.h"
#include "shim/sandbox.h"
#include "tests/unit/peer.h"

#define STRINGS_MAX 16

/* Runs the command with a peer in the service's place. */
typedef struct Run {
	char *out, *err;
	int status;
} Run;

static Peer *service;
static char asked_host[64];
static const char *run_directory;
static int (*run_read_link)(const char *path, char **ret) = sandbox_read_link;
static char handed_over[256];

static _unused_ int open_peer(const char *host, sd_bus **ret, sd_bus_error *reterr)
{
	snprintf(asked_host, sizeof(asked_host), "%s", host ?: "");
	if (!service) {
		sd_bus_error_set(reterr, SD_BUS_ERROR_NO_SERVER, NULL);
		return -ENOENT;
	}
	*ret = sd_bus_ref(service->bus);
	return 0;
}

static _unused_ int note_handoff(const char *agent, char *const *arguments, char *const *environment)
{
	size_t n = (size_t)snprintf(handed_over, sizeof(handed_over), "%s", agent);

	assert_true(environment == environ);
	for (; arguments && *arguments; arguments++)
		n += (size_t)snprintf(handed_over + n, sizeof(handed_over) - n, "|%s", *arguments);
	return -ENOENT;
}

/* words: one command line, split at spaces. */
static _unused_ size_t split(char *words, char *argv[static STRINGS_MAX])
{
	size_t n = 0;

	for (char *rest, *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(n < STRINGS_MAX - 1);
		argv[n++] = word;
	}
	argv[n] = NULL;
	return n;
}

static _unused_ Run run(const char *line)
{
	_cleanup_free_ char *words = strdup(line);
	char *argv[STRINGS_MAX];
	size_t out_size, err_size, n;
	Run result = { 0 };
	SandboxContext context = {
		.style = { .utf8 = true },
		.now_usec = UINT64_C(1700000000000000) + 3 * 3600 * USEC_PER_SEC,
		.environment = environ,
		.directory = run_directory,
		.read_link = run_read_link,
		.open_bus = open_peer,
		.handoff = note_handoff,
	};

	assert_non_null(words);
	n = split(words, argv);
	context.out = open_memstream(&result.out, &out_size);
	context.err = open_memstream(&result.err, &err_size);
	assert_true(context.out && context.err);
	result.status = sandbox_run((int)n, argv, &context);
	assert_int_equal(fclose(context.out), 0);
	assert_int_equal(fclose(context.err), 0);
	return result;
}

/* peer is used up: a command closes its bus. NULL: there is no bus. */
static _unused_ void expect(Peer *peer, const char *line, int status, const char *out, const char *err)
{
	Run result;

	service = peer;
	result = run(line);
	service = NULL;
	if (peer)
		peer_done(peer);
	assert_string_equal(result.err, err);
	assert_string_equal(result.out, out);
	assert_int_equal(result.status, status);
	free(result.out);
	free(result.err);
}

static _unused_ void expect_answer(AnswerFunction answer, const char *line, int status, const char *out,
				   const char *err)
{
	Peer peer = peer_new(answer);

	expect(&peer, line, status, out, err);
}

static _unused_ void expect_refusal(const char *name, const char *message, const char *line, int status,
				    const char *err)
{
	Peer peer = peer_new_failing(name, message);

	expect(&peer, line, status, "", err);
}
