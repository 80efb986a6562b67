/* SPDX-License-Identifier: MIT */
#include "service/link/pack.h"

#include <stdarg.h>

#define PACK_FIRST_ALLOCATION 256u

void pack_init(PackWriter *w, size_t limit)
{
	*w = (PackWriter){ .limit = limit };
}

void pack_done(PackWriter *w)
{
	free(w->data);
	*w = (PackWriter){ 0 };
}

/* Room for n more bytes, or the sticky error. */
static uint8_t *pack_room(PackWriter *w, size_t n)
{
	uint8_t *room;

	if (w->error)
		return NULL;
	if (n > w->limit - w->size) {
		w->error = -EMSGSIZE;
		return NULL;
	}

	if (n > w->allocated - w->size) {
		size_t wanted = MAX_OF(w->allocated * 2, (size_t)PACK_FIRST_ALLOCATION);
		uint8_t *grown;

		wanted = MIN_OF(MAX_OF(wanted, w->size + n), w->limit);
		grown = realloc(w->data, wanted);
		if (!grown) {
			w->error = -ENOMEM;
			return NULL;
		}
		w->data = grown;
		w->allocated = wanted;
	}

	room = w->data + w->size;
	w->size += n;
	return room;
}

static void pack_integer(PackWriter *w, uint64_t value, size_t n)
{
	uint8_t *room = pack_room(w, n);

	for (size_t i = 0; room && i < n; i++)
		room[i] = (uint8_t)(value >> (8 * i));
}

void pack_u8(PackWriter *w, uint8_t value)
{
	pack_integer(w, value, sizeof(value));
}

void pack_u32(PackWriter *w, uint32_t value)
{
	pack_integer(w, value, sizeof(value));
}

void pack_u64(PackWriter *w, uint64_t value)
{
	pack_integer(w, value, sizeof(value));
}

void pack_i32(PackWriter *w, int32_t value)
{
	pack_u32(w, (uint32_t)value);
}

void pack_bytes(PackWriter *w, const void *bytes, size_t n)
{
	uint8_t *room;

	if (n > UINT32_MAX) {
		w->error = w->error ?: -EMSGSIZE;
		return;
	}
	pack_u32(w, (uint32_t)n);
	room = pack_room(w, n);
	if (room && n > 0)
		memcpy(room, bytes, n);
}

void pack_string(PackWriter *w, const char *string)
{
	pack_bytes(w, string ?: "", string ? strlen(string) : 0);
}

void pack_strings(PackWriter *w, char *const *strings)
{
	size_t n = strings_count(strings);

	if (n > UINT32_MAX) {
		w->error = w->error ?: -EMSGSIZE;
		return;
	}
	pack_u32(w, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		pack_string(w, strings[i]);
}

void unpack_init(PackReader *r, const void *data, size_t size)
{
	*r = (PackReader){ .data = data, .size = size };
}

static const uint8_t *unpack_take(PackReader *r, size_t n)
{
	const uint8_t *taken;

	if (r->error)
		return NULL;
	if (n > r->size - r->offset) {
		r->error = -EBADMSG;
		return NULL;
	}
	taken = r->data + r->offset;
	r->offset += n;
	return taken;
}

static uint64_t unpack_integer(PackReader *r, size_t n)
{
	const uint8_t *taken = unpack_take(r, n);
	uint64_t value = 0;

	for (size_t i = 0; taken && i < n; i++)
		value |= (uint64_t)taken[i] << (8 * i);
	return value;
}

uint8_t unpack_u8(PackReader *r)
{
	return (uint8_t)unpack_integer(r, sizeof(uint8_t));
}

uint32_t unpack_u32(PackReader *r)
{
	return (uint32_t)unpack_integer(r, sizeof(uint32_t));
}

uint64_t unpack_u64(PackReader *r)
{
	return unpack_integer(r, sizeof(uint64_t));
}

int32_t unpack_i32(PackReader *r)
{
	return (int32_t)unpack_u32(r);
}

uint32_t unpack_enum(PackReader *r, uint32_t max)
{
	uint32_t value = unpack_u32(r);

	if (value >= max) {
		r->error = r->error ?: -EBADMSG;
		return 0;
	}
	return value;
}

const void *unpack_bytes(PackReader *r, size_t max, size_t *ret_n)
{
	uint32_t n = unpack_u32(r);
	const uint8_t *taken;

	*ret_n = 0;
	if (!r->error && n > max)
		r->error = -EBADMSG;
	taken = unpack_take(r, n);
	if (!taken)
		return NULL;
	*ret_n = n;
	return taken;
}

char *unpack_string(PackReader *r, size_t max)
{
	const char *bytes;
	char *string;
	size_t n;

	bytes = unpack_bytes(r, max, &n);
	if (!bytes)
		return NULL;
	if (memchr(bytes, 0, n)) {
		r->error = -EBADMSG;
		return NULL;
	}
	string = strndup(bytes, n);
	if (!string)
		r->error = -ENOMEM;
	return string;
}

char **unpack_strings(PackReader *r, size_t max_strings, size_t max)
{
	_cleanup_(strings_freep) char **strings = NULL;
	uint32_t n = unpack_u32(r);

	if (r->error)
		return NULL;
	/* Each string takes four bytes at least: a count that the buffer cannot hold must not take memory. */
	if (n > max_strings || n > (r->size - r->offset) / sizeof(uint32_t)) {
		r->error = -EBADMSG;
		return NULL;
	}

	strings = calloc((size_t)n + 1, sizeof(char *));
	if (!strings) {
		r->error = -ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		strings[i] = unpack_string(r, max);
		if (!strings[i])
			return NULL;
	}
	return TAKE_PTR(strings);
}

int unpack_finish(const PackReader *r)
{
	if (r->error)
		return r->error;
	return r->offset == r->size ? 0 : -EBADMSG;
}

char **strings_free(char **strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
	return NULL;
}

size_t strings_count(char *const *strings)
{
	size_t n = 0;

	while (strings && strings[n])
		n++;
	return n;
}

/* Append string itself, which is freed when that fails. */
static int strings_consume(char ***strings, char *string)
{
	size_t n = strings_count(*strings);
	char **grown;

	grown = string ? reallocarray(*strings, n + 2, sizeof(char *)) : NULL;
	if (!grown) {
		free(string);
		return -ENOMEM;
	}
	grown[n] = string;
	grown[n + 1] = NULL;
	*strings = grown;
	return 0;
}

bool strings_have(char *const *strings, const char *string)
{
	for (size_t i = 0; strings && strings[i]; i++)
		if (streq(strings[i], string))
			return true;
	return false;
}

int strings_append(char ***strings, const char *string)
{
	return strings_consume(strings, strdup(string));
}

int strings_appendf(char ***strings, const char *format, ...)
{
	char *string = NULL;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vasprintf(&string, format, arguments);
	va_end(arguments);
	return strings_consume(strings, n < 0 ? NULL : string);
}

char **strings_copy(char *const *strings)
{
	_cleanup_(strings_freep) char **copy = NULL;
	size_t n = strings_count(strings);

	copy = calloc(n + 1, sizeof(char *));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		copy[i] = strdup(strings[i]);
		if (!copy[i])
			return NULL;
	}
	return TAKE_PTR(copy);
}
