/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Print "claude-sandbox: SENTENCE" as one line on standard error. The sentence may hold bytes of a stranger,
 * such as a path: what a terminal would obey is shown instead.
 */
void complain(const char *sentence);
