/* SPDX-License-Identifier: MIT */
#include "service/daemon/denied-sum.h"

#include <arpa/inet.h>

#include "dbus/names.h"
#include "dbus/wire.h"

/* Columns of LINK_TABLE_DENIED. */
enum {
	COLUMN_PROTOCOL = 1,
	COLUMN_ADDRESS = 2,
	COLUMN_PORT = 3,
	COLUMN_PROGRAM = 4,
	COLUMN_REASON = 5,
	COLUMN_COUNT = 6
};

void denied_sum_done(DeniedSum *sum)
{
	for (size_t i = 0; i < sum->n; i++)
		free(sum->items[i].what);
	*sum = (DeniedSum){ 0 };
}

static bool count_parse(const char *text, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

char *denied_text(const LinkRow *row)
{
	_cleanup_free_ char *text = NULL;
	const char *program = row->columns[COLUMN_PROGRAM], *pid = strrchr(program, ' ');
	/* The pid of the last attempt tells no row from another; "?" is nobody. */
	int length = streq(program, "?") ? 0 : pid ? (int)(pid - program) : (int)strlen(program);

	/* Several destinations: the reason says which. */
	if (!*row->columns[COLUMN_ADDRESS])
		return wire_escape(row->columns[COLUMN_REASON], DENIED_TEXT_MAX);
	if (asprintf(&text, "%.16s %.64s:%.8s%s%.*s%s", row->columns[COLUMN_PROTOCOL],
		     row->columns[COLUMN_ADDRESS], row->columns[COLUMN_PORT], length > 0 ? " (" : "",
		     MIN_OF(length, 16), program, length > 0 ? ")" : "") < 0) {
		text = NULL;
		return NULL;
	}
	return wire_escape(text, DENIED_TEXT_MAX);
}

static void add_row(DeniedSum *sum, const LinkRow *row)
{
	_cleanup_free_ char *what = NULL;
	uint64_t count;
	size_t i = 0;

	if (!count_parse(row->columns[COLUMN_COUNT], &count) ||
	    streq(row->columns[COLUMN_PROGRAM], CS_DENIED_CHECKED))
		return;
	what = denied_text(row);
	if (!what)
		return;
	while (i < sum->n && !streq(sum->items[i].what, what))
		i++;
	if (i == DENIED_SUM_MAX) {
		sum->full = true;
		return;
	}
	if (i == sum->n)
		sum->items[sum->n++] = (DeniedItem){ .what = TAKE_PTR(what) };
	/* It never becomes less: the same row comes again when it has grown. */
	sum->items[i].count = MAX_OF(sum->items[i].count, count);
	for (; i > 0 && sum->items[i - 1].count < sum->items[i].count; i--) {
		DeniedItem item = sum->items[i];

		sum->items[i] = sum->items[i - 1];
		sum->items[i - 1] = item;
	}
}

void denied_sum_add(DeniedSum *sum, const LinkRow *rows, size_t n_rows)
{
	for (size_t i = 0; i < n_rows; i++)
		add_row(sum, &rows[i]);
}

uint64_t denied_sum_count(const DeniedSum *sum)
{
	uint64_t count = 0;

	for (size_t i = 0; i < sum->n; i++)
		if (__builtin_add_overflow(count, sum->items[i].count, &count))
			return UINT64_MAX;
	return count;
}

void denied_seen_done(DeniedSeen *seen)
{
	free(seen->keys);
	*seen = (DeniedSeen){ 0 };
}

static bool key_make(const LinkRow *row, DeniedKey *ret)
{
	struct in_addr address;
	uint64_t port;

	if (streq(row->columns[COLUMN_PROGRAM], CS_DENIED_CHECKED) ||
	    inet_pton(AF_INET, row->columns[COLUMN_ADDRESS], &address) != 1 ||
	    !count_parse(row->columns[COLUMN_PORT], &port) || port > UINT16_MAX)
		return false;
	*ret = (DeniedKey){ .address = address.s_addr, .port = (uint16_t)port };
	(void)snprintf(ret->protocol, sizeof(ret->protocol), "%s", row->columns[COLUMN_PROTOCOL]);
	return true;
}

bool denied_seen_add(DeniedSeen *seen, const LinkRow *row)
{
	DeniedKey key, *larger = seen->keys;

	if (!key_make(row, &key))
		return false;
	for (size_t i = 0; i < seen->n; i++)
		if (seen->keys[i].address == key.address && seen->keys[i].port == key.port &&
		    streq(seen->keys[i].protocol, key.protocol))
			return false;
	if (seen->n == DENIED_SEEN_MAX)
		return false;
	if ((seen->n & (seen->n - 1)) == 0)
		larger = reallocarray(seen->keys, seen->n > 0 ? seen->n * 2 : 1, sizeof(*larger));
	if (!larger)
		return true;
	seen->keys = larger;
	larger[seen->n++] = key;
	return true;
}
