/* SPDX-License-Identifier: MIT */
#include "service/plan/name-services.h"

static const struct {
	const char *path;
	bool root; /* root's agents have it too */
} services[] = {
	/* nscd(8) lets root stop it and empty its caches. */
	{ "/run/nscd/socket", false },
	/* sssd's; its other pipes check passwords, or give keys and rules. */
	{ "/var/lib/sss/pipes/nss", true },
};

const char *name_service_at(size_t index)
{
	return index < ELEMENTSOF(services) ? services[index].path : NULL;
}

bool name_service_is(const char *path, uid_t uid)
{
	if (starts_with(path, "/var/run/"))
		path += strlen("/var");
	for (size_t i = 0; i < ELEMENTSOF(services); i++)
		if (streq(path, services[i].path) && (uid != 0 || services[i].root))
			return true;
	return false;
}
