/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/* SipHash-2-4 (Aumasson and Bernstein, 2012) of n bytes. */
uint64_t siphash(const uint8_t key[static 16], const void *bytes, size_t n);
