/* SPDX-License-Identifier: MIT */
#include "tui/bus-socket.h"

#include <sys/inotify.h>

#define TRIES 6
#define FIRST_PAUSE_USEC (20 * USEC_PER_MSEC) /* doubled each time: 1.3 s in all */

struct BusSocket {
	sd_event *event;
	char *path;
	void (*ready)(void *userdata);
	void *userdata;
	sd_event_source *above, *directory; /* the directory's directory, and the directory */
	sd_event_source *again;
	unsigned tries;
};

BusSocket *bus_socket_free(BusSocket *socket)
{
	if (!socket)
		return NULL;
	sd_event_source_disable_unref(socket->above);
	sd_event_source_disable_unref(socket->directory);
	sd_event_source_disable_unref(socket->again);
	sd_event_unref(socket->event);
	free(socket->path);
	free(socket);
	return NULL;
}

/* The directory that path lies in. Return: to be freed, or NULL without memory. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int on_name(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	BusSocket *socket = userdata;
	const char *name = strrchr(socket->path, '/') + 1;

	if (event->mask & IN_Q_OVERFLOW || (event->len > 0 && streq(event->name, name))) {
		socket->tries = TRIES;
		socket->ready(socket->userdata);
	}
	return 0;
}

static int watch_directory(BusSocket *socket);

/* Something came beside the directory: it may be the directory itself, which was not there, or another one.
 */
static int on_directory(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	BusSocket *socket = userdata;
	_cleanup_free_ char *directory = directory_of(socket->path);

	if (directory && !(event->mask & IN_Q_OVERFLOW) &&
	    (event->len == 0 || !streq(event->name, strrchr(directory, '/') + 1)))
		return 0;
	if (watch_directory(socket) == 0) {
		socket->tries = TRIES;
		socket->ready(socket->userdata);
	}
	return 0;
}

static int watch_directory(BusSocket *socket)
{
	_cleanup_free_ char *directory = directory_of(socket->path);

	if (!directory)
		return -ENOMEM;
	socket->directory = sd_event_source_disable_unref(socket->directory);
	return sd_event_add_inotify(socket->event, &socket->directory, directory,
				    IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR, on_name, socket);
}

int bus_socket_new(sd_event *event, const char *path, void (*ready)(void *userdata), void *userdata,
		   BusSocket **ret)
{
	_cleanup_(bus_socket_freep) BusSocket *socket = calloc(1, sizeof(*socket));
	_cleanup_free_ char *directory = NULL, *above = NULL;
	int r;

	if (!socket)
		return -ENOMEM;
	socket->event = sd_event_ref(event);
	socket->ready = ready;
	socket->userdata = userdata;
	socket->path = strdup(path);
	directory = socket->path ? directory_of(socket->path) : NULL;
	above = directory ? directory_of(directory) : NULL;
	if (!above)
		return -ENOMEM;
	r = sd_event_add_inotify(event, &socket->above, above, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR,
				 on_directory, socket);
	if (r < 0)
		return r;
	r = watch_directory(socket);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret = TAKE_PTR(socket);
	return 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	BusSocket *socket = userdata;

	socket->ready(socket->userdata);
	return 0;
}

void bus_socket_failed(BusSocket *socket)
{
	uint64_t pause = FIRST_PAUSE_USEC;

	if (socket->tries == 0)
		return;
	pause <<= TRIES - socket->tries--;
	socket->again = sd_event_source_disable_unref(socket->again);
	(void)sd_event_add_time_relative(socket->event, &socket->again, CLOCK_MONOTONIC, pause, 0, on_again,
					 socket);
}
