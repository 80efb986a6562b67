/* SPDX-License-Identifier: MIT */
#pragma once

/* The resolv.conf(5) of a session. Pure but for resolver_read(). */

#include "dbus/base.h"

#define RESOLVER_BYTES_MAX (64u * 1024)

typedef struct Resolver {
	char *text;         /* what is placed inside; NULL: nothing to place */
	char *servers;      /* the host's, as pasta reads them: one behind the other */
	unsigned n_servers; /* name servers of the host, of either family */
	unsigned n_ipv4;    /* those that pasta (IPv4 only) can forward to */
} Resolver;

void resolver_done(Resolver *resolver);

/*
 * From the host's text to the session's: its "search", "domain" and "options" lines stay, in order. With
 * forwarder (host byte order) that is the only name server, where the host has one that it can forward to;
 * with 0 and keep_servers the host's own stay (a session that shares the host's network); with 0 alone there
 * is none. CR and white space at the ends are tolerated, comments go. Return: 0 or -ENOMEM.
 */
int resolver_render(const char *text, size_t size, uint32_t forwarder, bool keep_servers, Resolver *ret);
/* The first of them that pasta can forward to, in host byte order; 0: there is none. */
uint32_t resolver_first_ipv4(const Resolver *resolver);
/*
 * Read /etc/resolv.conf, at most RESOLVER_BYTES_MAX. A missing file is an empty one. Return: 0; -E2BIG; a
 * negative errno. *ret is to be freed.
 */
int resolver_read(char **ret, size_t *ret_size);
