/* SPDX-License-Identifier: MIT */
/*
 * Stands in for systemd's manager: makes scopes as groups of the cgroup2 hierarchy at argv[1] and says what
 * it was asked. argv[2]: "good"; "refuse" answers with an error; "fail" fails the job; "silent" answers
 * nothing; "late" tells of the job before its number; "elsewhere" says done and moves nobody; "old" knows no
 * OOMPolicy of scopes.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/wire.h"

#define MANAGER "org.freedesktop.systemd1.Manager"

static const char *root, *act;

#define NEED(condition)                                  \
	do {                                             \
		if (!(condition)) {                      \
			printf("failed %d\n", __LINE__); \
			_exit(1);                        \
		}                                        \
	} while (0)

static void move(const char *slice, const char *unit, uint32_t pid)
{
	_cleanup_free_ char *path = NULL, *procs = NULL;
	_cleanup_fclose_ FILE *f = NULL;

	NEED(asprintf(&path, "%s/user.slice", root) > 0);
	NEED(mkdir(path, 0755) == 0 || errno == EEXIST);
	free(path);
	NEED(asprintf(&path, "%s/user.slice/%s", root, slice) > 0);
	NEED(mkdir(path, 0755) == 0 || errno == EEXIST);
	free(path);
	NEED(asprintf(&path, "%s/user.slice/%s/%s", root, slice, unit) > 0);
	NEED(mkdir(path, 0755) == 0);
	NEED(asprintf(&procs, "%s/cgroup.procs", path) > 0);
	f = fopen(procs, "we");
	NEED(f);
	NEED(fprintf(f, "%u", pid) > 0);
}

/* Prints each property, and keeps the two that matter. */
static void read_properties(sd_bus_message *m, char **ret_slice, uint32_t *ret_pid, bool *ret_oom_policy)
{
	NEED(sd_bus_message_enter_container(m, 'a', "(sv)") > 0);
	while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
		const char *name, *type, *text;
		uint64_t number;
		char kind;

		NEED(sd_bus_message_read(m, "s", &name) > 0);
		NEED(sd_bus_message_peek_type(m, &kind, &type) > 0 && kind == 'v');
		NEED(sd_bus_message_enter_container(m, 'v', type) > 0);
		if (streq(type, "s")) {
			NEED(sd_bus_message_read(m, "s", &text) > 0);
			printf("property %s=%s\n", name, text);
			*ret_oom_policy |= streq(name, "OOMPolicy");
			if (streq(name, "Slice"))
				NEED((*ret_slice = strdup(text)));
		} else if (streq(type, "t")) {
			NEED(sd_bus_message_read(m, "t", &number) > 0);
			printf("property %s=%llu\n", name, (unsigned long long)number);
		} else {
			NEED(streq(type, "au") && streq(name, "PIDs"));
			NEED(sd_bus_message_read(m, "au", 1, ret_pid) > 0);
		}
		NEED(sd_bus_message_exit_container(m) >= 0 && sd_bus_message_exit_container(m) >= 0);
	}
	NEED(sd_bus_message_exit_container(m) >= 0);
}

static int on_start(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	sd_bus *bus = sd_bus_message_get_bus(m);
	const char *unit, *mode, *job = "/org/freedesktop/systemd1/job/7";
	_cleanup_free_ char *slice = NULL;
	bool oom_policy = false;
	uint32_t pid = 0;

	NEED(sd_bus_message_read(m, "ss", &unit, &mode) > 0 && streq(mode, "fail"));
	read_properties(m, &slice, &pid, &oom_policy);
	NEED(slice && pid > 0);
	printf("asked %s for %u in %s\n", unit, pid, slice);
	if (streq(act, "refuse"))
		return sd_bus_error_setf(reterr, "org.freedesktop.systemd1.UnitExists", "It is not to be.");
	if (streq(act, "silent"))
		return 1;
	if (streq(act, "old") && oom_policy)
		return sd_bus_error_setf(reterr, SD_BUS_ERROR_PROPERTY_READ_ONLY,
					 "Cannot set property OOMPolicy, or unknown property.");
	if (streq(act, "good") || streq(act, "late") || streq(act, "old"))
		move(slice, unit, pid);
	if (!streq(act, "late"))
		NEED(sd_bus_reply_method_return(m, "o", job) >= 0);
	NEED(sd_bus_emit_signal(bus, "/org/freedesktop/systemd1", MANAGER, "JobRemoved", "uoss", 7u, job,
				unit, streq(act, "fail") ? "failed" : "done") >= 0);
	if (streq(act, "late"))
		NEED(sd_bus_reply_method_return(m, "o", job) >= 0);
	return 1;
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", on_start, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
	SD_BUS_VTABLE_END,
};

int main(int argc, char **argv)
{
	sd_bus *bus = NULL;

	NEED(argc == 3);
	root = argv[1];
	act = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	NEED(sd_bus_open_system(&bus) >= 0);
	NEED(sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1", MANAGER, vtable, NULL) >= 0);
	NEED(sd_bus_request_name(bus, "org.freedesktop.systemd1", 0) >= 0);
	printf("ready\n");
	for (;;) {
		int r = sd_bus_process(bus, NULL);

		NEED(r >= 0);
		if (r == 0)
			NEED(sd_bus_wait(bus, UINT64_MAX) >= 0);
	}
}
