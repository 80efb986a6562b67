/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/plan-fixture.h"

/* Links, places that lie elsewhere than usual, and what earlier sessions may have left. */

int main(void)
{
	return 0;
}
