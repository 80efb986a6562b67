/* SPDX-License-Identifier: MIT */
#include "service/daemon/client-credentials.h"

#define GROUPS_MAX 65536u /* NGROUPS_MAX */

static int read_groups(sd_bus_message *m, Client *client)
{
	const void *data;
	size_t size;
	int r;

	r = sd_bus_message_enter_container(m, 'v', "au");
	if (r < 0)
		return r;
	r = sd_bus_message_read_array(m, 'u', &data, &size);
	if (r < 0)
		return r;
	if (size / sizeof(uint32_t) > GROUPS_MAX)
		return -E2BIG;
	free(client->groups);
	client->n_groups = 0;
	client->groups = malloc(size + 1);
	if (!client->groups)
		return -ENOMEM;
	STATIC_ASSERT(sizeof(gid_t) == sizeof(uint32_t));
	if (size > 0)
		memcpy(client->groups, data, size);
	client->n_groups = size / sizeof(uint32_t);
	return sd_bus_message_exit_container(m);
}

/* Keys that we do not know are passed over. */
int client_read_credentials(sd_bus_message *m, Client *client, bool *ret_uid)
{
	bool uid = false, pid = false, groups = false;
	uint32_t value;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		const char *key;

		r = sd_bus_message_read(m, "s", &key);
		if (r < 0)
			return r;
		if (streq(key, "UnixUserID")) {
			r = sd_bus_message_read(m, "v", "u", &value);
			client->uid = value;
			uid = r >= 0;
		} else if (streq(key, "ProcessID")) {
			r = sd_bus_message_read(m, "v", "u", &value);
			client->pid = (pid_t)value;
			pid = r >= 0 && value > 0 && value <= INT32_MAX;
		} else if (streq(key, "UnixGroupIDs")) {
			r = read_groups(m, client);
			groups = r >= 0;
		} else {
			r = sd_bus_message_skip(m, "v");
		}
		if (r < 0)
			return r;
		r = sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	*ret_uid = uid;
	if (!pid)
		client->problem =
			"the bus does not know the caller's process: it runs in another pid namespace";
	else if (!groups)
		client->problem = "the bus does not know the caller's groups (UnixGroupIDs)";
	return 0;
}
