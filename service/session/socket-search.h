/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Listening sockets whose file is not where their name says: renamed since, bound by a relative path, or
 * mounted at a second place. A file is known by its inode (service/net/unix-sockets.h); looked at are the
 * directories in which such sockets were bound, the working directories of this user's processes (of all, for
 * root), and the places of mounts. Every part is bounded, and what another ordinary user made is passed over:
 * it must not use up the bounds.
 */

#include "service/net/unix-sockets.h"
#include "service/session/sockets.h"

/*
 * Call each for every path that is found and that an agent would see; some of them twice. Return: 0, or what
 * each returned if not 0.
 */
int socket_search(const UnixSockets *sockets, const SocketPlaces *places,
		  int (*each)(void *userdata, const char *path), void *userdata);
