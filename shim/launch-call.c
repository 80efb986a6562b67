/* SPDX-License-Identifier: MIT */
#include "shim/launch-call.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "dbus/wire.h"

static int append_descriptors(sd_bus_message *m, const LaunchCall *call)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "{uh}");
	for (int i = 0; r >= 0 && i < STREAMS_N; i++) {
		int fd = call->streams->kinds[i] == STREAM_TERMINAL ? call->slave_fd : i;

		if (call->streams->kinds[i] != STREAM_CLOSED)
			r = sd_bus_message_append(m, "{uh}", (uint32_t)i, fd);
	}
	for (size_t i = 0; r >= 0 && i < call->further->n; i++)
		r = sd_bus_message_append(m, "{uh}", (uint32_t)call->further->numbers[i],
					  call->further->fds[i]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int launch_call_send(sd_bus *bus, const LaunchCall *call, sd_bus_message_handler_t handler, void *userdata)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	_cleanup_free_ char *directory = getcwd(NULL, 0);
	int r;

	if (!directory)
		return -errno;
	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					   CS_MEMBER_LAUNCH);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, call->interactive);
	if (r >= 0)
		r = sd_bus_message_append(m, "s", call->agent);
	if (r >= 0)
		r = wire_append_vector(m, call->arguments);
	if (r >= 0)
		r = wire_append_vector(m, call->environment);
	if (r >= 0)
		r = wire_append_bytes(m, directory);
	if (r >= 0)
		r = append_descriptors(m, call);
	if (r >= 0)
		r = call->background ? sd_bus_message_append(m, "a{sv}", 1, CS_OPTION_BACKGROUND, "b", 1)
				     : sd_bus_message_append(m, "a{sv}", 0);
	if (r >= 0)
		r = sd_bus_call_async(bus, NULL, m, handler, userdata, UINT64_MAX);
	return r < 0 ? r : 0;
}

int launch_call_read(sd_bus_message *reply, int *ret_lifeline_fd)
{
	const char *id, *path;
	struct stat status;
	int fd, r;

	r = sd_bus_message_read(reply, "soh", &id, &path, &fd);
	if (r < 0)
		return -EBADMSG;
	if (fstat(fd, &status) < 0 || !S_ISSOCK(status.st_mode))
		return -EBADMSG;
	/* The message closes its own copy. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, STREAMS_N);
	if (fd < 0)
		return -errno;
	*ret_lifeline_fd = fd;
	return 0;
}
