/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The entry that libFuzzer and replay.c call; size bytes of hostile input. Return: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
