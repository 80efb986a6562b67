/* SPDX-License-Identifier: MIT */
#include "service/inside/init.h"

int main(void)
{
	return init_run();
}
