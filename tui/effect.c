/* SPDX-License-Identifier: MIT */
#include "tui/view.h"

void effect_done(Effect *effect)
{
	for (size_t i = 0; i < effect->n_parts; i++)
		effect_done(&effect->parts[i]);
	free(effect->parts);
	free(effect->title);
	free(effect->text);
	free(effect->view);
	free(effect->question);
	free(effect->done);
	free(effect->session);
	free(effect->address);
	free(effect->comment);
	*effect = (Effect){ 0 };
}
