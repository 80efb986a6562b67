/* SPDX-License-Identifier: MIT */
#include "service/inside/verify.h"

int main(void)
{
	return verify_run();
}
