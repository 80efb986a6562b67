/* SPDX-License-Identifier: MIT */
#include "service/session/pasta.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "service/link/pack.h"
#include "service/plan/routes.h"
#include "service/session/program.h"
#include "service/session/tail.h"

#define PASTA_KILL_MSEC 2000
#define PASTA_MTU "65520"
#define PASTA_MAC "02:00:00:00:00:01"

struct Pasta {
	int pidfd;
	Tail tail;
	sd_event_source *pid_source, *tail_source;
	PastaEnded ended;
	void *userdata;
};

static int append_address(char ***strings, const char *option, uint32_t address)
{
	struct in_addr in = { .s_addr = htonl(address) };
	char text[INET_ADDRSTRLEN];
	int r;

	(void)inet_ntop(AF_INET, &in, text, sizeof(text));
	r = strings_append(strings, option);
	return r < 0 ? r : strings_append(strings, text);
}

char **pasta_arguments(const PastaOptions *options)
{
	/*
	 * -i lo: what it would learn from an interface of the host it is told, and without this it starts
	 * only where a default route names one (none with a VPN's two halves, none offline).
	 *
	 * -t -u -T -U none and --no-map-gw: leave one out and the host's loopback is within reach. No
	 * --config-net: it would copy the host's addresses and routes into the jail.
	 */
	static const char *const fixed[] = {
		"-n", "32",      "-I",          ROUTES_JAIL_DEVICE,
		"-i", "lo",      "-M",          PASTA_MAC,
		"-m", PASTA_MTU, "-t",          "none",
		"-u", "none",    "-T",          "none",
		"-U", "none",    "--no-map-gw", "--no-dhcp",
		"-q",
	};
	_cleanup_(strings_freep) char **strings = NULL;
	int r;

	r = strings_append(&strings, "pasta");
	if (r == 0)
		r = strings_append(&strings, "-f");
	if (r == 0)
		r = strings_append(&strings, "-4");
	if (r == 0)
		r = append_address(&strings, "-a", ROUTES_SOURCE);
	if (r == 0)
		r = append_address(&strings, "-g", ROUTES_FAR_END);
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(fixed); i++)
		r = strings_append(&strings, fixed[i]);
	if (r == 0 && options->forwarder != 0)
		r = append_address(&strings, "--dns-forward", options->forwarder);
	if (r == 0 && options->uid == 0) {
		/* Started by root it becomes nobody, who may not join the holder's namespaces. */
		r = strings_append(&strings, "--runas");
		if (r == 0)
			r = strings_appendf(&strings, "%u:%u", (unsigned)options->uid,
					    (unsigned)options->gid);
	}
	if (r == 0)
		r = strings_appendf(&strings, "%d", (int)options->holder);
	return r < 0 ? NULL : TAKE_PTR(strings);
}

void pasta_end(Pasta *pasta)
{
	if (!pasta)
		return;
	(void)sd_event_source_set_enabled(pasta->pid_source, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(pasta->tail_source, SD_EVENT_OFF);
	if (pasta->pidfd >= 0)
		(void)program_signal(pasta->pidfd, SIGKILL);
}

Pasta *pasta_free(Pasta *pasta)
{
	if (!pasta)
		return NULL;
	(void)sd_event_source_disable_unref(pasta->pid_source);
	(void)sd_event_source_disable_unref(pasta->tail_source);
	program_destroy(&pasta->pidfd, PASTA_KILL_MSEC);
	tail_done(&pasta->tail);
	free(pasta);
	return NULL;
}

static int on_tail(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Pasta *pasta = userdata;

	if (tail_read(&pasta->tail) <= 0)
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

static int on_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Pasta *pasta = userdata;
	_cleanup_free_ char *line = NULL;

	if (program_reap(pasta->pidfd, NULL) == 0)
		return 0;
	pasta->pidfd = close_fd(pasta->pidfd);
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	(void)tail_read(&pasta->tail);
	line = tail_last_line(&pasta->tail);
	/* May free pasta: nothing of it is used afterwards. */
	pasta->ended(pasta->userdata, line);
	return 0;
}

/*
 * Where AppArmor is on, Debian 12's profile of passt lacks the rule that joining by pid needs; the next
 * execve(2) of this process leaves that profile out. Without AppArmor the file does not exist or refuses the
 * text.
 */
static void leave_apparmor(void)
{
	_cleanup_close_ int fd = open("/proc/self/attr/apparmor/exec", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "exec unconfined", strlen("exec unconfined")) < 0)
		return;
}

int pasta_start(sd_event *event, const PastaOptions *options, PastaEnded ended, void *userdata, Pasta **ret,
		char **ret_problem)
{
	_cleanup_(strings_freep) char **arguments = pasta_arguments(options);
	_cleanup_(pasta_freep) Pasta *pasta = NULL;
	_cleanup_close_ int error_fd = FD_NONE;
	pid_t parent = getpid(), pid;
	int r;

	pasta = malloc(sizeof(*pasta));
	if (!arguments || !pasta)
		return -ENOMEM;
	*pasta = (Pasta){ .pidfd = FD_NONE, .tail = TAIL_INIT, .ended = ended, .userdata = userdata };
	r = tail_open(&pasta->tail, &error_fd);
	if (r < 0)
		return refuse(ret_problem, r, "no pipe for pasta: %s", strerror(-r));

	pid = fork();
	if (pid < 0)
		return refuse(ret_problem, -errno,
			      "no process for pasta (%s); end other processes of this user", strerror(errno));
	if (pid == 0) {
		char *const environment[] = { NULL };

		program_child_reset(parent);
		leave_apparmor();
		program_execute(options->path, arguments, environment, FD_NONE, FD_NONE, error_fd);
	}
	pasta->pidfd = program_pidfd(pid);
	if (pasta->pidfd < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return refuse(ret_problem, pasta->pidfd, "pasta cannot be watched: %s",
			      strerror(-pasta->pidfd));
	}
	r = sd_event_add_io(event, &pasta->pid_source, pasta->pidfd, EPOLLIN, on_ended, pasta);
	if (r == 0)
		r = sd_event_add_io(event, &pasta->tail_source, pasta->tail.fd, EPOLLIN, on_tail, pasta);
	if (r < 0)
		return refuse(ret_problem, r, "pasta cannot be watched: %s", strerror(-r));
	*ret = TAKE_PTR(pasta);
	return 0;
}
