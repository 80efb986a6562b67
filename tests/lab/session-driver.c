/* SPDX-License-Identifier: MIT */

/*
 * Runs one `session` without a bus or a service: does what the service and launch do, and prints what the
 * session says. Root starts it.
 *
 *     session-driver [-u USER] [-c CONFIGURATION-LINE]... [-E NAME=VALUE]... [-d DIRECTORY] [-t] [-v] [-P] [-j]
 *                    [-T TABLE]... [-k SECONDS] [-e] [-x SESSION] AGENT [ARGUMENT]...
 *
 * -E: the caller's environment, in the place of a small one. -v: Verify runs in the agent's place; each of
 * its rows is printed to standard output, with tabs between id, status, title and detail. -P: likewise, with the
 * probes. -j: Verify joins the agent when it runs, its rows are printed likewise, and then the session is
 * stopped. -t: a PTY in place of 0, 1 and 2, what it shows goes to standard output; otherwise 0, 1 and 2 are passed. -T: a table by its
 * number, when the agent runs. -k: a stop with so much grace, when the agent runs. -e: the lifeline is closed
 * when the agent runs. Link and lifeline are printed to standard error, a line each. Exit: the agent's status
 * (128 and the number of a signal), 125 when the launch failed.
 */

#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <pty.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "dbus/base.h"
#include "dbus/names.h"
#include "service/link/lifeline.h"
#include "service/link/link.h"
#include "service/link/spawn.h"
#include "service/plan/request.h"

#define DEADLINE_SECONDS 60
#define TABLES_MAX 8
#define SERIAL_JOIN 98
#define SERIAL_STOP 99

typedef struct Driver {
	const char *session, *directory, *agent;
	char **arguments;
	struct passwd *user;
	char *configuration, *guard;
	char **environment;
	bool terminal, close_lifeline, verify, join, probes;
	int stop_seconds;
	unsigned tables[TABLES_MAX], n_tables;
	int link_fd, lifeline_fd, master_fd;
	pid_t pid;
	int status;
	bool failed, exited;
} Driver;

_noreturn_ static void die(const char *what)
{
	(void)fprintf(stderr, "session-driver: %s: %s\n", what, strerror(errno));
	exit(124);
}

static int make_request(const Driver *driver)
{
	static char *const usual[] = { (char *)"TERM=xterm", (char *)"PATH=/usr/local/bin:/usr/bin:/bin",
				       NULL };
	SessionRequest request = { .id = (char *)"aaaabbbbccccdddd",
				   .agent = (char *)driver->agent,
				   .uid = driver->user->pw_uid,
				   .gid = driver->user->pw_gid,
				   .user = driver->user->pw_name,
				   .home = driver->user->pw_dir,
				   .login_shell = driver->user->pw_shell,
				   .argv = driver->arguments,
				   .environment = driver->environment ?: (char **)usual,
				   .probes = driver->probes,
				   .purpose = driver->verify ? PURPOSE_VERIFY : PURPOSE_AGENT,
				   .cwd = (char *)driver->directory,
				   .descriptors = driver->verify ? 0 : 7,
				   .terminals = driver->terminal ? 7 : 0,
				   .file_mode_mask = 022,
				   .started_usec = 1 };
	_cleanup_free_ uint8_t *data = NULL;
	char *problem = NULL;
	size_t size = 0;
	int fd;

	if (config_parse("driver", driver->configuration ?: "", strlen(driver->configuration ?: ""),
			 &request.config, &problem) < 0) {
		(void)fprintf(stderr, "session-driver: %s\n", problem ?: "configuration");
		exit(124);
	}
	if (session_request_encode(&request, &data, &size) < 0)
		die("request");
	config_done(&request.config);
	fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		die("memfd");
	return fd;
}

static void place(int fd, int number)
{
	if (fd >= 0 && dup2(fd, number) < 0)
		die("dup2");
}

/* In the child: what the service does before it executes `session`. fds by SPAWN_FD_ number. */
_noreturn_ static void become_session(const Driver *driver, int fds[static SPAWN_FD_MAX])
{
	char *arguments[] = { (char *)"session", NULL }, *environment[] = { NULL };
	const struct passwd *user = driver->user;

	for (int i = SPAWN_FD_LINK; i < SPAWN_FD_MAX; i++)
		if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD, 100)) < 0)
			die("F_DUPFD");
	for (int i = SPAWN_FD_LINK; i < SPAWN_FD_MAX; i++)
		place(fds[i], i);
	if (close_range(SPAWN_FD_MAX, ~0U, 0) < 0 || close_range(0, 2, 0) < 0 || chdir("/") < 0 ||
	    initgroups(user->pw_name, user->pw_gid) < 0 ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		die("identity");
	(void)execve(driver->session, arguments, environment);
	die(driver->session);
}

/* What the service makes for a user. */
static void make_run_files(Driver *driver)
{
	const struct passwd *user = driver->user;
	_cleanup_free_ char *directory = NULL;
	_cleanup_close_ int fd = FD_NONE;

	if (asprintf(&directory, CS_RUN_DIR "/users/%u", (unsigned)user->pw_uid) < 0 ||
	    asprintf(&driver->guard, "%s/guard", directory) < 0)
		die("memory");
	(void)mkdir(CS_RUN_DIR, 0755);
	(void)mkdir(CS_RUN_DIR "/users", 0711);
	(void)mkdir(directory, 0711);
	fd = open(driver->guard, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		die(driver->guard);
}

static void start(Driver *driver)
{
	char directory[] = "/tmp/session-driver.XXXXXX", byte;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fds[SPAWN_FD_MAX], listening[2], lifeline[2], slave_fd = FD_NONE, listen_fd;

	if (!mkdtemp(directory) || pipe2(listening, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lifeline) < 0)
		die("start");
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/link", directory);
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("bind");
	if (driver->terminal && openpty(&driver->master_fd, &slave_fd, NULL, NULL, NULL) < 0)
		die("openpty");

	for (int i = 0; i < SPAWN_FD_MAX; i++)
		fds[i] = FD_NONE;
	fds[SPAWN_FD_LINK] = listen_fd;
	fds[SPAWN_FD_LISTENING] = listening[1];
	fds[SPAWN_FD_REQUEST] = make_request(driver);
	fds[SPAWN_FD_LIFELINE] = lifeline[1];
	/* Sessions of one user share what they lock, as those of the service do. */
	fds[SPAWN_FD_GUARD] = open(driver->guard, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fds[SPAWN_FD_GUARD] < 0)
		die("guard");
	for (int i = 0; i < 3 && !driver->verify; i++)
		fds[SPAWN_FD_STDIN + i] = driver->terminal ? slave_fd : i;
	driver->pid = fork();
	if (driver->pid < 0)
		die("fork");
	if (driver->pid == 0)
		become_session(driver, fds);
	(void)close(listen_fd);
	(void)close(listening[1]);
	(void)close(lifeline[1]);
	(void)close(fds[SPAWN_FD_REQUEST]);
	(void)close(fds[SPAWN_FD_GUARD]);
	(void)close_fd(slave_fd);
	if (read(listening[0], &byte, 1) != 0)
		die("listening");
	(void)close(listening[0]);
	driver->lifeline_fd = lifeline[0];
	driver->link_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (driver->link_fd < 0 || connect(driver->link_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	(void)unlink(address.sun_path);
	(void)rmdir(directory);
}

static void ask(Driver *driver, const LinkMessage *m)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	if (link_encode(m, &data, &size, NULL) < 0 || packet_send(driver->link_fd, data, size) < 0)
		die("question");
}

static void on_started(Driver *driver)
{
	for (unsigned i = 0; i < driver->n_tables; i++)
		ask(driver, &(LinkMessage){ .kind = LINK_TABLE_GET,
					    .serial = i,
					    .table = (LinkTable)driver->tables[i] });
	if (driver->join)
		ask(driver, &(LinkMessage){ .kind = LINK_VERIFY, .serial = SERIAL_JOIN });
	if (driver->stop_seconds >= 0)
		ask(driver, &(LinkMessage){ .kind = LINK_STOP,
					    .serial = SERIAL_STOP,
					    .usec = (uint64_t)driver->stop_seconds * USEC_PER_SEC });
	if (driver->close_lifeline)
		driver->lifeline_fd = close_fd(driver->lifeline_fd);
}

static void print_rows(const LinkMessage *m)
{
	for (uint32_t i = 0; i < m->n_rows; i++) {
		(void)fprintf(stderr, "row:");
		for (size_t c = 0; c < link_table_columns(m->table); c++)
			(void)fprintf(stderr, " %s%s", c > 0 ? "| " : "", m->rows[i].columns[c]);
		(void)fprintf(stderr, "\n");
	}
}

static void print_verify(const LinkMessage *m)
{
	for (uint32_t i = 0; i < m->n_rows; i++)
		printf("%s\t%s\t%s\t%s\n", m->rows[i].columns[0], m->rows[i].columns[1],
		       m->rows[i].columns[2], m->rows[i].columns[3]);
	(void)fflush(stdout);
}

static void on_link(Driver *driver)
{
	static const char *const names[LINK_KIND_MAX] = { "hello",  "state",  "started", "failed", "exited",
							  "stop",   "get",    "table",   "done",   "allow",
							  "revoke", "denied", "verify",  "rows" };
	_cleanup_(link_message_done) LinkMessage m = LINK_MESSAGE_INIT;
	_cleanup_free_ uint8_t *buffer = malloc(LINK_PACKET_MAX);
	ssize_t n = packet_receive(driver->link_fd, buffer, LINK_PACKET_MAX);

	if (n <= 0 || link_decode(buffer, (size_t)n, &m) < 0) {
		driver->link_fd = close_fd(driver->link_fd);
		return;
	}
	(void)fprintf(stderr, "link: %s", names[m.kind]);
	switch (m.kind) {
	case LINK_HELLO:
	case LINK_STATE:
		(void)fprintf(stderr, " %s leader=%s jailed=%d\n", session_state_to_string(m.state),
			      m.leader ? "yes" : "no", m.jailed);
		break;
	case LINK_FAILED:
		(void)fprintf(stderr, " %s: %s\n", m.error, m.text);
		driver->failed = true;
		break;
	case LINK_EXITED:
		(void)fprintf(stderr, " %d\n", m.exit_status);
		driver->exited = true;
		driver->status = m.exit_status;
		break;
	case LINK_TABLE:
		(void)fprintf(stderr, " %u rows\n", m.n_rows);
		print_rows(&m);
		break;
	case LINK_DONE:
		(void)fprintf(stderr, " %u: %d %s\n", m.serial, m.result, m.text ?: "");
		if (driver->join && m.serial == SERIAL_JOIN)
			ask(driver, &(LinkMessage){ .kind = LINK_STOP, .serial = SERIAL_STOP });
		break;
	case LINK_ROWS:
		(void)fprintf(stderr, " %u\n", m.n_rows);
		print_verify(&m);
		break;
	default:
		(void)fprintf(stderr, "\n");
		if (m.kind == LINK_STARTED)
			on_started(driver);
	}
}

/* What launch does after fg(1). */
static void resume(Driver *driver)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	if (lifeline_encode(&(LifelineMessage){ .kind = LIFELINE_RESUME }, &data, &size) < 0 ||
	    packet_send(driver->lifeline_fd, data, size) < 0)
		die("resume");
}

static void on_lifeline(Driver *driver)
{
	static const char *const names[LIFELINE_KIND_MAX] = { "warning", "started", "stopped", "continued",
							      "exited",  "signal",  "resume" };
	LifelineMessage m = { .kind = LIFELINE_KIND_MAX };
	uint8_t buffer[LIFELINE_PACKET_MAX];
	ssize_t n = packet_receive(driver->lifeline_fd, buffer, sizeof(buffer));

	if (n <= 0 || lifeline_decode(buffer, (size_t)n, &m) < 0) {
		driver->lifeline_fd = close_fd(driver->lifeline_fd);
		return;
	}
	(void)fprintf(stderr, "lifeline: %s %d %s\n", names[m.kind], m.number, m.text ?: "");
	if (m.kind == LIFELINE_STOPPED)
		resume(driver);
	lifeline_message_done(&m);
}

static void on_master(Driver *driver)
{
	char buffer[4096];
	ssize_t n = read(driver->master_fd, buffer, sizeof(buffer));

	if (n <= 0)
		driver->master_fd = close_fd(driver->master_fd);
	else if (write(STDOUT_FILENO, buffer, (size_t)n) < 0)
		die("stdout");
}

static void follow(Driver *driver)
{
	while (driver->link_fd >= 0 || driver->lifeline_fd >= 0 || driver->master_fd >= 0) {
		struct pollfd fds[] = { { .fd = driver->link_fd, .events = POLLIN },
					{ .fd = driver->lifeline_fd, .events = POLLIN },
					{ .fd = driver->master_fd, .events = POLLIN } };

		if (poll(fds, ELEMENTSOF(fds), DEADLINE_SECONDS * 1000) <= 0)
			die("nothing happens");
		if (fds[0].revents)
			on_link(driver);
		if (fds[1].revents)
			on_lifeline(driver);
		if (fds[2].revents)
			on_master(driver);
	}
}

static void parse(Driver *driver, int argc, char **argv)
{
	const char *user = "root";
	int option;

	while ((option = getopt(argc, argv, "+u:c:E:d:tvPjT:k:ex:")) >= 0) {
		char *more = NULL;

		switch (option) {
		case 'u':
			user = optarg;
			break;
		case 'c':
			if (asprintf(&more, "%s%s\n", driver->configuration ?: "", optarg) < 0)
				die("configuration");
			free(driver->configuration);
			driver->configuration = more;
			break;
		case 'E':
			if (strings_append(&driver->environment, optarg) < 0)
				die("environment");
			break;
		case 'v':
			driver->verify = true;
			break;
		case 'P':
			driver->verify = driver->probes = true;
			break;
		case 'j':
			driver->join = true;
			break;
		case 'd':
			driver->directory = optarg;
			break;
		case 't':
			driver->terminal = true;
			break;
		case 'T':
			if (driver->n_tables < TABLES_MAX)
				driver->tables[driver->n_tables++] = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'k':
			driver->stop_seconds = (int)strtol(optarg, NULL, 10);
			break;
		case 'e':
			driver->close_lifeline = true;
			break;
		case 'x':
			driver->session = optarg;
			break;
		default:
			exit(124);
		}
	}
	if (optind >= argc)
		exit(124);
	driver->agent = argv[optind];
	driver->arguments = argv + optind + 1;
	driver->user = getpwnam(user);
	if (!driver->user)
		die(user);
}

int main(int argc, char **argv)
{
	Driver driver = { .session = CS_SESSION_PATH,
			  .stop_seconds = -1,
			  .link_fd = FD_NONE,
			  .lifeline_fd = FD_NONE,
			  .master_fd = FD_NONE };
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	int status = 0;

	driver.directory = cwd;
	parse(&driver, argc, argv);
	(void)signal(SIGPIPE, SIG_IGN);
	make_run_files(&driver);
	start(&driver);
	follow(&driver);
	if (waitpid(driver.pid, &status, 0) < 0)
		die("wait");
	free(driver.configuration);
	free(driver.guard);
	strings_free(driver.environment);
	(void)fprintf(stderr, "session: %s %d\n", WIFEXITED(status) ? "status" : "signal",
		      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	if (driver.failed)
		return 125;
	if (!driver.exited)
		return 124;
	return WIFEXITED(driver.status) ? WEXITSTATUS(driver.status) : 128 + WTERMSIG(driver.status);
}
