/* SPDX-License-Identifier: MIT */
#include "service/session/run.h"

int main(void)
{
	return session_run();
}
