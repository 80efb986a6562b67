/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "service/daemon/log.h"
#include "service/daemon/manager.h"
#include "service/daemon/run-dir.h"

/* D-Bus specification, "Well-known Message Bus Instances"; never from the environment. */
#define BUS_ADDRESS "unix:path=/run/dbus/system_bus_socket"
/* As many as systemd lets a service have that asks for many. */
#define DESCRIPTORS_MIN 65536u
/* What the kernel keeps of what the bus has not taken; the rest waits where the service sees it (turns.h). */
#define WAY_OUT_BYTES (16 << 10)

/*
 * Callers pass descriptors, and a message whose descriptors find no room would cost us the bus. Children get
 * their callers' limits.
 */
static void raise_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max < DESCRIPTORS_MIN) {
		const struct rlimit more = { DESCRIPTORS_MIN, DESCRIPTORS_MIN };

		/* Needs CAP_SYS_RESOURCE, which root in a container may not have. */
		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			return;
	}
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

static int prepare_process(void)
{
	sigset_t mask;
	int fd;

	if (clearenv() != 0)
		return -ENOMEM;
	/* A new descriptor must never become one of these. */
	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return -errno;
	} while (fd <= STDERR_FILENO);
	(void)close(fd);
	umask(022);
	if (chdir("/") < 0)
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	raise_descriptors();
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	return sigprocmask(SIG_BLOCK, &mask, NULL) < 0 ? -errno : 0;
}

/* The library makes it 8 MB. */
static int narrow_way_out(sd_bus *bus)
{
	const int bytes = WAY_OUT_BYTES;
	int fd = sd_bus_get_fd(bus);

	if (fd < 0)
		return fd;
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0 ? -errno : 0;
}

static int open_bus(sd_event *event, sd_bus **ret)
{
	sd_bus *bus = NULL;
	int r;

	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, BUS_ADDRESS);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, true);
	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		r = narrow_way_out(bus);
	if (r >= 0)
		r = sd_bus_attach_event(bus, event, PRIORITY_SERVED);
	/* Without the bus there is nobody to serve; the sessions go on, and the next service finds them. */
	if (r >= 0)
		r = sd_bus_set_exit_on_disconnect(bus, true);
	if (r < 0) {
		sd_bus_close_unref(bus);
		return r;
	}
	*ret = bus;
	return 0;
}

/* systemd.exec(5); who starts the bus hands the variable on with another number. */
static bool systemd_started_us(void)
{
	const char *theirs = getenv("SYSTEMD_EXEC_PID");
	char ours[sizeof("2147483647")];

	(void)snprintf(ours, sizeof(ours), "%d", (int)getpid());
	return theirs && streq(theirs, ours);
}

static int run(void)
{
	const bool unit = systemd_started_us();
	_cleanup_(manager_freep) Manager *manager = NULL;
	_cleanup_free_ char *problem = NULL;
	sd_event *event = NULL;
	sd_bus *bus = NULL;
	int r, first = 0;

	if (geteuid() != 0) {
		log_line("only root can run the service");
		return -EPERM;
	}
	r = prepare_process();
	if (r >= 0)
		r = first = run_dir_prepare(&problem);
	if (r < 0) {
		log_line("%s", problem ? problem : strerror(-r));
		return r;
	}
	r = sd_event_new(&event);
	if (r >= 0)
		r = open_bus(event, &bus);
	if (r >= 0)
		r = manager_new(event, bus, &manager);
	if (r >= 0) {
		manager->machine_started = first > 0;
		manager->unit = unit;
		r = manager_run(manager);
	}
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		log_line("the service cannot run: %s", strerror(-r));
	manager = manager_free(manager);
	sd_bus_flush_close_unref(bus);
	sd_event_unref(event);
	return r;
}

int main(void)
{
	int r = run();

	return r < 0 ? 1 : r;
}
