/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How our values lie in bus messages (D-Bus specification, "Marshaling"): bytes that need not be UTF-8 as
 * "ay", vectors of them as "aay", tables as arrays of structs. What is read is bounded before memory is taken
 * and never holds a NUL inside; what is written as a string is valid UTF-8 without control characters.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"

static inline void sd_bus_message_unref_p(sd_bus_message **m)
{
	*m = sd_bus_message_unref(*m);
}

static inline void sd_bus_error_done_p(sd_bus_error *e)
{
	sd_bus_error_free(e);
}

#define _cleanup_message_ _cleanup_(sd_bus_message_unref_p)
#define _cleanup_bus_error_ _cleanup_(sd_bus_error_done_p)

/*
 * A copy of text that may be shown and sent as a string: valid UTF-8 stays; control characters, characters
 * that reorder a line (U+202A-202E, U+2066-2069), and bytes that are not UTF-8 become \xHH. At most max
 * bytes, the last three of them "..." where something was cut. NULL is an empty text. Return: to be freed, or
 * NULL without memory.
 *
 * A backslash stays, since a sentence may quote what was escaped already: so it may be done again and changes
 * nothing more.
 */
char *wire_text(const char *text, size_t max);
/*
 * The same for bytes of a stranger's (a name, a path), done once where they become a string: a backslash
 * becomes \\, so that who reads the string can tell what they were.
 */
char *wire_escape(const char *bytes, size_t max);

/* The bytes of a string as "ay", without NUL. NULL is empty. Return: >= 0 or a negative errno. */
int wire_append_bytes(sd_bus_message *m, const char *bytes);
/* A NULL-terminated vector as "aay"; NULL is empty. */
int wire_append_vector(sd_bus_message *m, char *const *strings);
/*
 * A table as an array of structs of n_columns strings each; cells holds n_rows * n_columns of them, row by
 * row. Cells pass through wire_text() with at most cell_max bytes each.
 */
int wire_append_table(sd_bus_message *m, size_t n_columns, const char *const *cells, size_t n_rows,
		      size_t cell_max);

/*
 * Read an "ay". *budget is how many bytes may still be taken, with one more for its end; it shrinks.
 * Return: 0; -E2BIG above the budget; -EINVAL with a NUL inside; -EBADMSG for another type; -ENOMEM.
 */
int wire_read_bytes(sd_bus_message *m, size_t *budget, char **ret);
/*
 * Read an "aay" of at most max_strings. Return: as wire_read_bytes(). *ret is NULL-terminated, never NULL; it
 * and its strings are to be freed one by one.
 */
int wire_read_vector(sd_bus_message *m, size_t max_strings, size_t *budget, char ***ret);

/*
 * How much a message says, without keeping any of it: bytes of its strings and arrays, and at least
 * WIRE_VALUE_WEIGHT for each value. Stops as soon as limit is passed. The message is left rewound.
 * Return: the weight, at most limit + 1; -EBADMSG for a message that cannot be read; -ENOMEM.
 */
#define WIRE_VALUE_WEIGHT 32u
ssize_t wire_weigh(sd_bus_message *m, size_t limit);
