/* SPDX-License-Identifier: MIT */
#include "service/link/rows.h"

STATIC_ASSERT(ROW_ID_MAX + ROW_TITLE_MAX + ROW_DETAIL_MAX + ROW_FIX_MAX + 5 * sizeof(uint32_t) <=
	      ROW_BYTES_MAX);

static const char *const words[ROW_STATUS_MAX] = { "pass", "note", "warn", "fail" };

void row_done(Row *row)
{
	free(row->id);
	free(row->title);
	free(row->detail);
	free(row->fix);
	*row = (Row){ 0 };
}

bool row_id_is_valid(const char *id)
{
	size_t n = strlen(id);

	return n > 0 && n <= ROW_ID_MAX && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

static bool text_fits(const char *text, size_t max)
{
	return !text || strlen(text) <= max;
}

void row_pack(const Row *row, PackWriter *w)
{
	if (!w->error && (!row->id || !row_id_is_valid(row->id) || (unsigned)row->status >= ROW_STATUS_MAX))
		w->error = -EINVAL;
	if (!w->error && (!text_fits(row->title, ROW_TITLE_MAX) || !text_fits(row->detail, ROW_DETAIL_MAX) ||
			  !text_fits(row->fix, ROW_FIX_MAX)))
		w->error = -EMSGSIZE;
	pack_string(w, row->id);
	pack_u32(w, (uint32_t)row->status);
	pack_string(w, row->title);
	pack_string(w, row->detail);
	pack_string(w, row->fix);
}

void row_unpack(PackReader *r, Row *ret)
{
	Row row = { 0 };

	row.id = unpack_string(r, ROW_ID_MAX);
	row.status = (RowStatus)unpack_enum(r, ROW_STATUS_MAX);
	row.title = unpack_string(r, ROW_TITLE_MAX);
	row.detail = unpack_string(r, ROW_DETAIL_MAX);
	row.fix = unpack_string(r, ROW_FIX_MAX);
	if (!r->error && !row_id_is_valid(row.id))
		r->error = -EBADMSG;
	if (r->error) {
		row_done(&row);
		return;
	}
	*ret = row;
}

int row_encode(const Row *row, uint8_t **ret_data, size_t *ret_size)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	pack_init(&w, ROW_BYTES_MAX);
	row_pack(row, &w);
	if (w.error)
		return w.error;
	*ret_size = w.size;
	*ret_data = TAKE_PTR(w.data);
	return 0;
}

int row_decode(const void *data, size_t size, Row *ret)
{
	Row row = { 0 };
	PackReader r;
	int error;

	if (size > ROW_BYTES_MAX)
		return -EBADMSG;
	unpack_init(&r, data, size);
	row_unpack(&r, &row);
	error = unpack_finish(&r);
	if (error) {
		row_done(&row);
		return error;
	}
	*ret = row;
	return 0;
}

/* The bytes 10xxxxxx of UTF-8 continue a character. */
static char *text_cut(const char *text, size_t max)
{
	size_t n = strnlen(text ?: "", max + 1);

	if (n > max)
		for (n = max; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
			n--;
	return strndup(text ?: "", n);
}

int row_make(const char *id, RowStatus status, const char *title, const char *detail, const char *fix,
	     Row *ret)
{
	Row row = { .status = status };

	if (!row_id_is_valid(id) || (unsigned)status >= ROW_STATUS_MAX)
		return -EINVAL;
	row.id = strdup(id);
	row.title = text_cut(title, ROW_TITLE_MAX);
	row.detail = text_cut(detail, ROW_DETAIL_MAX);
	row.fix = text_cut(fix, ROW_FIX_MAX);
	if (!row.id || !row.title || !row.detail || !row.fix) {
		row_done(&row);
		return -ENOMEM;
	}
	*ret = row;
	return 0;
}

const char *row_status_to_string(RowStatus status, bool doctor)
{
	if ((unsigned)status >= ROW_STATUS_MAX)
		return "fail";
	return doctor && status == ROW_PASS ? "ok" : words[status];
}

RowStatus row_status_from_string(const char *word)
{
	if (streq(word, "ok"))
		return ROW_PASS;
	for (unsigned i = 0; i < ROW_STATUS_MAX; i++)
		if (streq(word, words[i]))
			return (RowStatus)i;
	return ROW_STATUS_INVALID;
}
