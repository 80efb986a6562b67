/* SPDX-License-Identifier: MIT */
#include "service/daemon/row-list.h"

#include "dbus/check-fixes.h"
#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/log.h"

/* Every byte may be written as \xNN. */
#define CELL_MAX (4 * ROW_DETAIL_MAX)

void row_list_done(RowList *list)
{
	for (size_t i = 0; i < list->n; i++)
		row_done(&list->rows[i]);
	free(list->rows);
	*list = (RowList){ 0 };
}

int row_list_add(RowList *list, Row *row)
{
	Row *larger;

	if (list->n >= ROW_LIST_MAX) {
		list->broken = true;
		return -E2BIG;
	}
	larger = reallocarray(list->rows, list->n + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	list->rows = larger;
	list->rows[list->n++] = *row;
	*row = (Row){ 0 };
	return 0;
}

int row_list_add_said(RowList *list, const LinkRow *said)
{
	enum { ID, STATUS, TITLE, DETAIL, FIX };
	const char *const word = said->columns[STATUS] ?: "";
	_cleanup_(row_done) Row row = { 0 };
	int r;

	r = row_make(said->columns[ID] ?: "", row_status_from_string(word), said->columns[TITLE],
		     said->columns[DETAIL], said->columns[FIX], &row);
	if (r == -EINVAL) {
		list->broken = true;
		return -EBADMSG;
	}
	return r < 0 ? r : row_list_add(list, &row);
}

static int append_row(sd_bus_message *m, const Row *row, bool doctor)
{
	const char *const fix = doctor ? row->fix : row->status == ROW_FAIL ? check_fix(row->id) : "";
	const char *const cells[] = { row->id, row_status_to_string(row->status, doctor), row->title,
				      row->detail, fix };
	int r;

	r = sd_bus_message_open_container(m, 'r', "sssss");
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(cells); i++) {
		_cleanup_free_ char *text = wire_text(cells[i], CELL_MAX);

		r = text ? sd_bus_message_append_basic(m, 's', text) : -ENOMEM;
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int row_list_append(const RowList *list, bool doctor, sd_bus_message *m)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "(sssss)");
	for (size_t i = 0; r >= 0 && i < list->n; i++)
		r = append_row(m, &list->rows[i], doctor);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

void row_send(const Signals *signals, const Client *client, const char *call, const Row *row, bool doctor)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_signal(signals->bus, &m, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, CS_SIGNAL_ROW);
	if (r >= 0)
		r = sd_bus_message_append(m, "s", call);
	if (r >= 0)
		r = append_row(m, row, doctor);
	if (r >= 0)
		r = sd_bus_send_to(signals->bus, m, client->name, NULL);
	if (r < 0)
		log_line("a row to %s is lost: %s", client->name, strerror(-r));
}

static unsigned rows_of(const RowList *list, const char *id)
{
	unsigned n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += streq(list->rows[i].id, id);
	return n;
}

int row_list_passed(const RowList *list, char **ret_missing)
{
	_cleanup_free_ char *missing = NULL;
	bool failed = list->broken;

	*ret_missing = NULL;
	for (size_t i = 0; i < list->n; i++)
		failed |= list->rows[i].status == ROW_FAIL;
	for (unsigned check = 1; check <= ROW_CHECKS; check++) {
		_cleanup_free_ char *before = missing;
		char id[4];

		missing = NULL;
		(void)snprintf(id, sizeof(id), "%02u", check % 100);
		if (rows_of(list, id) == 1) {
			missing = TAKE_PTR(before);
			continue;
		}
		if (asprintf(&missing, "%s%s%s", before ?: "", before ? ", " : "", id) < 0) {
			missing = NULL;
			return -ENOMEM;
		}
	}
	if (missing)
		failed = true;
	*ret_missing = TAKE_PTR(missing);
	return !failed;
}
