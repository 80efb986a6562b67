/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ownership in the type: cleanup attributes and the macros that hand a value on. Nothing here does input or
 * output; everything that this project compiles may include it.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(position, first) __attribute__((format(printf, position, first)))
#define _pure_ __attribute__((pure))
#define _noreturn_ __attribute__((noreturn))
#define _unused_ __attribute__((unused))
#define _fallthrough_ __attribute__((fallthrough))

#define ELEMENTSOF(array) (sizeof(array) / sizeof((array)[0]))
#define STATIC_ASSERT(expression) _Static_assert(expression, #expression)

#define USEC_PER_SEC ((uint64_t)1000000)
#define USEC_PER_MSEC ((uint64_t)1000)
#define NSEC_PER_USEC ((uint64_t)1000)

/* A descriptor that is not open holds this value, never -1: a forgotten errno would look like one. */
#define FD_NONE (-EBADF)

/* Close fd if it is open; errno is kept. Return: FD_NONE, to assign back. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;
		(void)close(fd);
		errno = saved;
	}
	return FD_NONE;
}

static inline void close_fdp(int *fd)
{
	*fd = close_fd(*fd);
}

static inline void freep(void *p)
{
	free(*(void **)p);
	*(void **)p = NULL;
}

static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
	*f = NULL;
}

#define _cleanup_close_ _cleanup_(close_fdp)
#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_fclose_ _cleanup_(fclosep)

#define DEFINE_CLEANUP(type, function)           \
	static inline void function##p(type **p) \
	{                                        \
		if (*p)                          \
			*p = function(*p);       \
	}

/* Hand a descriptor on: its variable no longer owns it. */
#define TAKE_FD(fd)                 \
	({                          \
		int *_fdp = &(fd);  \
		int _taken = *_fdp; \
		*_fdp = FD_NONE;    \
		_taken;             \
	})

/* Hand a pointer on: its variable no longer owns it. */
#define TAKE_PTR(pointer)                              \
	({                                             \
		__typeof__(pointer) *_pp = &(pointer); \
		__typeof__(pointer) _taken = *_pp;     \
		*_pp = NULL;                           \
		_taken;                                \
	})

#define MIN_OF(a, b) _PICK_OF(a, <, b, __COUNTER__)
#define MAX_OF(a, b) _PICK_OF(a, >, b, __COUNTER__)
#define _PICK_OF(a, relation, b, n) _PICK_OF_NAMED(a, relation, b, n)
#define _PICK_OF_NAMED(a, relation, b, n)             \
	({                                            \
		__typeof__(a) _a##n = (a);            \
		__typeof__(b) _b##n = (b);            \
		_a##n relation _b##n ? _a##n : _b##n; \
	})

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Return: the rest of s after prefix, or NULL when s does not begin with it. */
static inline const char *starts_with(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);
	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/*
 * Set *ret to a formatted sentence and return error, so that a refusal is one statement:
 * return refuse(reterr, -EINVAL, "line %u: unknown key '%s'", n, key);
 * ret may be NULL. A sentence already in *ret is replaced. Return: error, or -ENOMEM.
 */
_printf_(3, 4) int refuse(char **ret, int error, const char *format, ...);
