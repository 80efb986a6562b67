/* SPDX-License-Identifier: MIT */
#pragma once

/* What the model's own files share. */

#include "tui/model.h"

/* value is copied; NULL: none. Return: 0; -ENOMEM, and nothing has changed. */
int model_set_text(char **text, const char *value);
void model_run_done(ModelRun *run);
