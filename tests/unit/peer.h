/* SPDX-License-Identifier: MIT */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include "dbus/base.h"

/*
 * The service's part is played by a child at the other end of a socket pair: real messages, no bus. What it
 * answers is chosen before it is made.
 */
typedef struct Peer {
	sd_bus *bus;
	pid_t pid;
} Peer;

typedef int (*AnswerFunction)(sd_bus_message *call, sd_bus_message *reply);

static AnswerFunction peer_answer;
static const char *peer_error_name, *peer_error_message;

static int peer_filter(sd_bus_message *call, void *userdata, sd_bus_error *reterr)
{
	sd_bus_message *reply = NULL;
	int r;

	if (!sd_bus_message_is_method_call(call, NULL, NULL))
		return 0;
	if (peer_error_name)
		return sd_bus_reply_method_errorf(call, peer_error_name, "%s", peer_error_message);
	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = peer_answer(call, reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	return r < 0 ? r : 1;
}

static _noreturn_ void peer_run(int fd)
{
	sd_bus *bus = NULL;
	sd_id128_t id = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);
	int r;

	alarm(30);
	if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 || sd_bus_set_server(bus, true, id) < 0 ||
	    sd_bus_set_anonymous(bus, true) < 0 || sd_bus_add_filter(bus, NULL, peer_filter, NULL) < 0 ||
	    sd_bus_start(bus) < 0)
		_exit(1);
	for (;;) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
		if (r < 0)
			_exit(0);
	}
}

static _unused_ Peer peer_new(AnswerFunction answer)
{
	Peer peer = { 0 };
	int fds[2];

	peer_answer = answer;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	peer.pid = fork();
	assert_true(peer.pid >= 0);
	if (peer.pid == 0) {
		close(fds[0]);
		peer_run(fds[1]);
	}
	close(fds[1]);
	assert_true(sd_bus_new(&peer.bus) >= 0);
	assert_true(sd_bus_set_fd(peer.bus, fds[0], fds[0]) >= 0);
	assert_true(sd_bus_start(peer.bus) >= 0);
	return peer;
}

static _unused_ Peer peer_new_failing(const char *name, const char *message)
{
	Peer peer;

	peer_error_name = name;
	peer_error_message = message;
	peer = peer_new(NULL);
	peer_error_name = peer_error_message = NULL;
	return peer;
}

static _unused_ void peer_done(Peer *peer)
{
	int status;

	sd_bus_close_unref(peer->bus);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	assert_int_equal(status, 0);
}
