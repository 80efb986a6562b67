/* SPDX-License-Identifier: MIT */

/*
 * Every probe, where what it tries is allowed: it has to say that it got out. Where this kernel, or any,
 * allows it to nobody, that is said here with the reason. A probe that is in neither list fails the test.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/inside/measure.h"
#include "tests/unit/probe-fixture.h"

#define PORT 4711

static void outside(Expectations *e)
{
	/* Ours are those of outside. */
	e->namespaces[NAMESPACE_PID] = measure_namespace("self", NAMESPACE_PID);
	e->namespaces[NAMESPACE_IPC] = measure_namespace("self", NAMESPACE_IPC);
}

/* The machine's first network has a number that every kernel gives it (proc_ns.h). */
static void first_network(Expectations *e)
{
	e->namespaces[NAMESPACE_NET] = 0xeffffff9;
}

static bool has_namespace_handles(void)
{
	union {
		struct file_handle handle;
		uint8_t bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} room = { .handle.handle_bytes = MAX_HANDLE_SZ };
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), id, again = -1;
	struct stat st = { 0 };

	/* In a container the machine's network is not ours to open. */
	if (fstat(fd, &st) == 0 && st.st_ino == 0xeffffff9 &&
	    name_to_handle_at(fd, "", &room.handle, &id, AT_EMPTY_PATH) == 0)
		again = open_by_handle_at(fd, &room.handle, O_RDONLY | O_CLOEXEC);
	(void)close_fd(fd);
	(void)close_fd(again);
	return again >= 0;
}

/* A mount namespace whose number is near ours. */
static void other_mounts(Expectations *e)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == 1 || unshare(CLONE_NEWNS) < 0 || write(ends[1], "", 1) != 1)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
}

static bool has_mount_lists(void)
{
	/* statmount(2) and listmount(2), Linux 6.8, of other namespaces from 6.11 on. */
	return syscall(458, NULL, NULL, 0, 0) < 0 && errno != ENOSYS;
}

static void forbid(Expectations *e)
{
	e->forbid_namespaces = true;
}

static ExpectedEntry entries[4];

static ExpectedEntry *entry_add(Expectations *e, EntryKind kind, EntryMode mode, const char *path)
{
	ExpectedEntry *entry = &entries[e->n_entries++];

	e->entries = entries;
	*entry = (ExpectedEntry){ .kind = kind, .mode = mode, .path = strdup(path) };
	return entry;
}

static void file_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void uncovered_mask(Expectations *e)
{
	(void)entry_add(e, ENTRY_TMPFS, ENTRY_MASKED, "/etc/ssl");
}

static void protected_file(Expectations *e)
{
	assert_int_equal(mkdir("/tmp/place", 0755), 0);
	file_make("/tmp/file");
	(void)entry_add(e, ENTRY_BIND, ENTRY_RW, "/");
	(void)entry_add(e, ENTRY_BIND, ENTRY_RO, "/tmp/file");
	(void)entry_add(e, ENTRY_BIND, ENTRY_RW, "/tmp/place");
}

/* A mount in a place of the machine's, and no mount below the root that holds its name. */
static void mask_without_anchor(Expectations *e)
{
	assert_int_equal(mkdir("/tmp/home", 0755), 0);
	assert_int_equal(mkdir("/tmp/home/mask", 0755), 0);
	assert_int_equal(mount("tmpfs", "/tmp/home/mask", "tmpfs", 0, NULL), 0);
	(void)entry_add(e, ENTRY_TMPFS, ENTRY_PRIVATE, "/");
	(void)entry_add(e, ENTRY_BIND, ENTRY_RW, "/tmp/home");
}

static void read_only_mount(Expectations *e)
{
	assert_int_equal(mkdir("/tmp/ro", 0755), 0);
	assert_int_equal(mount("/usr", "/tmp/ro", NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount(NULL, "/tmp/ro", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
}

static ExpectedState states[3];

/* The state that is here is the person's own. */
static void add_state(Expectations *e, StateKind kind, const char *path, const char *object)
{
	e->states = states;
	states[e->n_states++] = (ExpectedState){ .kind = kind,
						 .base = strdup("/tmp/state"),
						 .path = strdup(path),
						 .object = measure_target(object) };
}

static void state_of_outside(Expectations *e)
{
	static const StateKind kinds[] = { STATE_ORDERS, STATE_TRANSCRIPTS };

	assert_int_equal(mkdir("/tmp/state", 0700), 0);
	add_state(e, STATE_ALL, "/tmp/state", "/tmp/state");
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		add_state(e, kinds[i], "/tmp/state/daemon/x", "/none");
}

/* The state is the workspace's, and so is what lies in it. */
static void session_in_state(Expectations *e)
{
	assert_int_equal(mkdir("/tmp/state", 0700), 0);
	assert_int_equal(mkdir("/tmp/state/daemon", 0700), 0);
	add_state(e, STATE_SESSION, "/tmp/state/daemon", "/none");
}

/* A directory of it is another's by a second mount. */
static void session_of_outside(Expectations *e)
{
	assert_int_equal(mkdir("/tmp/other", 0700), 0);
	session_in_state(e);
	assert_int_equal(mount("/tmp/other", "/tmp/state/daemon", NULL, MS_BIND, NULL), 0);
	states[0].object = measure_target("/tmp/other");
}

static ExpectedBait baits[2];

static void bait(Expectations *e, BaitKind kind, const char *name, uint16_t port)
{
	e->baits = baits;
	e->bait_token = strdup(BAIT_TOKEN);
	baits[e->n_baits++] =
		(ExpectedBait){ .kind = kind, .name = name ? strdup(name) : NULL, .port = port };
}

static void abstract_bait(Expectations *e)
{
	bait_listen(AF_UNIX, SOCK_STREAM, "@a-bait", 0);
	bait(e, BAIT_ABSTRACT, "a-bait", 0);
}

static void path_bait(Expectations *e)
{
	bait_listen(AF_UNIX, SOCK_STREAM, "/tmp/a-bait", 0);
	bait(e, BAIT_PATH, "/tmp/a-bait", 0);
}

static void loopback_baits(Expectations *e)
{
	bait_listen(AF_INET, SOCK_STREAM, NULL, PORT);
	bait_listen(AF_INET, SOCK_DGRAM, NULL, PORT);
	bait(e, BAIT_TCP4, NULL, PORT);
	bait(e, BAIT_UDP4, NULL, PORT);
}

static void loopback_baits6(Expectations *e)
{
	bait_listen(AF_INET6, SOCK_STREAM, NULL, PORT);
	bait_listen(AF_INET6, SOCK_DGRAM, NULL, PORT);
	bait(e, BAIT_TCP6, NULL, PORT);
	bait(e, BAIT_UDP6, NULL, PORT);
}

static void listen_at(Expectations *e, const char *directory, const char *path)
{
	outside(e);
	assert_int_equal(mount("tmpfs", "/run", "tmpfs", 0, NULL), 0);
	(void)mkdir(directory, 0755);
	bait_listen(AF_UNIX, SOCK_STREAM, path, 0);
}

static void bus(Expectations *e)
{
	listen_at(e, "/run/dbus", "/run/dbus/system_bus_socket");
}

static void engine(Expectations *e)
{
	listen_at(e, "/run/podman", "/run/docker.sock");
}

static void desktop(Expectations *e)
{
	listen_at(e, "/tmp/.X11-unix", "/tmp/.X11-unix/X0");
}

static void service(Expectations *e)
{
	listen_at(e, "/run/udev", "/run/udev/control");
}

static void listed(Expectations *e)
{
	listen_at(e, "/run/any", "/run/any/thing");
}

static void covered(Expectations *e)
{
	bait_listen(AF_UNIX, SOCK_STREAM, "/tmp/s", 0);
	entry_add(e, ENTRY_BIND, ENTRY_MASKED, "/tmp/s")->covers_listener = true;
}

static uint32_t host_address = 0x0a090909;

static void host(Expectations *e)
{
	e->host_addresses = &host_address;
	e->n_host_addresses = 1;
}

static void dev_with_memory(Expectations *e)
{
	assert_int_equal(mount("tmpfs", "/dev", "tmpfs", 0, NULL), 0);
	assert_int_equal(mknod("/dev/null", S_IFCHR | 0666, 1 << 8 | 3), 0);
	/* The machine's memory. */
	assert_int_equal(mknod("/dev/memory", S_IFCHR | 0600, 1 << 8 | 1), 0);
}

static void console(Expectations *e)
{
	assert_int_equal(mount("tmpfs", "/dev", "tmpfs", 0, NULL), 0);
	assert_int_equal(mknod("/dev/null", S_IFCHR | 0666, 1 << 8 | 3), 0);
	assert_int_equal(mknod("/dev/tty1", S_IFCHR | 0666, 1 << 8 | 3), 0);
}

#ifdef __x86_64__
/* Does the kernel run programs of 32 bits? Where it does not, the call is a signal. */
static bool has_32_bits(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		long answer;

		__asm__ volatile("int $0x80" : "=a"(answer) : "a"(20l) : "memory", "r8", "r9", "r10", "r11");
		_exit(answer == getpid() ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}
#else
static bool has_32_bits(void)
{
	return false;
}
#endif

static bool has_modules(void)
{
	return syscall(SYS_delete_module, "no_such_module_of_a_test", O_NONBLOCK) < 0 && errno != ENOSYS;
}

static bool has_io_ports(void)
{
#ifdef __x86_64__
	return syscall(SYS_iopl, 0) == 0;
#else
	return false;
#endif
}

typedef struct Proof {
	const char *id;
	unsigned settings;
	ProbePreparation prepare;
	bool (*possible)(void); /* NULL: on every kernel */
} Proof;

static const Proof proofs[] = {
	{ "p01", 0, NULL },
	{ "p02", 0, NULL },
	{ "p03", 0, NULL },
	{ "p04", 0, NULL },
	{ "p05", 0, NULL },
	{ "p06", SETTING_USER, NULL },
	{ "p07", 0, NULL },
	{ "p08", 0, NULL },
	{ "p09", 0, forbid },
	{ "p10", 0, NULL },
	{ "p12", 0, NULL },
	{ "p14", 0, NULL },
	{ "p15", SETTING_PIDS, NULL },
	{ "p16", 0, NULL },
	{ "p17", 0, read_only_mount },
	{ "p18", 0, read_only_mount },
	{ "p19", 0, read_only_mount },
	{ "p20", 0, NULL },
	{ "p21", 0, NULL },
	{ "p22", 0, NULL },
	{ "p23", 0, uncovered_mask },
	{ "p24", 0, mask_without_anchor },
	{ "p25", 0, NULL },
	{ "p26", 0, NULL },
	{ "p27", 0, NULL },
	{ "p28", 0, protected_file },
	{ "p29", 0, protected_file },
	{ "p30", 0, protected_file },
	{ "p31", 0, protected_file },
	{ "p33", 0, NULL },
	{ "p34", 0, NULL },
	{ "p35", 0, dev_with_memory },
	{ "p36", SETTING_TERMINAL, NULL },
	{ "p38", 0, console },
	{ "p39", 0, NULL },
	{ "p40", 0, NULL },
	{ "p41", 0, NULL },
	{ "p42", 0, NULL, has_32_bits },
	{ "p43", SETTING_PIDS, NULL },
	{ "p44", SETTING_PIDS, NULL },
	{ "p45", 0, outside },
	{ "p46", 0, outside },
	{ "p47", 0, NULL },
	{ "p48", 0, outside },
	{ "p49", 0, NULL },
	{ "p50", 0, NULL },
	{ "p51", 0, NULL },
	{ "p52", 0, NULL },
	{ "p53", 0, NULL },
	{ "p54", 0, NULL, has_modules },
	{ "p55", 0, NULL },
	{ "p56", 0, NULL },
	{ "p57", 0, NULL },
	{ "p58", 0, NULL, has_io_ports },
	{ "p60", 0, NULL },
	{ "p61", 0, NULL },
	{ "p62", 0, NULL },
	{ "p63", 0, NULL },
	{ "p64", 0, abstract_bait },
	{ "p65", 0, path_bait },
	{ "p66", 0, bus },
	{ "p67", 0, engine },
	{ "p68", 0, desktop },
	{ "p69", 0, service },
	{ "p70", 0, listed },
	{ "p71", 0, covered },
	{ "p72", 0, NULL },
	{ "p73", 0, NULL, has_32_bits },
	{ "p74", 0, NULL },
	{ "p75", 0, NULL },
	{ "p76", 0, NULL },
	{ "p77", 0, NULL },
	{ "p78", 0, NULL },
	{ "p79", 0, NULL },
	{ "p80", 0, NULL },
	{ "p81", 0, NULL },
	{ "p82", 0, NULL },
	{ "p83", SETTING_ADDRESSES, NULL },
	{ "p84", SETTING_ADDRESSES, NULL },
	{ "p85", SETTING_ADDRESSES, NULL },
	{ "p86", SETTING_ADDRESSES, NULL },
	{ "p87", SETTING_ADDRESSES, NULL },
	{ "p88", SETTING_ADDRESSES, NULL },
	{ "p89", SETTING_ADDRESSES, NULL },
	{ "p90", SETTING_ADDRESSES, NULL },
	{ "p91", SETTING_ADDRESSES, NULL },
	{ "p92", SETTING_ADDRESSES, NULL },
	{ "p93", SETTING_ADDRESSES, NULL },
	{ "p94", SETTING_ADDRESSES, NULL },
	{ "p95", SETTING_ADDRESSES, NULL },
	{ "p96", SETTING_ADDRESSES, NULL },
	{ "p97", SETTING_ADDRESSES, host },
	{ "p98", SETTING_ADDRESSES, loopback_baits },
	{ "p99", SETTING_ADDRESSES, NULL },
	{ "p100", SETTING_ADDRESSES, NULL },
	{ "p101", SETTING_ADDRESSES, loopback_baits6 },
	{ "p102", SETTING_ADDRESSES, NULL },
	{ "p103", SETTING_ADDRESSES, NULL },
	{ "p104", SETTING_ADDRESSES, NULL },
	{ "p105", SETTING_ADDRESSES, NULL },
	{ "p106", SETTING_ADDRESSES, NULL },
	{ "p107", 0, first_network, has_namespace_handles },
	{ "p108", 0, other_mounts, has_mount_lists },
	{ "p109", 0, state_of_outside },
	{ "p110", 0, session_in_state },
	{ "p110", 0, session_of_outside },
	{ "p111", 0, state_of_outside },
	{ "p112", 0, state_of_outside },
	/* By other evidence, where nobody answers. */
	{ "p84", SETTING_WIRE, NULL },
	{ "p85", SETTING_WIRE, NULL },
	{ "p89", SETTING_WIRE, NULL },
	{ "p91", SETTING_WIRE, NULL },
	{ "p93", SETTING_WIRE, NULL },
};

/* What nothing that a test can take away would let through. */
static const struct {
	const char *id, *reason;
} unproved[] = {
	{ "p11", "user namespaces' own rules: nothing of the jail stands between" },
	{ "p13", "flags of a kernel that is newer than the tests'" },
	{ "p32", "the kernel's own rule for mappings: nothing of the jail stands between" },
	{ "p37", "takes a console; a pseudo-terminal has none" },
	{ "p59", "kernels without x32" },
};

static void skip_without_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void probes_get_out_where_they_can(void **state)
{
	unsigned failed = 0;

	skip_without_root();
	for (size_t i = 0; i < ELEMENTSOF(proofs); i++) {
		ProbeAnswer answer;

		if (proofs[i].possible && !proofs[i].possible())
			continue;
		answer = probe_answer(proofs[i].id, proofs[i].settings, proofs[i].prepare);
		if (answer.outcome == PROBE_ESCAPED && starts_with(answer.text, "escaped: "))
			continue;
		print_error("%s, setting %x: %s\n", proofs[i].id, proofs[i].settings, answer.text);
		failed++;
	}
	assert_int_equal(failed, 0);
}

/* Where no filter answers, the kernel refuses these before it looks for a module. */
static void sockets_are_asked_for_in_vain(void **state)
{
	static const char *const ids[] = { "p75", "p92" };
	skip_without_root();
	for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
		ProbeAnswer answer = probe_answer(ids[i], SETTING_PLAIN, NULL);

		assert_true(strstr(answer.text, "failed later (EINVAL)") &&
			    !strstr(answer.text, "succeeded"));
	}
}

static void the_filter_of_the_wire_is_believed(void **state)
{
	static const char *const ids[] = { "p84", "p85", "p89", "p91", "p93" };

	skip_without_root();
	for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
		ProbeAnswer answer = probe_answer(ids[i], SETTING_FILTER, NULL);

		if (answer.outcome != PROBE_BLOCKED)
			fail_msg("%s: %d, %s", ids[i], answer.outcome, answer.text);
	}
}

static void every_probe_is_proved_or_excused(void **state)
{
	const Probe *probe;

	for (size_t i = 0; (probe = probe_at(i)); i++) {
		unsigned found = 0;

		for (size_t j = 0; j < ELEMENTSOF(proofs); j++)
			found += streq(proofs[j].id, probe->id);
		for (size_t j = 0; j < ELEMENTSOF(unproved); j++)
			found += streq(unproved[j].id, probe->id);
		if (found == 0)
			fail_msg("%s is proved nowhere", probe->id);
	}
}

static void the_table_is_in_order(void **state)
{
	const Probe *probe;
	size_t n = 0;

	for (; (probe = probe_at(n)); n++) {
		assert_true(row_id_is_valid(probe->id) && probe->id[0] == 'p');
		assert_ptr_equal(probe_find(probe->id), probe);
		assert_true(strlen(probe->title) > 0 && strlen(probe->title) <= 72);
		assert_true(strlen(probe->stands) > 0);
		/* An empty table is no attempt. */
		assert_true(probe->attempt || (probe->calls && probe->calls->name) ||
			    (probe->files && *probe->files) || (probe->sockets && *probe->sockets));
	}
	assert_true(n >= 60);
}

/* With PROBES_WRITE set the document is written anew. */
static void the_document_is_the_table(void **state)
{
	const char *path = getenv("PROBES_DOCUMENT");
	_cleanup_free_ char *table = NULL, *document = NULL;
	_cleanup_fclose_ FILE *file = NULL, *text = NULL;
	size_t size = 0, n = 0;
	const Probe *probe;
	char *begin;

	assert_non_null(path);
	text = open_memstream(&table, &size);
	assert_non_null(text);
	for (size_t i = 0; (probe = probe_at(i)); i++)
		(void)fprintf(text, "| %s | %s | %s |\n", probe->id, probe->title, probe->stands);
	(void)fflush(text);

	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(getdelim(&document, &n, '\0', file) > 0);
	begin = strstr(document, "| p01 ");
	assert_non_null(begin);
	if (getenv("PROBES_WRITE")) {
		_cleanup_fclose_ FILE *out = fopen(path, "we");

		assert_non_null(out);
		(void)fprintf(out, "%.*s%s", (int)(begin - document), document, table);
		return;
	}
	assert_string_equal(begin, table);
}

/* An agent can trace a process that has to be dumpable: it finds nothing there of the outside. */
static void the_outside_is_forgotten(void **state)
{
	char token[] = BAIT_TOKEN, hostname[] = "outside", mounts[] = "1 0 8:1 / / rw - ext4 disk rw";
	uint32_t address = 0x7f000001;
	Expectations e = { .bait_token = token,
			   .hostname = hostname,
			   .host_mounts = mounts,
			   .host_addresses = &address,
			   .n_host_addresses = 1 };
	Probing p = { .expectations = &e };

	probing_forget(&p);
	assert_string_not_equal(token, BAIT_TOKEN);
	assert_int_equal(strlen(token), strlen(BAIT_TOKEN));
	assert_null(strstr(hostname, "out"));
	assert_null(strstr(mounts, "ext4"));
	assert_int_equal(address, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_in_order),
		cmocka_unit_test(the_document_is_the_table),
		cmocka_unit_test(the_outside_is_forgotten),
		cmocka_unit_test(every_probe_is_proved_or_excused),
		cmocka_unit_test(probes_get_out_where_they_can),
		cmocka_unit_test(sockets_are_asked_for_in_vain),
		cmocka_unit_test(the_filter_of_the_wire_is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
