/* SPDX-License-Identifier: MIT */
#include "service/daemon/record.h"

#include "service/link/pack.h"

#define RECORD_VERSION 1u

void record_done(Record *record)
{
	free(record->id);
	free(record->agent);
	free(record->user);
	free(record->workspace);
	*record = (Record){ 0 };
}

bool session_id_valid(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz234567");

	return n == CS_ID_LENGTH && id[n] == '\0';
}

int record_encode(const Record *record, uint8_t **ret_data, size_t *ret_size)
{
	PackWriter w;

	pack_init(&w, RECORD_BYTES_MAX);
	pack_u32(&w, RECORD_VERSION);
	pack_string(&w, record->id);
	pack_string(&w, record->agent);
	pack_string(&w, record->user);
	pack_string(&w, record->workspace);
	pack_u32(&w, record->uid);
	pack_u64(&w, record->started_usec);
	pack_u32(&w, (uint32_t)record->pid);
	pack_u64(&w, record->start_ticks);
	if (w.error) {
		int r = w.error;

		pack_done(&w);
		return r;
	}
	*ret_data = TAKE_PTR(w.data);
	*ret_size = w.size;
	pack_done(&w);
	return 0;
}

int record_decode(const void *data, size_t size, Record *ret)
{
	_cleanup_(record_done) Record record = { 0 };
	uint32_t version, pid;
	PackReader reader;
	int r;

	unpack_init(&reader, data, size);
	version = unpack_u32(&reader);
	record.id = unpack_string(&reader, CS_ID_LENGTH);
	record.agent = unpack_string(&reader, RECORD_BYTES_MAX);
	record.user = unpack_string(&reader, RECORD_BYTES_MAX);
	record.workspace = unpack_string(&reader, CS_PATH_BYTES_MAX);
	record.uid = unpack_u32(&reader);
	record.started_usec = unpack_u64(&reader);
	pid = unpack_u32(&reader);
	record.start_ticks = unpack_u64(&reader);
	r = version > RECORD_VERSION ? reader.error : unpack_finish(&reader);
	if (r < 0)
		return r;
	if (version < RECORD_VERSION || pid == 0 || pid > INT32_MAX || !session_id_valid(record.id))
		return -EBADMSG;
	record.pid = (pid_t)pid;
	*ret = record;
	record = (Record){ 0 };
	return 0;
}
