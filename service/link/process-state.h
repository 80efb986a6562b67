/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Did somebody stop that process, by a signal or as its tracer (proc(5), the states T and t)? It tells who says nothing
 * because it may not run from who is slow. false where nothing can be read of it.
 */
bool process_is_stopped(pid_t pid);
