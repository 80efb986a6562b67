/* SPDX-License-Identifier: MIT */
#include "service/link/bait-name.h"

#include "dbus/names.h"
#include "service/link/siphash.h"

/* What is hashed is known to all; the id is the key, of 80 random bits. */
#define HASHED "bait"

STATIC_ASSERT(CS_ID_LENGTH == 16);

char *bait_name(const char *id)
{
	char *name;

	if (strlen(id) != CS_ID_LENGTH ||
	    asprintf(&name, "%016llx",
		     (unsigned long long)siphash((const uint8_t *)id, HASHED, strlen(HASHED))) < 0)
		return NULL;
	return name;
}

char *bait_path(const char *id)
{
	_cleanup_free_ char *name = bait_name(id);
	char *path;

	if (!name || asprintf(&path, CS_BAIT_FORMAT, name) < 0)
		return NULL;
	return path;
}
