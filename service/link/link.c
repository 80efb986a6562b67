/* SPDX-License-Identifier: MIT */
#include "service/link/link.h"

#include "service/link/pack.h"

static const char *const session_state_names[SESSION_STATE_MAX] = {
	[SESSION_STARTING] = "starting", [SESSION_RUNNING] = "running", [SESSION_STOPPED] = "stopped",
	[SESSION_OFFLINE] = "offline",   [SESSION_ENDING] = "ending",
};

static const size_t table_columns[LINK_TABLE_MAX] = {
	[LINK_TABLE_WARNINGS] = 1, [LINK_TABLE_POSTURE] = 3,     [LINK_TABLE_ROUTES] = 5,
	[LINK_TABLE_EXPOSURE] = 5, [LINK_TABLE_ENVIRONMENT] = 2, [LINK_TABLE_PORTS] = 4,
	[LINK_TABLE_DENIED] = 7,   [LINK_TABLE_ALLOWED] = 4,     [LINK_TABLE_CHECKS] = 5,
};

const char *session_state_to_string(SessionState state)
{
	if (state < 0 || state >= SESSION_STATE_MAX)
		return "unknown";
	return session_state_names[state];
}

size_t link_table_columns(LinkTable table)
{
	return table < LINK_TABLE_MAX ? table_columns[table] : 0;
}

void link_message_done(LinkMessage *m)
{
	free(m->error);
	free(m->text);
	strings_free(m->addresses);
	for (uint32_t i = 0; m->rows && i < m->n_rows; i++)
		for (size_t c = 0; c < LINK_COLUMNS_MAX; c++)
			free(m->rows[i].columns[c]);
	free(m->rows);
	*m = LINK_MESSAGE_INIT;
}

/* Rows of checks come by themselves. */
static bool table_is_asked_for(LinkTable table)
{
	return table < LINK_TABLE_MAX && table != LINK_TABLE_CHECKS;
}

/* The rows of these kinds are of one table, and whole: what does not fit is not left for a second packet. */
static LinkTable table_of_kind(LinkKind kind)
{
	return kind == LINK_ROWS ? LINK_TABLE_CHECKS : LINK_TABLE_DENIED;
}

static void encode_state(PackWriter *w, const LinkMessage *m)
{
	if (m->state < 0 || m->state >= SESSION_STATE_MAX)
		w->error = w->error ?: -EINVAL;
	pack_u32(w, (uint32_t)m->state);
	pack_u32(w, m->leader);
	pack_u8(w, m->jailed);
	pack_i32(w, m->exit_status);
	pack_u64(w, m->denied);
}

static void encode_text(PackWriter *w, const char *text)
{
	if (text && strlen(text) > LINK_TEXT_MAX)
		w->error = w->error ?: -EINVAL;
	pack_string(w, text);
}

static void encode_addresses(PackWriter *w, char *const *addresses)
{
	size_t n = strings_count(addresses);

	if (n > LINK_ADDRESSES_MAX)
		w->error = w->error ?: -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (strlen(addresses[i]) > LINK_ADDRESS_MAX)
			w->error = w->error ?: -EINVAL;
	pack_strings(w, addresses);
}

/* Of all packets together, where several make a table. */
static uint32_t rows_of_kind(LinkKind kind)
{
	switch (kind) {
	case LINK_ROWS:
		return LINK_CHECK_ROWS_MAX;
	case LINK_DENIED:
		return LINK_DENIED_ROWS_MAX;
	default:
		return LINK_ROWS_MAX;
	}
}

/* Rows until the packet is full; their count stands before them and is filled in at the end. */
static void encode_rows(PackWriter *w, const LinkMessage *m, uint32_t *ret_rows)
{
	size_t columns = link_table_columns(m->table), count_at;
	uint32_t n = 0;

	if (columns == 0 || m->first > m->total || m->total > rows_of_kind(m->kind) ||
	    m->n_rows > m->total - m->first)
		w->error = w->error ?: -EINVAL;
	pack_u32(w, (uint32_t)m->table);
	pack_u32(w, m->first);
	pack_u32(w, m->total);
	count_at = w->size;
	pack_u32(w, 0);

	while (!w->error && n < m->n_rows) {
		size_t row_at = w->size;

		for (size_t c = 0; c < columns; c++)
			encode_text(w, m->rows[n].columns[c]);
		if (w->error == -EMSGSIZE && n > 0) {
			w->error = 0;
			w->size = row_at;
			break;
		}
		n++;
	}

	for (size_t i = 0; !w->error && i < sizeof(n); i++)
		w->data[count_at + i] = (uint8_t)(n >> (8 * i));
	if (ret_rows)
		*ret_rows = n;
}

static void encode_whole(PackWriter *w, const LinkMessage *m, uint32_t *ret_rows)
{
	uint32_t n = 0;

	if (m->table != table_of_kind(m->kind) || m->first != 0 || m->total != m->n_rows)
		w->error = w->error ?: -EINVAL;
	encode_rows(w, m, &n);
	if (!w->error && n != m->n_rows)
		w->error = -EMSGSIZE;
	if (ret_rows)
		*ret_rows = n;
}

int link_encode(const LinkMessage *m, uint8_t **ret_data, size_t *ret_size, uint32_t *ret_rows)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	pack_init(&w, LINK_PACKET_MAX);
	pack_u32(&w, (uint32_t)m->kind);

	switch (m->kind) {
	case LINK_HELLO:
		pack_u32(&w, m->version);
		encode_state(&w, m);
		break;
	case LINK_STATE:
		encode_state(&w, m);
		break;
	case LINK_STARTED:
		break;
	case LINK_FAILED:
		encode_text(&w, m->error);
		encode_text(&w, m->text);
		break;
	case LINK_EXITED:
		pack_i32(&w, m->exit_status);
		encode_text(&w, m->text);
		pack_u64(&w, m->denied);
		break;
	case LINK_STOP:
		pack_u32(&w, m->serial);
		pack_u64(&w, m->usec);
		encode_text(&w, m->text);
		break;
	case LINK_TABLE_GET:
		if (!table_is_asked_for(m->table) || m->first > LINK_ROWS_MAX)
			w.error = -EINVAL;
		pack_u32(&w, m->serial);
		pack_u32(&w, (uint32_t)m->table);
		pack_u32(&w, m->first);
		break;
	case LINK_TABLE:
		if (!table_is_asked_for(m->table))
			w.error = -EINVAL;
		pack_u32(&w, m->serial);
		encode_rows(&w, m, ret_rows);
		break;
	case LINK_DONE:
		if (m->result > 0 || m->result < -PACK_ERRNO_MAX)
			w.error = -EINVAL;
		pack_u32(&w, m->serial);
		pack_i32(&w, m->result);
		encode_text(&w, m->text);
		break;
	case LINK_REACH:
		pack_u32(&w, m->serial);
		encode_addresses(&w, m->addresses);
		break;
	case LINK_ALLOW:
		pack_u32(&w, m->serial);
		encode_text(&w, m->text);
		pack_u64(&w, m->usec);
		break;
	case LINK_REVOKE:
		pack_u32(&w, m->serial);
		encode_text(&w, m->text);
		break;
	case LINK_ROWS:
		pack_u32(&w, m->serial);
		encode_whole(&w, m, ret_rows);
		break;
	case LINK_DENIED:
		pack_u64(&w, m->denied);
		encode_whole(&w, m, ret_rows);
		break;
	case LINK_VERIFY:
		pack_u32(&w, m->serial);
		pack_u8(&w, m->probes);
		break;
	case LINK_KIND_MAX:
	default:
		return -EINVAL;
	}

	if (w.error)
		return w.error;
	*ret_size = w.size;
	*ret_data = TAKE_PTR(w.data);
	return 0;
}

/* One encoding for each value of a flag. */
static bool decode_flag(PackReader *r)
{
	uint8_t flag = unpack_u8(r);

	if (flag > 1)
		r->error = r->error ?: -EBADMSG;
	return flag == 1;
}

static void decode_state(PackReader *r, LinkMessage *m)
{
	m->state = (SessionState)unpack_enum(r, SESSION_STATE_MAX);
	m->leader = unpack_u32(r);
	m->jailed = decode_flag(r);
	m->exit_status = unpack_i32(r);
	m->denied = unpack_u64(r);
	/* A pid is positive in a pid_t. */
	if (m->leader > INT32_MAX)
		r->error = r->error ?: -EBADMSG;
}

/* Strangers may have another idea of what comes behind the version. */
static void decode_hello(PackReader *r, LinkMessage *m)
{
	m->version = unpack_u32(r);
	if (r->error || m->version == LINK_VERSION) {
		decode_state(r, m);
		return;
	}
	decode_state(r, m);
	if (r->error)
		*m = (LinkMessage){ .kind = LINK_HELLO, .version = m->version, .state = SESSION_RUNNING };
	r->error = 0;
	r->offset = r->size;
}

static void decode_rows(PackReader *r, LinkMessage *m)
{
	size_t columns;
	uint32_t n;

	m->table = (LinkTable)unpack_enum(r, LINK_TABLE_MAX);
	columns = link_table_columns(m->table);
	m->first = unpack_u32(r);
	m->total = unpack_u32(r);
	n = unpack_u32(r);
	if (r->error)
		return;
	if (m->total > rows_of_kind(m->kind) || m->first > m->total || n > m->total - m->first ||
	    n > (r->size - r->offset) / (columns * sizeof(uint32_t))) {
		r->error = -EBADMSG;
		return;
	}
	if (n == 0)
		return;

	m->rows = calloc(n, sizeof(LinkRow));
	if (!m->rows) {
		r->error = -ENOMEM;
		return;
	}
	m->n_rows = n;
	for (uint32_t i = 0; i < n && !r->error; i++)
		for (size_t c = 0; c < columns && !r->error; c++)
			m->rows[i].columns[c] = unpack_string(r, LINK_TEXT_MAX);
}

static void decode_whole(PackReader *r, LinkMessage *m)
{
	decode_rows(r, m);
	if (m->table != table_of_kind(m->kind) || m->first != 0 || m->total != m->n_rows)
		r->error = r->error ?: -EBADMSG;
}

int link_decode_head(const void *data, size_t size, LinkHead *ret)
{
	LinkHead head = { 0 };
	PackReader r;

	if (size > LINK_PACKET_MAX)
		return -EBADMSG;
	unpack_init(&r, data, size);
	head.kind = (LinkKind)unpack_enum(&r, LINK_KIND_MAX);
	if (head.kind == LINK_TABLE || head.kind == LINK_ROWS || head.kind == LINK_DONE)
		head.serial = unpack_u32(&r);
	if (head.kind == LINK_DENIED)
		head.denied = unpack_u64(&r);
	if (head.kind == LINK_TABLE || head.kind == LINK_ROWS || head.kind == LINK_DENIED) {
		(void)unpack_u32(&r); /* table */
		(void)unpack_u32(&r); /* first */
		head.total = unpack_u32(&r);
		head.n_rows = unpack_u32(&r);
	}
	if (r.error)
		return r.error;
	*ret = head;
	return 0;
}

int link_decode(const void *data, size_t size, LinkMessage *ret)
{
	_cleanup_(link_message_done) LinkMessage m = LINK_MESSAGE_INIT;
	PackReader r;
	int error;

	if (size > LINK_PACKET_MAX)
		return -EBADMSG;
	unpack_init(&r, data, size);
	m.kind = (LinkKind)unpack_enum(&r, LINK_KIND_MAX);
	if (r.error)
		return r.error;

	switch (m.kind) {
	case LINK_HELLO:
		decode_hello(&r, &m);
		break;
	case LINK_STATE:
		decode_state(&r, &m);
		break;
	case LINK_STARTED:
		break;
	case LINK_FAILED:
		m.error = unpack_string(&r, LINK_TEXT_MAX);
		m.text = unpack_string(&r, LINK_TEXT_MAX);
		break;
	case LINK_EXITED:
		m.exit_status = unpack_i32(&r);
		m.text = unpack_string(&r, LINK_TEXT_MAX);
		m.denied = unpack_u64(&r);
		break;
	case LINK_STOP:
		m.serial = unpack_u32(&r);
		m.usec = unpack_u64(&r);
		m.text = unpack_string(&r, LINK_TEXT_MAX);
		break;
	case LINK_TABLE_GET:
		m.serial = unpack_u32(&r);
		m.table = (LinkTable)unpack_enum(&r, LINK_TABLE_MAX);
		m.first = unpack_u32(&r);
		if (!table_is_asked_for(m.table) || m.first > LINK_ROWS_MAX)
			r.error = r.error ?: -EBADMSG;
		break;
	case LINK_TABLE:
		m.serial = unpack_u32(&r);
		decode_rows(&r, &m);
		if (!table_is_asked_for(m.table))
			r.error = r.error ?: -EBADMSG;
		break;
	case LINK_DONE:
		m.serial = unpack_u32(&r);
		m.result = unpack_i32(&r);
		m.text = unpack_string(&r, LINK_TEXT_MAX);
		if (m.result > 0 || m.result < -PACK_ERRNO_MAX)
			r.error = r.error ?: -EBADMSG;
		break;
	case LINK_REACH:
		m.serial = unpack_u32(&r);
		m.addresses = unpack_strings(&r, LINK_ADDRESSES_MAX, LINK_ADDRESS_MAX);
		break;
	case LINK_ALLOW:
		m.serial = unpack_u32(&r);
		m.text = unpack_string(&r, LINK_TEXT_MAX);
		m.usec = unpack_u64(&r);
		break;
	case LINK_REVOKE:
		m.serial = unpack_u32(&r);
		m.text = unpack_string(&r, LINK_TEXT_MAX);
		break;
	case LINK_ROWS:
		m.serial = unpack_u32(&r);
		decode_whole(&r, &m);
		break;
	case LINK_DENIED:
		m.denied = unpack_u64(&r);
		decode_whole(&r, &m);
		break;
	case LINK_VERIFY:
		m.serial = unpack_u32(&r);
		m.probes = decode_flag(&r);
		break;
	case LINK_KIND_MAX:
	default:
		return -EBADMSG;
	}

	error = unpack_finish(&r);
	if (error)
		return error;
	*ret = m;
	m = LINK_MESSAGE_INIT;
	return 0;
}
