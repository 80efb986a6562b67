/* SPDX-License-Identifier: MIT */
#include "service/link/lifeline.h"

#include <signal.h>
#include <sys/wait.h>

#include "service/link/pack.h"

/* What stands in number for each kind. */
typedef enum LifelineNumber {
	NUMBER_NONE,
	NUMBER_SIGNAL,
	NUMBER_STATUS,
} LifelineNumber;

static const LifelineNumber lifeline_numbers[LIFELINE_KIND_MAX] = {
	[LIFELINE_STOPPED] = NUMBER_SIGNAL,
	[LIFELINE_EXITED] = NUMBER_STATUS,
	[LIFELINE_SIGNAL] = NUMBER_SIGNAL,
	[LIFELINE_KEY] = NUMBER_SIGNAL,
};

static bool lifeline_is_sane(const LifelineMessage *m)
{
	switch (lifeline_numbers[m->kind]) {
	case NUMBER_SIGNAL:
		return m->number > 0 && m->number < NSIG;
	case NUMBER_STATUS:
		return m->number >= 0 && (WIFEXITED(m->number) || WIFSIGNALED(m->number));
	case NUMBER_NONE:
	default:
		return m->number == 0;
	}
}

void lifeline_message_done(LifelineMessage *m)
{
	free(m->text);
	*m = (LifelineMessage){ .kind = LIFELINE_KIND_MAX };
}

int lifeline_encode(const LifelineMessage *m, uint8_t **ret_data, size_t *ret_size)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	if (m->kind >= LIFELINE_KIND_MAX || !lifeline_is_sane(m))
		return -EINVAL;
	if (m->kind != LIFELINE_WARNING && m->text && *m->text)
		return -EINVAL;

	pack_init(&w, LIFELINE_PACKET_MAX);
	pack_u32(&w, (uint32_t)m->kind);
	pack_i32(&w, m->number);
	pack_string(&w, m->text);
	if (w.error)
		return w.error;
	*ret_size = w.size;
	*ret_data = TAKE_PTR(w.data);
	return 0;
}

int lifeline_decode(const void *data, size_t size, LifelineMessage *ret)
{
	_cleanup_(lifeline_message_done) LifelineMessage m = { .kind = LIFELINE_KIND_MAX };
	PackReader r;
	int error;

	if (size > LIFELINE_PACKET_MAX)
		return -EBADMSG;
	unpack_init(&r, data, size);
	m.kind = (LifelineKind)unpack_enum(&r, LIFELINE_KIND_MAX);
	m.number = unpack_i32(&r);
	m.text = unpack_string(&r, LIFELINE_PACKET_MAX);
	error = unpack_finish(&r);
	if (error)
		return error;
	if (!lifeline_is_sane(&m) || (m.kind != LIFELINE_WARNING && *m.text))
		return -EBADMSG;
	*ret = m;
	m = (LifelineMessage){ .kind = LIFELINE_KIND_MAX };
	return 0;
}
