/* SPDX-License-Identifier: MIT */
#include "base/paths.h"
#include "service/inside/mounts.h"

#include "dbus/names.h"
#include "service/inside/measure.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_authority(const char *name)
{
	return streq(name, ".Xauthority") || streq(name, ".ICEauthority");
}

bool mounts_is_agents(const Expectations *e, const char *path)
{
	const ExpectedEntry *covering = e && e->joined ? expectations_covering(e, path) : NULL;
	ObjectIdentity object, directory;

	if (!covering || streq(covering->path, path) ||
	    (covering->kind != ENTRY_TMPFS && covering->kind != ENTRY_DIRECTORY))
		return false;
	object = measure_object(path);
	directory = measure_object(covering->path);
	return object.known && directory.known && object.device == directory.device;
}

/* By what it is first, then by where it is: what fits nowhere is in the scope of what may be written. */
const char *mounts_row(const Expectations *e, const ExpectedEntry *entry)
{
	const char *path = entry->path;

	if (entry->kind == ENTRY_DESCRIPTOR)
		return NULL;
	if (entry->placeholder || entry->pin)
		return "22";
	if (entry->covers_listener)
		return "12";
	if (streq(path, CS_MARKER_PATH))
		return "01";
	if (path_is_within(path, "/dev"))
		return "10";
	if (path_is_within(path, "/proc"))
		return "07";
	if (path_is_within(path, "/tmp") || path_is_within(path, CS_TEMP_ROOT))
		return "11";
	if (streq(path, CS_GITCONFIG_PATH))
		return "16";
	if (entry->kind == ENTRY_FILE && streq(entry->origin, "network"))
		return "20";
	if (path_is_within(path, "/run") || path_is_within(path, "/var/run"))
		return "12";
	if (streq(base_name(path), ".netrc"))
		return "14";
	if (is_authority(base_name(path)))
		return "15";
	if (entry->mode == ENTRY_MASKED && (path_is_within(path, "/etc") || streq(entry->origin, "system")))
		return "13";
	if (entry->mode == ENTRY_MASKED || streq(path, e->program) ||
	    (entry->mode == ENTRY_RO && starts_with(entry->origin, "profile ")) ||
	    (entry->mode == ENTRY_RO && streq(entry->origin, "every profile")))
		return "21";
	if (entry->kind == ENTRY_TMPFS || entry->kind == ENTRY_LINK || entry->kind == ENTRY_DIRECTORY)
		return "03";
	return "17";
}
