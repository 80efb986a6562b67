/* SPDX-License-Identifier: MIT */
#include "tests/net/jail.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

int closed_jail(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Denial *denial = calloc(1, sizeof(*denial));
	Jail *jail = calloc(1, sizeof(*jail));
	void **both = calloc(2, sizeof(*both));

	jail_routes_make(0);
	if (jail_start(jail, &problem) < 0 ||
	    denial_init(denial, &jail->sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(denial, &problem) < 0) {
		print_error("%s\n", problem);
		return -1;
	}
	both[0] = jail;
	both[1] = denial;
	*state = both;
	return 0;
}

int end_jail(void **state)
{
	void **both = *state;

	denial_done(both[1]);
	jail_stop(both[0]);
	free(both[0]);
	free(both[1]);
	free(both);
	return 0;
}
