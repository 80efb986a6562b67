/* SPDX-License-Identifier: MIT */
#include "dbus/client-read.h"

#include <assert.h>
#include <inttypes.h>

void client_session_done(ClientSession *session)
{
	free(session->id);
	free(session->path);
	free(session->agent);
	free(session->user);
	free(session->workspace);
	free(session->state);
	*session = (ClientSession){ 0 };
}

void client_sessions_done(ClientSessions *sessions)
{
	for (size_t i = 0; i < sessions->n; i++)
		client_session_done(&sessions->items[i]);
	free(sessions->items);
	*sessions = (ClientSessions){ 0 };
}

void client_table_done(ClientTable *table)
{
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (ClientTable){ 0 };
}

int client_read_string(sd_bus_message *m, char type, char **ret)
{
	const char *text;
	char *copy;
	int r;

	r = sd_bus_message_read_basic(m, type, &text);
	if (r <= 0)
		return r == -ENOMEM ? r : -EBADMSG;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int client_read_bytes(sd_bus_message *m, char **ret)
{
	const void *data;
	size_t size;
	char *copy;
	int r;

	r = sd_bus_message_read_array(m, 'y', &data, &size);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	if (size > 0 && memchr(data, 0, size))
		return -EBADMSG;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	*ret = copy;
	return 0;
}

/* Doubles an array when n reaches a power of two; n counts what is in it. Return: 0 or -ENOMEM. */
static int grow(void **items, size_t n, size_t item_size)
{
	void *larger;

	if (n != 0 && (n & (n - 1)) != 0)
		return 0;
	larger = reallocarray(*items, n == 0 ? 1 : n * 2, item_size);
	if (!larger)
		return -ENOMEM;
	*items = larger;
	return 0;
}

static int read_session(sd_bus_message *m, ClientSession *session)
{
	int r;

	r = client_read_string(m, 's', &session->id);
	if (r >= 0)
		r = client_read_string(m, 'o', &session->path);
	if (r >= 0)
		r = client_read_string(m, 's', &session->agent);
	if (r >= 0)
		r = client_read_string(m, 's', &session->user);
	if (r >= 0 && sd_bus_message_read_basic(m, 'u', &session->uid) <= 0)
		r = -EBADMSG;
	if (r >= 0)
		r = client_read_bytes(m, &session->workspace);
	if (r >= 0 && sd_bus_message_read_basic(m, 't', &session->started_usec) <= 0)
		r = -EBADMSG;
	if (r >= 0)
		r = client_read_string(m, 's', &session->state);
	return r;
}

int client_read_sessions(sd_bus_message *reply, ClientSessions *ret)
{
	_cleanup_(client_sessions_done) ClientSessions sessions = { 0 };
	int r;

	if (!sd_bus_message_has_signature(reply, "a(sossuayts)"))
		return -EBADMSG;
	if (sd_bus_message_enter_container(reply, 'a', "(sossuayts)") <= 0)
		return -EBADMSG;
	while ((r = sd_bus_message_enter_container(reply, 'r', "sossuayts")) > 0) {
		r = grow((void **)&sessions.items, sessions.n, sizeof(*sessions.items));
		if (r < 0)
			return r;
		sessions.items[sessions.n] = (ClientSession){ 0 };
		r = read_session(reply, &sessions.items[sessions.n++]);
		if (r < 0)
			return r;
		if (sd_bus_message_exit_container(reply) < 0)
			return -EBADMSG;
	}
	if (r < 0)
		return -EBADMSG;

	*ret = sessions;
	sessions = (ClientSessions){ 0 };
	return 0;
}

/* Numbers become decimal digits. Return: 0, -EBADMSG, -ENOMEM. */
static int read_cell(sd_bus_message *m, const char **type, char **ret)
{
	uint64_t number = 0;
	uint32_t n32 = 0;
	uint16_t n16 = 0;
	int r = -EBADMSG;

	switch (*(*type)++) {
	case 's':
		return client_read_string(m, 's', ret);
	case 'o':
		return client_read_string(m, 'o', ret);
	case 'a':
		if (*(*type)++ != 'y')
			return -EBADMSG;
		return client_read_bytes(m, ret);
	case 't':
		r = sd_bus_message_read_basic(m, 't', &number);
		break;
	case 'u':
		r = sd_bus_message_read_basic(m, 'u', &n32);
		number = n32;
		break;
	case 'q':
		r = sd_bus_message_read_basic(m, 'q', &n16);
		number = n16;
		break;
	default:
		return -EBADMSG;
	}
	if (r <= 0)
		return -EBADMSG;
	if (asprintf(ret, "%" PRIu64, number) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static size_t count_columns(const char *row)
{
	size_t n = 0;

	for (; *row; row++)
		n += *row != 'a';
	return n;
}

/* What stands in a struct that was entered. */
static int read_row(sd_bus_message *m, const char *row, ClientTable *table)
{
	const char *type = row;
	int r;

	r = grow((void **)&table->cells, table->n_rows, table->n_columns * sizeof(*table->cells));
	if (r < 0)
		return r;
	memset(table->cells + table->n_rows * table->n_columns, 0, table->n_columns * sizeof(*table->cells));
	table->n_rows++;
	for (size_t i = 0; i < table->n_columns; i++) {
		r = read_cell(m, &type, &table->cells[(table->n_rows - 1) * table->n_columns + i]);
		if (r < 0)
			return r;
	}
	return sd_bus_message_exit_container(m) < 0 ? -EBADMSG : 0;
}

static int read_rows(sd_bus_message *m, const char *row, ClientTable *table)
{
	int r;

	while ((r = sd_bus_message_enter_container(m, 'r', row)) > 0) {
		r = read_row(m, row, table);
		if (r < 0)
			return r;
	}
	return r < 0 ? -EBADMSG : 0;
}

int client_read_rows(sd_bus_message *m, const char *row, ClientTable *ret)
{
	_cleanup_(client_table_done) ClientTable table = { .n_columns = count_columns(row) };
	_cleanup_free_ char *structure = NULL;
	int r;

	if (asprintf(&structure, "(%s)", row) < 0) {
		structure = NULL;
		return -ENOMEM;
	}
	if (sd_bus_message_enter_container(m, 'a', structure) <= 0)
		return -EBADMSG;
	r = read_rows(m, row, &table);
	if (r < 0)
		return r;
	if (sd_bus_message_exit_container(m) < 0)
		return -EBADMSG;

	*ret = table;
	table = (ClientTable){ 0 };
	return 0;
}

int client_read_row(sd_bus_message *m, const char *row, ClientTable *ret)
{
	_cleanup_(client_table_done) ClientTable table = { .n_columns = count_columns(row) };
	int r;

	if (sd_bus_message_enter_container(m, 'r', row) <= 0)
		return -EBADMSG;
	r = read_row(m, row, &table);
	if (r < 0)
		return r;
	*ret = table;
	table = (ClientTable){ 0 };
	return 0;
}

int client_read_table(sd_bus_message *reply, size_t n_columns, ClientTable *ret)
{
	char row[] = "ssssssss";

	assert(n_columns > 0 && n_columns < sizeof(row));
	row[n_columns] = '\0';
	return client_read_rows(reply, row, ret);
}
