/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-tables.h"

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/call.h"

/* Of one cell: a path is the longest that one holds, and every byte of it may be written as \xNN. */
#define CELL_MAX (4 * CS_PATH_BYTES_MAX)

typedef struct Waiting Waiting;

struct Waiting {
	Client *client;
	sd_bus_message *call;
	Waiting *next;
};

/* One question about one session, and who waits for its answer. */
struct TableQuery {
	Manager *manager;
	Session *session;
	LinkTable table;
	bool asked;
	Waiting *waiting;
	TableQuery *next;
};

static const struct {
	const char *member;
	LinkTable table;
	uint32_t rows_max;
} tables[] = {
	{ CS_MEMBER_LIST_ROUTES, LINK_TABLE_ROUTES, SESSION_ROUTES_ROWS_MAX },
	{ CS_MEMBER_LIST_EXPOSURE, LINK_TABLE_EXPOSURE, SESSION_EXPOSURE_ROWS_MAX },
	{ CS_MEMBER_LIST_ENVIRONMENT, LINK_TABLE_ENVIRONMENT, LINK_ROWS_MAX },
	{ CS_MEMBER_LIST_PORTS, LINK_TABLE_PORTS, LINK_ROWS_MAX },
	{ CS_MEMBER_LIST_DENIED, LINK_TABLE_DENIED, LINK_ROWS_MAX },
};

bool session_table_of_member(const char *member, LinkTable *ret)
{
	for (size_t i = 0; i < ELEMENTSOF(tables); i++)
		if (streq(tables[i].member, member)) {
			*ret = tables[i].table;
			return true;
		}
	return false;
}

static uint32_t rows_max(LinkTable table)
{
	for (size_t i = 0; i < ELEMENTSOF(tables); i++)
		if (tables[i].table == table)
			return tables[i].rows_max;
	return 0;
}

static void waiting_free(Waiting *waiting)
{
	client_unref(waiting->client);
	sd_bus_message_unref(waiting->call);
	free(waiting);
}

static void query_unlink(TableQuery *query)
{
	for (TableQuery **q = &query->manager->table_queries; *q; q = &(*q)->next)
		if (*q == query) {
			*q = query->next;
			break;
		}
}

/* Plain decimal, at most max. Return: 0 or -EBADMSG: a session may say anything. */
static int read_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t number = 0;

	if (!*text)
		return -EBADMSG;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)*text - '0';

		if (*text < '0' || *text > '9' || number > (max - digit) / 10)
			return -EBADMSG;
		number = number * 10 + digit;
	}
	*ret = number;
	return 0;
}

/* type: 's', 'q', 't', or 'a' for "ay"; bytes: a text is names of strangers. */
static int append_cell(sd_bus_message *reply, char type, const char *cell, bool bytes)
{
	_cleanup_free_ char *text = NULL;
	uint64_t number = 0;
	uint16_t small;
	int r;

	switch (type) {
	case 'a':
		return wire_append_bytes(reply, cell);
	case 'q':
		r = read_number(cell, UINT16_MAX, &number);
		small = (uint16_t)number;
		return r < 0 ? r : sd_bus_message_append_basic(reply, 'q', &small);
	case 't':
		r = read_number(cell, UINT64_MAX, &number);
		return r < 0 ? r : sd_bus_message_append_basic(reply, 't', &number);
	default:
		text = bytes ? wire_escape(cell, CELL_MAX) : wire_text(cell, CELL_MAX);
		return text ? sd_bus_message_append_basic(reply, 's', text) : -ENOMEM;
	}
}

int session_row_append(sd_bus_message *reply, const char *signature, char *const *cells, size_t n_columns)
{
	bool bytes = streq(signature, SESSION_DENIED_ROW);
	const char *type = signature;
	int r;

	r = sd_bus_message_open_container(reply, 'r', signature);
	for (size_t c = 0; r >= 0 && c < n_columns; c++) {
		r = append_cell(reply, *type, cells[c], bytes);
		type += *type == 'a' ? 2 : 1;
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_rows(sd_bus_message *reply, const char *array, const char *row, const LinkCells *cells,
		       size_t n_columns)
{
	int r;

	r = sd_bus_message_open_container(reply, 'a', array);
	for (size_t i = 0; r >= 0 && i < cells->n_rows; i++)
		r = session_row_append(reply, row, cells->cells + i * n_columns, n_columns);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

int session_table_append(sd_bus_message *reply, LinkTable table, const LinkCells *cells)
{
	size_t n_columns = link_table_columns(table);

	switch (table) {
	case LINK_TABLE_EXPOSURE:
		return append_rows(reply, "(ayssss)", "ayssss", cells, n_columns);
	case LINK_TABLE_PORTS:
		return append_rows(reply, "(qsss)", "qsss", cells, n_columns);
	case LINK_TABLE_DENIED:
		return append_rows(reply, "(" SESSION_DENIED_ROW ")", SESSION_DENIED_ROW, cells, n_columns);
	default:
		return wire_append_table(reply, n_columns, (const char *const *)cells->cells, cells->n_rows,
					 CELL_MAX);
	}
}

static int answer_rows(sd_bus_message *call, LinkTable table, const LinkCells *cells)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = session_table_append(reply, table, cells);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void answer_error(sd_bus_message *call, const Session *session, int error)
{
	if (error == -ECANCELED || error == -ECONNRESET || error == -ENOTCONN || error == -EPIPE)
		(void)sd_bus_reply_method_errorf(
			call, CS_ERROR_NO_SUCH_SESSION,
			"The session %s ends and says nothing more; 'claude-sandbox sessions' lists what "
			"runs.",
			session->id);
	else if (error == -EPROTONOSUPPORT)
		(void)sd_bus_reply_method_errorf(call, CS_ERROR_SESSION_SILENT, SESSION_FOREIGN_FORMAT,
						 session->id);
	else if (error == -EINPROGRESS)
		(void)sd_bus_reply_method_errorf(
			call, CS_ERROR_SESSION_SILENT,
			"The session %s is about to start and has nothing to tell yet; try again.",
			session->id);
	else
		(void)sd_bus_reply_method_errorf(call, CS_ERROR_SESSION_SILENT,
						 "The session %s does not answer as it should (%s); try "
						 "again, or stop it ('claude-sandbox stop').",
						 session->id, strerror(-error));
}

/* Takes the query. */
static void query_answer(TableQuery *query, int result, const LinkCells *cells)
{
	query_unlink(query);
	for (Waiting *waiting = query->waiting, *next; waiting; waiting = next) {
		next = waiting->next;
		int r = result < 0 ? result : answer_rows(waiting->call, query->table, cells);

		if (r < 0)
			answer_error(waiting->call, query->session, r);
		waiting_free(waiting);
	}
	free(query);
}

static void on_rows(void *userdata, int result, LinkCells *cells);

/* The oldest question about session that is not asked yet, where none is under way. */
static void ask_next(Manager *manager, const Session *session)
{
	for (;;) {
		TableQuery *oldest = NULL;
		int r;

		for (TableQuery *q = manager->table_queries; q; q = q->next) {
			if (q->session != session)
				continue;
			if (q->asked)
				return;
			oldest = q;
		}
		if (!oldest)
			return;
		oldest->asked = true;
		r = session->keeper ? keeper_get_table(session->keeper, oldest->table,
						       rows_max(oldest->table), on_rows, oldest)
				    : -ENOTCONN;
		if (r >= 0)
			return;
		query_answer(oldest, r, NULL);
	}
}

static void on_rows(void *userdata, int result, LinkCells *cells)
{
	TableQuery *query = userdata;
	Manager *manager = query->manager;
	const Session *session = query->session;

	query_answer(query, result, cells);
	ask_next(manager, session);
}

static unsigned calls_of(const Manager *manager, uid_t uid)
{
	unsigned n = 0;

	for (const TableQuery *q = manager->table_queries; q; q = q->next)
		for (const Waiting *w = q->waiting; w; w = w->next)
			n += w->client->uid == uid;
	return n;
}

static TableQuery *find_unasked(const Manager *manager, const Session *session, LinkTable table)
{
	for (TableQuery *q = manager->table_queries; q; q = q->next)
		if (q->session == session && q->table == table && !q->asked)
			return q;
	return NULL;
}

static int waiting_new(Client *client, sd_bus_message *call, Waiting **ret)
{
	Waiting *waiting = calloc(1, sizeof(*waiting));
	int r;

	if (!waiting)
		return -ENOMEM;
	waiting->client = client_ref(client);
	r = call_keep(call, &waiting->call);
	if (r < 0) {
		waiting_free(waiting);
		return r;
	}
	*ret = waiting;
	return 0;
}

int session_table_answer(Manager *manager, Client *client, sd_bus_message *call, Session *session,
			 LinkTable table, sd_bus_error *reterr)
{
	TableQuery *query;
	Waiting *waiting;
	int r;

	if (client->uid != 0 && calls_of(manager, client->uid) >= SESSION_TABLE_CALLS_OF_USER_MAX)
		return sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"%u calls of yours wait for what sessions say of themselves; try again later.",
			SESSION_TABLE_CALLS_OF_USER_MAX);
	r = waiting_new(client, call, &waiting);
	if (r < 0)
		return r;
	query = find_unasked(manager, session, table);
	if (!query) {
		query = calloc(1, sizeof(*query));
		if (!query) {
			waiting_free(waiting);
			return -ENOMEM;
		}
		*query = (TableQuery){
			.manager = manager, .session = session, .table = table, .next = manager->table_queries
		};
		manager->table_queries = query;
	}
	waiting->next = query->waiting;
	query->waiting = waiting;
	ask_next(manager, session);
	return 1;
}

/* The question stays: it is asked already, or cheap. */
void session_tables_client_gone(Manager *manager, const Client *client)
{
	for (TableQuery *q = manager->table_queries; q; q = q->next)
		for (Waiting **w = &q->waiting; *w;) {
			Waiting *gone = *w;

			if (gone->client != client) {
				w = &gone->next;
				continue;
			}
			*w = gone->next;
			waiting_free(gone);
		}
}

void session_tables_end_all(Manager *manager)
{
	for (TableQuery *q = manager->table_queries; q; q = q->next) {
		for (Waiting *waiting = q->waiting, *next; waiting; waiting = next) {
			next = waiting->next;
			(void)sd_bus_reply_method_errorf(waiting->call, CS_ERROR_SHUTTING_DOWN,
							 "The service is stopping; try again.");
			waiting_free(waiting);
		}
		q->waiting = NULL;
	}
}
