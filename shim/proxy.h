/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The copy between the person's terminal and the agent's PTY, both ways at once, on the caller's event loop.
 * Each way has one bounded buffer; a side that does not take bytes stops the other from being read, nothing
 * else.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "shim/modes.h"
#include "shim/terminal.h"

#define PROXY_OUT_BYTES (128u * 1024)
#define PROXY_IN_BYTES 4096u /* what a PTY holds of input that nobody reads (N_TTY_BUF_SIZE) */

typedef struct Proxy Proxy;

typedef struct ProxyEvents {
	void (*drained)(void *userdata); /* after proxy_drain(): the last byte is written */
	void (*gone)(void *userdata);    /* the terminal was hung up */
	void (*forward)(void *userdata); /* the job was brought to the foreground without having stopped */
	void *userdata;
} ProxyEvents;

/* Takes no bytes before proxy_start(). terminal must outlive the proxy; master_fd becomes its own. */
int proxy_new(sd_event *event, Terminal *terminal, int master_fd, const ProxyEvents *events, Proxy **ret);
Proxy *proxy_free(Proxy *proxy);
DEFINE_CLEANUP(Proxy, proxy_free)

/* Claim the terminal and begin to copy. */
int proxy_start(Proxy *proxy);
/*
 * Before launch stops: write what the agent has said, give the terminal back its modes. Waits for the
 * terminal to take it, at most a second.
 */
void proxy_suspend(Proxy *proxy);
/*
 * After launch was continued: the terminal as it was when we left it, and the size. Return: whether the
 * agent's modes had to be set again, so that it should paint again too.
 */
bool proxy_resume(Proxy *proxy);
/* Is the terminal another job's, as far as the agent has been told? */
bool proxy_is_behind(const Proxy *proxy);
/*
 * The agent stopped because it may not use the terminal now. Return: whether it may again since; it is to go
 * on then.
 */
bool proxy_has_come_forward(const Proxy *proxy);
/* The size of the terminal changed. Return: whether the kernel told the agent. */
bool proxy_resize(Proxy *proxy);
/* Nothing of the agent runs any more: write what is left, then call drained, once. */
void proxy_drain(Proxy *proxy);
/* At the end: the agent's modes undone, the terminal's own given back, typed-ahead input dropped. */
void proxy_finish(Proxy *proxy);
