/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one encoding below every codec of ours: little-endian integers and counted byte strings, written into a
 * buffer that has a limit and read back without ever trusting a length. libc only, no allocation while
 * reading except where a function says so.
 *
 * Both sides are sticky: after the first error every further call does nothing, so a codec is a straight list
 * of fields and one check at the end.
 */

#include "dbus/base.h"

typedef struct PackWriter {
	uint8_t *data;
	size_t size, allocated;
	size_t limit; /* bytes; reaching past it is -EMSGSIZE */
	int error;    /* 0, -EMSGSIZE or -ENOMEM */
} PackWriter;

typedef struct PackReader {
	const uint8_t *data;
	size_t size, offset;
	int error; /* 0, -EBADMSG (short, or a value out of range) or -ENOMEM */
} PackReader;

/* The largest errno that a kernel has: what a peer says is held against it before it is negated. */
#define PACK_ERRNO_MAX 4095

void pack_init(PackWriter *w, size_t limit);
void pack_done(PackWriter *w);
void pack_u8(PackWriter *w, uint8_t value);
void pack_u32(PackWriter *w, uint32_t value);
void pack_u64(PackWriter *w, uint64_t value);
void pack_i32(PackWriter *w, int32_t value);
/* n bytes, preceded by their count. */
void pack_bytes(PackWriter *w, const void *bytes, size_t n);
/* A string without its NUL; NULL is written as an empty one. */
void pack_string(PackWriter *w, const char *string);
/* A NULL-terminated vector of strings, preceded by their count; NULL is an empty one. */
void pack_strings(PackWriter *w, char *const *strings);

void unpack_init(PackReader *r, const void *data, size_t size);
uint8_t unpack_u8(PackReader *r);
uint32_t unpack_u32(PackReader *r);
uint64_t unpack_u64(PackReader *r);
int32_t unpack_i32(PackReader *r);
/* A value that must be below max (an enum); anything else is -EBADMSG and 0. */
uint32_t unpack_enum(PackReader *r, uint32_t max);
/* A view into the buffer, at most max bytes; *ret_n is 0 after an error. */
const void *unpack_bytes(PackReader *r, size_t max, size_t *ret_n);
/* Allocates. A string of at most max bytes without NUL bytes; NULL after an error. */
char *unpack_string(PackReader *r, size_t max);
/* Allocates. At most max_strings strings of at most max bytes each; NULL after an error. Free with
 * strings_free(). */
char **unpack_strings(PackReader *r, size_t max_strings, size_t max);
/* Return: 0 when everything was read and nothing is left over, else the error (-EBADMSG for trailing bytes).
 */
int unpack_finish(const PackReader *r);

/* Free a NULL-terminated vector and its strings. Return: NULL. */
char **strings_free(char **strings);
DEFINE_CLEANUP(char *, strings_free)
size_t strings_count(char *const *strings);
bool strings_have(char *const *strings, const char *string);
/* Append a copy of string. Return: 0 or -ENOMEM, the vector unchanged then. */
int strings_append(char ***strings, const char *string);
int strings_appendf(char ***strings, const char *format, ...) _printf_(2, 3);
/* Return: a copy, or NULL without memory. */
char **strings_copy(char *const *strings);
