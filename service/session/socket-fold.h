/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Too many sockets to be covered one by one: a directory that holds many of them is covered as a whole, if it
 * is the user's and nothing that the agent needs can lie in it.
 */

#include "service/session/sockets.h"

/*
 * Replace paths (NULL-terminated; the strings are the list's) by directories, fullest first, until there are
 * max or fewer. A directory is taken that lies below a shown one, and holds none, or that is this user's and
 * this user not root; each is told in *warnings. Return: 0; -E2BIG when there is no such directory any more,
 * with what remains in paths, the fullest directory first; -ENOMEM.
 */
int socket_fold(char **paths, size_t max, const SocketPlaces *places, char ***warnings);
