/* SPDX-License-Identifier: MIT */
/*
 * Stands in for `session`: speaks the link as a session does, or as one that its user has bent. What it does
 * is the first word of the arguments; what it was given (identity, limits, descriptors) it reports as its
 * warnings.
 */
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dbus/base.h"
#include "service/link/lifeline.h"
#include "service/link/link.h"
#include "service/link/spawn.h"
#include "service/plan/request.h"
#include "tests/daemon/stand-in-flood.h"

typedef struct StandIn {
	SessionRequest request;
	char **facts;
	char **allowed; /* "1ADDRESS" of the configuration, "0ADDRESS" of its own */
	int link_fd;
	SessionState state;
	const char *act;
	bool foreign; /* speaks version 99 */
} StandIn;

static _noreturn_ void give_up(int line)
{
	_exit(line % 100 + 100);
}

#define NEED(condition)                    \
	do {                               \
		if (!(condition))          \
			give_up(__LINE__); \
	} while (0)

static void send_message(StandIn *s, const LinkMessage *m)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	NEED(link_encode(m, &data, &size, NULL) == 0);
	if (s->link_fd >= 0)
		(void)packet_send(s->link_fd, data, size);
}

static void send_state(StandIn *s, LinkKind kind)
{
	LinkMessage m = LINK_MESSAGE_INIT;

	m.kind = kind;
	m.version = s->foreign ? 99 : LINK_VERSION;
	m.state = s->state;
	m.leader = (uint32_t)getpid();
	m.jailed = true;
	send_message(s, &m);
}

static void add_descriptors(StandIn *s)
{
	for (int fd = 0; fd < 200; fd++) {
		struct stat st;

		if (fd == s->link_fd || fcntl(fd, F_GETFD) < 0)
			continue;
		NEED(fstat(fd, &st) == 0);
		NEED(strings_appendf(&s->facts, "fd %d type %o", fd, st.st_mode & S_IFMT) == 0);
	}
}

static void add_facts(StandIn *s)
{
	gid_t groups[64];
	struct rlimit files;
	char cgroup[4096];
	unsigned bounds = 0;
	ssize_t n;
	int fd;

	NEED(strings_appendf(&s->facts, "uid %u gid %u", getuid(), getgid()) == 0);
	n = getgroups(64, groups);
	NEED(n >= 0);
	for (ssize_t i = 0; i < n; i++)
		NEED(strings_appendf(&s->facts, "group %u", groups[i]) == 0);
	NEED(getrlimit(RLIMIT_NOFILE, &files) == 0);
	NEED(strings_appendf(&s->facts, "files %llu %llu", (unsigned long long)files.rlim_cur,
			     (unsigned long long)files.rlim_max) == 0);
	NEED(strings_appendf(&s->facts, "nice %d", getpriority(PRIO_PROCESS, 0)) == 0);
	NEED(strings_appendf(&s->facts, "umask %03o asked %03o", umask(0), s->request.file_mode_mask) == 0);
	NEED(strings_appendf(&s->facts, "leads %d", getsid(0) == getpid()) == 0);
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		bounds += prctl(PR_CAPBSET_READ, i, 0, 0, 0) > 0;
	NEED(strings_appendf(&s->facts, "bounding set of %u, no new privileges %d", bounds,
			     prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) == 0);
	NEED(strings_appendf(&s->facts, "environment %zu", environ ? strings_count(environ) : 0) == 0);
	fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	NEED(fd >= 0);
	n = read(fd, cgroup, sizeof(cgroup) - 1);
	close(fd);
	NEED(n > 0);
	cgroup[n] = '\0';
	NEED(strings_appendf(&s->facts, "cgroup %s", strstr(cgroup, "0::") ?: "") == 0);
	NEED(strings_appendf(&s->facts, "terminals %u descriptors %u", s->request.terminals,
			     s->request.descriptors) == 0);
	for (size_t i = 0; s->request.warnings[i]; i++)
		NEED(strings_append(&s->facts, s->request.warnings[i]) == 0);
	for (size_t i = 0; s->request.argv[i]; i++)
		NEED(strings_appendf(&s->facts, "argument %zu bytes", strlen(s->request.argv[i])) == 0);
	for (size_t i = 0; s->request.environment[i]; i++)
		NEED(strings_appendf(&s->facts, "variable %s", s->request.environment[i]) == 0);
	add_descriptors(s);
}

static void read_request(StandIn *s)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct stat st;

	NEED(fstat(SPAWN_FD_REQUEST, &st) == 0);
	NEED(fcntl(SPAWN_FD_REQUEST, F_GET_SEALS) ==
	     (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	data = malloc((size_t)st.st_size);
	NEED(data && pread(SPAWN_FD_REQUEST, data, (size_t)st.st_size, 0) == st.st_size);
	NEED(session_request_decode(data, (size_t)st.st_size, &s->request) == 0);
	NEED(inherited_apply(&s->request.inherited, &s->request.warnings) == 0);
	s->act = s->request.argv[0] ?: "run";
	/* What is made to check has no arguments. */
	for (size_t i = 0; s->request.purpose != PURPOSE_AGENT && s->request.environment[i]; i++)
		s->act = starts_with(s->request.environment[i], "ACT=") ?: s->act;
	for (size_t i = 0; i < s->request.config.n_values; i++)
		if (s->request.config.values[i].key == CONFIG_ALLOW_IP)
			NEED(strings_appendf(&s->allowed, "1%s", s->request.config.values[i].text) == 0);
}

static bool acts(const StandIn *s, const char *what)
{
	return streq(s->act, what);
}

/* What a session's user can make it say: bytes, escape codes, names that are long. */
static uint32_t fill_hostile(LinkTable table, LinkRow *rows)
{
	static char name[4097];
	size_t columns = link_table_columns(table);

	memset(name, 'n', sizeof(name) - 1);
	name[0] = '/';
	for (size_t c = 0; c < columns; c++) {
		rows[0].columns[c] = (char *)"/esc \x1b[2J\n\xff\xe2\x80\xae";
		rows[1].columns[c] = name;
		rows[2].columns[c] = (char *)"";
	}
	return 3;
}

/* More than the service takes, in rows that each packet can hold. */
static uint32_t fill_too_much(LinkTable table, LinkRow *rows)
{
	static char text[LINK_TEXT_MAX + 1];

	memset(text, 'x', LINK_TEXT_MAX);
	for (size_t i = 0; i < 300; i++)
		for (size_t c = 0; c < link_table_columns(table); c++)
			rows[i].columns[c] = text;
	return 300;
}

static void send_rows(StandIn *s, const LinkMessage *question)
{
	LinkMessage m = LINK_MESSAGE_INIT;
	LinkRow rows[512] = { 0 };
	uint32_t n = acts(s, "too-much") ? fill_too_much(question->table, rows)
					 : fill_hostile(question->table, rows);

	m.kind = LINK_TABLE;
	m.serial = question->serial;
	m.table = question->table;
	m.first = question->first;
	m.total = n;
	m.n_rows = n - question->first;
	m.rows = rows + question->first;
	send_message(s, &m);
}

static void send_allowed(StandIn *s, const LinkMessage *question)
{
	LinkMessage m = LINK_MESSAGE_INIT;
	LinkRow rows[64] = { 0 };

	if (acts(s, "lie-reach")) {
		send_rows(s, question);
		return;
	}
	m.kind = LINK_TABLE;
	m.serial = question->serial;
	m.table = question->table;
	m.rows = rows;
	m.total = m.n_rows = (uint32_t)strings_count(s->allowed);
	NEED(m.n_rows <= 64);
	for (uint32_t i = 0; i < m.n_rows; i++) {
		rows[i].columns[0] = s->allowed[i] + 1;
		rows[i].columns[1] = (char *)"comment \x1b[2J";
		rows[i].columns[2] = (char *)"0";
		rows[i].columns[3] = (char *)(s->allowed[i][0] == '1' ? "1" : "0");
	}
	send_message(s, &m);
}

static void send_table(StandIn *s, const LinkMessage *question)
{
	LinkMessage m = LINK_MESSAGE_INIT;
	LinkRow rows[512] = { 0 };
	size_t n = strings_count(s->facts);

	if (question->table == LINK_TABLE_ALLOWED) {
		send_allowed(s, question);
		return;
	}
	if (question->table != LINK_TABLE_POSTURE && question->table != LINK_TABLE_WARNINGS) {
		if (acts(s, "hush"))
			return;
		if (acts(s, "refuse-table")) {
			m.kind = LINK_DONE;
			m.serial = question->serial;
			m.result = -EINPROGRESS;
			send_message(s, &m);
			return;
		}
		send_rows(s, question);
		return;
	}

	m.kind = LINK_TABLE;
	m.serial = question->serial;
	m.table = question->table;
	m.first = question->first;
	m.rows = rows;
	if (question->table == LINK_TABLE_POSTURE) {
		m.total = m.n_rows = 1;
		rows[0].columns[0] = (char *)"stand-in";
		rows[0].columns[1] = (char *)"none";
		rows[0].columns[2] = (char *)"esc \x1b[31m and \xff";
	} else {
		NEED(n < 512 && question->first <= n);
		m.total = (uint32_t)n;
		m.n_rows = (uint32_t)(n - question->first);
		if (m.n_rows > 5)
			m.n_rows = 5; /* in pages */
		for (uint32_t i = 0; i < m.n_rows; i++)
			rows[i].columns[0] = s->facts[question->first + i];
		if (acts(s, "lie"))
			m.first++, m.total++;
	}
	send_message(s, &m);
}

static void send_check_often(StandIn *s, uint32_t serial, const char *id, const char *status, uint32_t n)
{
	LinkRow rows[250];
	LinkMessage m = LINK_MESSAGE_INIT;

	for (uint32_t i = 0; i < n; i++)
		rows[i] = (LinkRow){ { (char *)id, (char *)status, (char *)"esc \x1b[2J", (char *)"\xff\n",
				       (char *)"run this as root" } };

	m.kind = LINK_ROWS;
	m.serial = serial;
	m.table = LINK_TABLE_CHECKS;
	m.total = m.n_rows = n;
	m.rows = rows;
	send_message(s, &m);
}

static void send_check(StandIn *s, uint32_t serial, const char *id, const char *status)
{
	send_check_often(s, serial, id, status, 1);
}

/* Return: what the checks say of themselves. */
static int send_checks(StandIn *s, uint32_t serial)
{
	unsigned n = acts(s, "checks-few") ? 3 : 22;
	char id[4];

	for (unsigned i = 1; i <= n; i++) {
		(void)snprintf(id, sizeof(id), "%02u", i % 100);
		send_check(s, serial, id, acts(s, "checks-bad") && i == 7 ? "fail" : "pass");
	}
	if (acts(s, "checks-twice"))
		send_check(s, serial, "07", "pass");
	if (acts(s, "checks-strange"))
		send_check(s, serial, "p01", "excellent");
	if (acts(s, "checks-foreign"))
		send_check(s, serial + 7, "p01", "fail");
	for (unsigned i = 0; acts(s, "checks-flood") && i < 3; i++)
		send_check_often(s, serial, "p01", "pass", 250);
	return acts(s, "checks-bad") || acts(s, "checks-liar") ? 1 : 0;
}

static void on_verify(StandIn *s, const LinkMessage *m)
{
	LinkMessage done = LINK_MESSAGE_INIT;

	if (acts(s, "checks-silent"))
		return;
	done.kind = LINK_DONE;
	done.serial = m->serial;
	if (acts(s, "checks-killed")) {
		done.result = -ECHILD;
		done.text = (char *)"it was killed \x1b[1m";
	} else {
		done.result = send_checks(s, m->serial) ? LINK_CHECK_FAILED : 0;
	}
	send_message(s, &done);
}

static _noreturn_ void finish(StandIn *s, int status)
{
	LinkMessage m = LINK_MESSAGE_INIT;

	m.kind = LINK_EXITED;
	m.exit_status = status;
	send_message(s, &m);
	_exit(0);
}

/* The same destination twice, as it grows, then more of them than anybody keeps. */
static void send_denied(StandIn *s)
{
	LinkMessage m = LINK_MESSAGE_INIT;
	LinkRow rows[3] = { 0 };
	char address[32];

	m.kind = LINK_DENIED;
	m.table = LINK_TABLE_DENIED;
	m.rows = rows;
	for (unsigned i = 0; i < 40; i++) {
		(void)snprintf(address, sizeof(address), "10.0.%u.1\x1b", i);
		rows[0] = (LinkRow){ .columns = { (char *)"5", (char *)"tcp", address, (char *)"80",
						  (char *)"", (char *)"range", (char *)"0" } };
		rows[1] = (LinkRow){ .columns = { (char *)"5", (char *)"tcp", (char *)"10.0.0.2",
						  (char *)"22", (char *)"ssh", (char *)"range",
						  (char *)(i < 3 ? "4" : "12") } };
		m.total = m.n_rows = 2;
		send_message(s, &m);
	}
}

/* As fast as they are taken; of each 32 rows one says no number. Then the last, which all may see in time. */
static void flood_denied(StandIn *s)
{
	LinkMessage m = LINK_MESSAGE_INIT;
	LinkRow rows[32] = { 0 };

	m.kind = LINK_DENIED;
	m.table = LINK_TABLE_DENIED;
	m.rows = rows;
	m.total = m.n_rows = ELEMENTSOF(rows);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		rows[i] = (LinkRow){ .columns = { (char *)"5", (char *)"tcp", (char *)"10.0.0.2",
						  (char *)"22", (char *)"\x1b[31m (1)", (char *)"range",
						  (char *)(i == 7 ? "-1" : "3") } };
	for (unsigned i = 0; i < 150; i++)
		send_message(s, &m);
}

/* Keep what was said, and say that something is new, so that the facts are asked for. */
/* One that is there goes. */
static void set_allowed(StandIn *s, bool open, char set, const char *address, uint64_t usec)
{
	_cleanup_free_ char *entry = NULL;
	size_t n = 0;

	NEED(asprintf(&entry, "%c%s", set, address) > 0);
	for (size_t i = 0; s->allowed && s->allowed[i]; i++)
		if (streq(s->allowed[i], entry))
			free(s->allowed[i]);
		else
			s->allowed[n++] = s->allowed[i];
	if (s->allowed)
		s->allowed[n] = NULL;
	if (open)
		NEED(strings_append(&s->allowed, entry) == 0);
	NEED(strings_appendf(&s->facts, "%s %s usec %llu", open ? "allow" : "revoke", entry,
			     (unsigned long long)usec) == 0);
}

static void configure(StandIn *s, const LinkMessage *m)
{
	_cleanup_(strings_freep) char **before = NULL;

	NEED(strings_appendf(&s->facts, "told of %zu", strings_count(m->addresses)) == 0);
	for (size_t i = 0; s->allowed && s->allowed[i]; i++)
		if (s->allowed[i][0] == '1')
			NEED(strings_append(&before, s->allowed[i] + 1) == 0);
	for (size_t i = 0; before && before[i]; i++)
		if (!strings_have(m->addresses, before[i]))
			set_allowed(s, false, '1', before[i], 0);
	for (size_t i = 0; m->addresses && m->addresses[i]; i++)
		if (!strings_have(before, m->addresses[i]))
			set_allowed(s, true, '1', m->addresses[i], 0);
}

static void on_reach(StandIn *s, const LinkMessage *m)
{
	LinkMessage done = LINK_MESSAGE_INIT;

	done.kind = LINK_DONE;
	done.serial = m->serial;
	if (acts(s, "refuse-reach")) {
		done.result = -EPERM;
		done.text = (char *)"because \x1b[1m of that";
		send_message(s, &done);
		return;
	}
	if (m->kind == LINK_REACH)
		configure(s, m);
	else
		set_allowed(s, m->kind == LINK_ALLOW, '0', m->text, m->usec);
	send_message(s, &done);
	send_state(s, LINK_STATE);
}

static void on_link(StandIn *s)
{
	static uint8_t buffer[LINK_PACKET_MAX];
	_cleanup_(link_message_done) LinkMessage m = LINK_MESSAGE_INIT;
	LinkMessage done = LINK_MESSAGE_INIT;
	ssize_t n;

	n = packet_receive(s->link_fd, buffer, sizeof(buffer));
	if (n == 0 || n == -ECONNRESET) {
		s->link_fd = close_fd(s->link_fd); /* the service has gone: another will come */
		return;
	}
	if (n < 0)
		return;
	NEED(link_decode(buffer, (size_t)n, &m) == 0);
	/* Whatever else it were, a real one would not understand it and end the link. */
	NEED(!s->foreign || m.kind == LINK_STOP);
	if (acts(s, "deaf") || acts(s, "numb"))
		return;
	if (acts(s, "deaf-reach") && (m.kind == LINK_REACH || m.kind == LINK_ALLOW || m.kind == LINK_REVOKE ||
				      (m.kind == LINK_TABLE_GET && m.table == LINK_TABLE_ALLOWED)))
		return;
	if (m.kind == LINK_TABLE_GET) {
		send_table(s, &m);
	} else if (m.kind == LINK_REACH || m.kind == LINK_ALLOW || m.kind == LINK_REVOKE) {
		on_reach(s, &m);
	} else if (m.kind == LINK_VERIFY) {
		on_verify(s, &m);
	} else if (m.kind == LINK_STOP) {
		done.kind = LINK_DONE;
		done.serial = m.serial;
		send_message(s, &done);
		if (!acts(s, "stubborn"))
			finish(s, SIGHUP);
	}
}

/* A greeting with more behind it, and packets of kinds and forms that are not ours. */
static void send_foreign(StandIn *s)
{
	LinkMessage m = {
		.kind = LINK_HELLO, .version = 99, .state = s->state, .leader = 4711, .jailed = true
	};
	_cleanup_free_ uint8_t *data = NULL;
	uint8_t longer[256] = { 0 };
	size_t size = 0;

	NEED(link_encode(&m, &data, &size, NULL) == 0 && size + 8 <= sizeof(longer));
	memcpy(longer, data, size);
	NEED(packet_send(s->link_fd, longer, size + 8) == 0);
	NEED(packet_send(s->link_fd, "another kind", 12) == 0);
	send_state(s, LINK_STATE);
	memset(longer, 0, sizeof(longer));
	longer[0] = LINK_STARTED;
	NEED(packet_send(s->link_fd, longer, 40) == 0);
}

static void on_connection(StandIn *s)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd;

	fd = accept4(SPAWN_FD_LINK, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	NEED(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == 0);
	close_fd(s->link_fd);
	s->link_fd = fd;
	if (s->state == SESSION_STARTING)
		add_facts(s);
	else if (acts(s, "mute-again"))
		return;
	s->foreign = acts(s, "foreign-first") || (acts(s, "foreign") && s->state != SESSION_STARTING);
	if (s->foreign) {
		send_foreign(s);
		return;
	}
	send_state(s, LINK_HELLO);
}

static void act(StandIn *s)
{
	LinkMessage m = LINK_MESSAGE_INIT;

	if (acts(s, "die"))
		_exit(3);
	if (acts(s, "silent") || acts(s, "numb") || acts(s, "foreign-first"))
		return;
	if (acts(s, "garbage")) {
		NEED(packet_send(s->link_fd, "garbage", 7) == 0);
		return;
	}
	if (acts(s, "fail") || acts(s, "fail-strange")) {
		m.kind = LINK_FAILED;
		m.error = (char *)(acts(s, "fail") ? CS_ERROR_UNSAFE_WORKSPACE : "org.example.Strange");
		m.text = (char *)"because \x1b[1m of \xfe\nthat";
		send_message(s, &m);
		_exit(0);
	}
	s->state = SESSION_RUNNING;
	m.kind = LINK_STARTED;
	send_message(s, &m);
	send_state(s, LINK_STATE);
	if (s->request.purpose != PURPOSE_AGENT && !acts(s, "checks-silent"))
		finish(s, acts(s, "checks-killed") ? SIGKILL : send_checks(s, 0) << 8);
	if (acts(s, "denied")) {
		send_denied(s);
		finish(s, 0);
	}
	if (acts(s, "scan")) {
		scan_link(s->link_fd);
		finish(s, 0);
	}
	if (acts(s, "denied-flood"))
		flood_denied(s);
	if (acts(s, "flood-link"))
		flood_link(s->link_fd);
	if (acts(s, "exit"))
		finish(s, 7 << 8);
	if (acts(s, "shut")) {
		NEED(shutdown(SPAWN_FD_LINK, SHUT_RDWR) == 0);
		for (;;)
			pause();
	}
	for (int i = 0; acts(s, "flood") && i < 100000; i++) {
		s->state = i % 2 ? SESSION_RUNNING : SESSION_STOPPED;
		send_state(s, LINK_STATE);
	}
	if (acts(s, "leave-child") && fork() == 0) {
		prctl(PR_SET_NAME, "left-behind");
		for (;;)
			pause();
	}
}

int main(void)
{
	StandIn s = { .link_fd = FD_NONE, .state = SESSION_STARTING };

	read_request(&s);
	if (acts(&s, "no-listen"))
		_exit(4);
	if (acts(&s, "close-pipe")) {
		close(SPAWN_FD_LISTENING);
		for (;;)
			pause();
	}
	if (acts(&s, "write-pipe")) {
		NEED(write(SPAWN_FD_LISTENING, "xxxxxxxx", 8) == 8);
		for (;;)
			pause();
	}
	if (acts(&s, "other-listens")) {
		pid_t child = fork();

		if (child == 0)
			_exit(listen(SPAWN_FD_LINK, 4) < 0);
		NEED(waitpid(child, NULL, 0) == child);
	} else {
		NEED(listen(SPAWN_FD_LINK, 4) == 0);
	}
	NEED(fcntl(SPAWN_FD_LINK, F_SETFL, O_NONBLOCK) == 0);
	close(SPAWN_FD_LISTENING);

	for (;;) {
		struct pollfd p[] = {
			{ .fd = SPAWN_FD_LINK, .events = POLLIN },
			{ .fd = s.link_fd, .events = POLLIN },
			{ .fd = SPAWN_FD_LIFELINE, .events = POLLIN },
		};

		NEED(poll(p, ELEMENTSOF(p), -1) >= 0 || errno == EINTR);
		if (p[0].revents) {
			bool first = s.state == SESSION_STARTING;

			on_connection(&s);
			if (first)
				act(&s);
			continue;
		}
		if (s.link_fd >= 0 && p[1].revents)
			on_link(&s);
		if (p[2].revents & (POLLHUP | POLLERR) && !acts(&s, "stubborn") && !acts(&s, "numb"))
			finish(&s, SIGHUP);
	}
}
