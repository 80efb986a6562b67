/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lifeline: launch ⇄ session, a SOCK_SEQPACKET pair that the service makes and whose other end Launch
 * returns. First the warnings, then LIFELINE_STARTED, then what happens to the agent. When launch closes its
 * end, the person's terminal is gone.
 */

#include "dbus/base.h"

#define LIFELINE_PACKET_MAX 8192u

typedef enum LifelineKind {
	LIFELINE_WARNING,   /* session: text, one line: before STARTED, printed before the first byte of the
			       PTY;   afterwards, once, why the session ends the agent, printed at the end */
	LIFELINE_STARTED,   /* session: no more warnings; the agent runs */
	LIFELINE_STOPPED,   /* session: number of the stop signal; launch stops itself */
	LIFELINE_CONTINUED, /* session: the agent runs again */
	LIFELINE_EXITED, /* session: number is the status as wait(2) encodes it; nothing of the jail runs */
	LIFELINE_SIGNAL, /* launch: number of a signal for the agent, as kill(2) of one process sends it */
	LIFELINE_RESUME, /* launch: it runs again; resume the agent's foreground group */
	LIFELINE_KEY, /* launch: number of a signal for its foreground group, as a terminal's key sends it */
	LIFELINE_RESUME_BEHIND, /* launch: it runs again, in the background of the person's terminal */
	LIFELINE_KIND_MAX,
} LifelineKind;

typedef struct LifelineMessage {
	LifelineKind kind;
	int32_t number;
	char *text;
} LifelineMessage;

void lifeline_message_done(LifelineMessage *m);
int lifeline_encode(const LifelineMessage *m, uint8_t **ret_data, size_t *ret_size);
int lifeline_decode(const void *data, size_t size, LifelineMessage *ret);
