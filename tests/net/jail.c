/* SPDX-License-Identifier: MIT */
#include "tests/net/jail.h"

#include "service/net/self-test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#define TEXT_MAX 1024
#define DEADLINE_MSEC 10000

typedef struct Order {
	JailFunction function; /* valid on both sides of the fork */
	char text[TEXT_MAX];
} Order;

typedef struct Answer {
	int result;
	bool has_problem, ipv6_off;
	char problem[TEXT_MAX];
} Answer;

RouteTable jail_routes;

static int write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int namespace_enter(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -errno;
	(void)write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	r = write_file("/proc/self/uid_map", map);
	if (r < 0)
		return r;
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	return write_file("/proc/self/gid_map", map);
}

static int answer_send(int fd, int result, const char *problem, const JailSockets *sockets)
{
	Answer answer = { .result = result, .has_problem = problem };
	struct iovec iov = { &answer, sizeof(answer) };
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(5 * sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	snprintf(answer.problem, sizeof(answer.problem), "%s", problem ?: "");
	if (sockets && result >= 0) {
		int fds[5] = { sockets->route_fd, sockets->watch_fd, sockets->diag_fd, sockets->tap_fd,
			       sockets->ledger_fd };

		answer.ipv6_off = sockets->ipv6_off;
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(fds)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int answer_receive(int fd, JailSockets *ret_sockets, char **ret_problem)
{
	Answer answer;
	struct iovec iov = { &answer, sizeof(answer) };
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(5 * sizeof(int))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, DEADLINE_MSEC) <= 0)
		return -ETIMEDOUT;
	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -EPIPE;
	if (ret_sockets && answer.result >= 0) {
		int fds[5];

		memcpy(fds, CMSG_DATA(&control.header), sizeof(fds));
		*ret_sockets = (JailSockets){ fds[0], fds[1], fds[2], fds[3], fds[4], answer.ipv6_off };
	}
	if (answer.has_problem && ret_problem) {
		free(*ret_problem);
		*ret_problem = strdup(answer.problem);
	}
	return answer.result;
}

static _noreturn_ void holder(int fd)
{
	Jail jail = { .sockets = JAIL_SOCKETS_INIT };
	char *problem = NULL;
	Order order;
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = namespace_enter();
	if (r >= 0)
		r = jail_sockets_open(&jail.sockets, &problem);
	if (answer_send(fd, r, problem, &jail.sockets) < 0 || r < 0)
		_exit(1);
	free(problem);

	while (recv(fd, &order, sizeof(order), 0) == sizeof(order)) {
		problem = NULL;
		r = order.function(&jail, order.text, &problem);
		if (answer_send(fd, r, problem, NULL) < 0)
			_exit(1);
		free(problem);
	}
	_exit(0);
}

int jail_start(Jail *ret, char **ret_problem)
{
	int pair[2], r;
	pid_t pid;

	*ret = (Jail){ .control_fd = FD_NONE, .sockets = JAIL_SOCKETS_INIT };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(pair[0]);
		holder(pair[1]);
	}
	close(pair[1]);
	ret->holder = pid;
	ret->control_fd = pair[0];
	r = answer_receive(ret->control_fd, &ret->sockets, ret_problem);
	if (r < 0)
		jail_stop(ret);
	return r;
}

void jail_stop(Jail *jail)
{
	if (jail->holder > 0) {
		kill(jail->holder, SIGKILL);
		waitpid(jail->holder, NULL, 0);
	}
	jail->holder = 0;
	jail->control_fd = close_fd(jail->control_fd);
	jail_sockets_close(&jail->sockets);
}

int jail_run(Jail *jail, JailFunction function, const char *text, char **ret_problem)
{
	Order order = { .function = function };

	snprintf(order.text, sizeof(order.text), "%s", text ?: "");
	if (send(jail->control_fd, &order, sizeof(order), MSG_NOSIGNAL) < 0)
		return -errno;
	return answer_receive(jail->control_fd, NULL, ret_problem);
}

/* An ordinary user's capabilities in its own namespace do not survive execve(2) unless they are ambient. */
static void keep_net_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return;
	data[0].inheritable = data[0].permitted;
	data[1].inheritable = data[1].permitted;
	(void)syscall(SYS_capset, &header, data);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0);
}

int jail_ip(const Jail *jail, const char *text, char **ret_problem)
{
	_cleanup_free_ char *copy = strdup(text);
	char *argv[64] = { (char *)"ip" }, *save = NULL;
	size_t n = 1;
	int status;
	pid_t pid;

	for (char *word = strtok_r(copy, " ", &save); word && n < 63; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	pid = fork();
	if (pid == 0) {
		keep_net_admin();
		execv("/usr/sbin/ip", argv);
		execv("/sbin/ip", argv);
		execv("/usr/bin/ip", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

int jail_self_test(const Jail *jail, const char *text, char **ret_problem)
{
	return self_test_run(jail->sockets.tap_fd, &jail_routes, ret_problem);
}

static void add_row(uint32_t address, uint8_t length, RouteVerdict verdict, const char *reason)
{
	jail_routes.rows = reallocarray(jail_routes.rows, jail_routes.n_rows + 1, sizeof(*jail_routes.rows));
	jail_routes.rows[jail_routes.n_rows++] = (RouteRow){ address, length, verdict, strdup(reason) };
}

void jail_routes_done(void)
{
	for (size_t i = 0; i < jail_routes.n_rows; i++)
		free(jail_routes.rows[i].reason);
	free(jail_routes.rows);
	strings_free(jail_routes.warnings);
	jail_routes = (RouteTable){ 0 };
}

void jail_routes_make(size_t extra)
{
	static const HostPrefix of_host[] = { { 0x0808a000, 20 }, { 0x08080808, 32 }, { 0x0b0b0000, 16 } };

	jail_routes_done();
	jail_routes = (RouteTable){ .forwarder = 0xc6336435 };
	for (const DeniedRange *range = denied_ranges; range->reason; range++)
		add_row(range->prefix.address, range->prefix.length, ROUTE_DENY, "a range of the test");
	for (size_t i = 0; i < ELEMENTSOF(of_host); i++)
		add_row(of_host[i].address, of_host[i].length, ROUTE_DENY, "of the host");
	for (size_t i = 0; i < extra; i++)
		add_row(0x08090000 + (uint32_t)i * 2, 32, ROUTE_DENY, "one more");
	add_row(jail_routes.forwarder, 32, ROUTE_DNS, "forwarder");
	add_row(0x0a010203, 32, ROUTE_ALLOW, "allowed address");
	add_row(0x0a090000, 16, ROUTE_ALLOW, "allowed range");
	add_row(0x0b0b0000, 16, ROUTE_ALLOW, "denied and allowed");
	add_row(0, 0, ROUTE_INTERNET, "internet");
}

/* A tmpfs over /dev/net, with a device node that everyone may open. */
static int open_tun_for_everyone(void)
{
	mode_t mask;
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	(void)mkdir("/dev/net", 0755);
	if (mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755") < 0)
		return -errno;
	mask = umask(0);
	r = mknod("/dev/net/tun", S_IFCHR | 0666, makedev(10, 200)) < 0 ? -errno : 0;
	umask(mask);
	return r;
}

int as_each_user(int (*run)(const char *user))
{
	static const struct {
		const char *name;
		uid_t uid;
	} users[] = { { "root", 0 }, { "user", 1000 } };
	int status, failed = 0;

	if (geteuid() != 0) {
		fprintf(stderr, "this test makes a device node: it needs root\n");
		return getenv("CHECK_MUST_RUN") ? 1 : 77;
	}
	for (size_t i = 0; i < ELEMENTSOF(users); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (open_tun_for_everyone() < 0) {
				fprintf(stderr, "cannot make /dev/net/tun in a mount namespace: %m\n");
				_exit(1);
			}
			if (users[i].uid != 0 && (syscall(SYS_setgroups, 0, NULL) < 0 ||
						  setresgid(users[i].uid, users[i].uid, users[i].uid) < 0 ||
						  setresuid(users[i].uid, users[i].uid, users[i].uid) < 0))
				_exit(1);
			prctl(PR_SET_DUMPABLE, 1);
			status = run(users[i].name);
			fflush(NULL);
			_exit(status != 0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			failed = 1;
	}
	return failed;
}
