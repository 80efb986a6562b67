/* SPDX-License-Identifier: MIT */
#include "dbus/text-agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-login.h>

#include "dbus/names.h"

#define TERMINAL_PATH "/dev/tty"
/* It answers at once, or polkit is not there; the call itself has no limit. */
#define READY_MSEC 10000
#define END_MSEC 2000 /* in which it gives the terminal back and ends by itself */

/* proc(5): the 22nd field of stat, which polkit compares with; the second one may hold anything. */
static int start_time(pid_t pid, unsigned long long *ret)
{
	_cleanup_free_ char *path = NULL, *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	size_t size = 0;
	const char *p;

	if (asprintf(&path, "/proc/%d/stat", (int)pid) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (getdelim(&line, &size, '\0', f) < 0)
		return -EIO;
	p = strrchr(line, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p && sscanf(p, " %llu", ret) == 1 ? 0 : -EIO;
}

/*
 * polkit (0.122) looks at fallbacks only where the process, or its user, has a session of logind; where it
 * has none, there is no other agent to fall back from.
 */
static bool has_session(void)
{
	_cleanup_free_ char *session = NULL, *display = NULL;

	return sd_pid_get_session(0, &session) >= 0 || sd_uid_get_display(getuid(), &display) >= 0;
}

/* Between fork and exec of a program without threads; nothing of ours stays open but what it is to close. */
_noreturn_ static void child(const char *subject, const char *number, int notify_fd, int terminal_fd,
			     bool fallback, pid_t parent)
{
	char *const nothing[] = { (char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8", NULL };
	char *const arguments[] = { (char *)"pkttyagent",
				    (char *)"--process",
				    (char *)subject,
				    (char *)"--notify-fd",
				    (char *)number,
				    fallback ? (char *)"--fallback" : NULL,
				    NULL };
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	if (getppid() != parent)
		_exit(CS_EXIT_REFUSED);
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		(void)signal(signal_number, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* Its complaints would stand beside ours; what it asks goes to the terminal. */
	if (dup2(terminal_fd, STDIN_FILENO) < 0 || dup2(terminal_fd, STDOUT_FILENO) < 0 ||
	    fcntl(notify_fd, F_SETFD, 0) < 0)
		_exit(CS_EXIT_REFUSED);
	(void)close(STDERR_FILENO);
	(void)open("/dev/null", O_WRONLY | O_CLOEXEC);
	(void)fcntl(STDERR_FILENO, F_SETFD, 0);
	execve(TEXT_AGENT_PATH, arguments, nothing);
	_exit(CS_EXIT_REFUSED);
}

static int spawn(TextAgent *agent, const char *subject)
{
	_cleanup_close_ int terminal_fd = FD_NONE, ready_fd = FD_NONE, notify_fd = FD_NONE;
	_cleanup_free_ char *number = NULL;
	const bool fallback = has_session();
	pid_t parent = getpid(), pid;
	int pipes[2];

	if (access(TEXT_AGENT_PATH, X_OK) < 0)
		return -errno;
	terminal_fd = open(TERMINAL_PATH, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (terminal_fd < 0)
		return -ENOTTY;
	/* In the background its question would stop it, and us with it. */
	if (tcgetpgrp(terminal_fd) != getpgrp())
		return -ENOTTY;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	ready_fd = pipes[0];
	notify_fd = fcntl(pipes[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	(void)close(pipes[1]);
	if (notify_fd < 0)
		return -errno;
	if (asprintf(&number, "%d", notify_fd) < 0) {
		number = NULL;
		return -ENOMEM;
	}
	agent->saved = tcgetattr(terminal_fd, &agent->modes) == 0;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child(subject, number, notify_fd, terminal_fd, fallback, parent);
	agent->pid = pid;
	agent->ready_fd = TAKE_FD(ready_fd);
	agent->terminal_fd = TAKE_FD(terminal_fd);
	return 0;
}

int text_agent_start(TextAgent *agent)
{
	_cleanup_free_ char *subject = NULL;
	unsigned long long start;
	int r;

	r = start_time(getpid(), &start);
	if (r < 0)
		return r;
	if (asprintf(&subject, "%d,%llu", (int)getpid(), start) < 0) {
		subject = NULL;
		return -ENOMEM;
	}
	return spawn(agent, subject);
}

void text_agent_wait(const TextAgent *agent)
{
	struct pollfd ready = { .fd = agent->ready_fd, .events = POLLIN };

	if (agent->pid > 0)
		while (poll(&ready, 1, READY_MSEC) < 0 && errno == EINTR)
			;
}

bool text_agent_was_stopped(const TextAgent *agent)
{
	siginfo_t info = { 0 };

	return agent->pid > 0 && waitid(P_PID, (id_t)agent->pid, &info, WSTOPPED | WNOHANG) == 0 &&
	       info.si_pid == agent->pid;
}

bool text_agent_has_terminal(const TextAgent *agent)
{
	return tcgetpgrp(agent->terminal_fd) == getpgrp();
}

/* Not reaped yet, so that the number is still its own afterwards. */
static void wait_for_end(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		while (poll(&ended, 1, END_MSEC) < 0 && errno == EINTR)
			;
}

void text_agent_stop(TextAgent *agent)
{
	if (agent->pid <= 0)
		return;
	(void)kill(agent->pid, SIGTERM);
	/* One that was stopped ends too. */
	(void)kill(agent->pid, SIGCONT);
	wait_for_end(agent->pid);
	(void)kill(agent->pid, SIGKILL);
	while (waitpid(agent->pid, NULL, 0) < 0 && errno == EINTR)
		;
	/* A shell has its own modes by now where we are in the background. */
	if (agent->saved && text_agent_has_terminal(agent))
		(void)tcsetattr(agent->terminal_fd, TCSAFLUSH, &agent->modes);
	close_fd(agent->ready_fd);
	close_fd(agent->terminal_fd);
	*agent = TEXT_AGENT_INIT;
}
