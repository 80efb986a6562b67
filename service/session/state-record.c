/* SPDX-License-Identifier: MIT */
#include "service/session/state-record.h"

#include <inttypes.h>

#include "service/link/siphash.h"
#include "service/session/state-json.h"

static const char *const side_names[] = { [STATE_AGENT] = "agent", [STATE_HOST] = "host" };

/* Whoever could make two texts of one digest writes them both: it tells versions apart, no adversaries. */
uint64_t state_record_digest(const char *text, size_t size)
{
	static const uint8_t key[16];

	return siphash(key, text, size);
}

static int parse(const StateText *text, StateRecord *ret, size_t *ret_header)
{
	const char *end = memchr(text->text, '\n', MIN_OF(text->size, (size_t)STATE_HEADER_MAX));
	uint64_t digest;
	char side[8];

	if (!end || sscanf(text->text, "%7s %16" SCNx64, side, &digest) != 2)
		return -EBADMSG;
	for (size_t i = 0; i < ELEMENTSOF(side_names); i++)
		if (streq(side, side_names[i])) {
			*ret = (StateRecord){ .side = (StateSide)i, .digest = digest };
			*ret_header = (size_t)(end + 1 - text->text);
			return 0;
		}
	return -EBADMSG;
}

int state_record_read(int directory_fd, const char *name, uid_t uid, bool json, StateRecord *ret_record,
		      StateText *ret)
{
	_cleanup_(state_text_done) StateText text = { 0 };
	StateRecord record = { 0 };
	size_t header = 0;
	int r;

	r = state_file_read(directory_fd, name, uid, false, &text);
	if (r < 0)
		return r;
	if (text.condition == STATE_VALID &&
	    (parse(&text, &record, &header) < 0 ||
	     (json && state_json_check(text.text + header, text.size - header) < 0))) {
		text.condition = STATE_UNREADABLE;
		freep(&text.text);
		text.size = 0;
	}
	if (text.text) {
		text.size -= header;
		memmove(text.text, text.text + header, text.size + 1);
	}
	if (ret_record)
		*ret_record = record;
	*ret = text;
	text = (StateText){ 0 };
	return 0;
}

int state_record_write(int directory_fd, const char *name, StateSide side, const StateVersion *written,
		       const StateVersion *base)
{
	_cleanup_free_ char *text = malloc(STATE_HEADER_MAX + base->size);
	int n;

	if (!text)
		return -ENOMEM;
	n = snprintf(text, STATE_HEADER_MAX, "%s %016" PRIx64 "\n", side_names[side],
		     state_record_digest(written->text, written->size));
	memcpy(text + n, base->text, base->size);
	return state_file_put(directory_fd, name, text, (size_t)n + base->size, true);
}
