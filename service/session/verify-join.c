/* SPDX-License-Identifier: MIT */
/*
 * ORDER IS SECURITY. The agent in that jail has the same uid as everything here, and is the adversary.
 *
 * The first process, a fork of the session, outside:
 *  1. is not dumpable: with that nobody traces it or reads its memory, which holds the caller's environment,
 *     without rights over the host's user namespace;
 *  2. keeps nothing open but what verify gets, the jail's pidfd and the pipe: whoever could have it otherwise
 *     would have the session's sockets;
 *  3. joins all namespaces of the jail with ONE setns(2), and
 *  4. is not dumpable and dies with the session, again, for the reasons in jail-join.c;
 *  5. makes the second process, which alone is in the jail's pid namespace, as the session's child and not
 *     its own (CLONE_PARENT), so that the session reaps it whatever happens here; says its pid, and ends.
 *
 * The second process, in the jail, with all capabilities of its user namespace:
 *  6. cannot gain rights (no_new_privs), and has no terminal (setsid);
 *  7. drops the bounding set while it still may, then every capability: those of root would survive
 *     execve(2);
 *  8. compares the program at verify's path with the one outside;
 *  9. executes it, by that path, with the plan's environment: never the agent's.
 *
 * verify itself loads the filter, as its first act, since only what is built for the inside has it
 * (service/inside/filter.h). Nothing is lost by that: the filter holds back agents and is no protection from
 * them, and until then nothing runs but our own code, which the agent can neither read nor trace: the file
 * has no permission to read, so execve(2) leaves it undumpable. A stop or a kill it can send; that is a
 * failed check.
 */
#include "service/session/verify-join.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "dbus/names.h"
#include "service/link/pack.h"
#include "service/session/jail-join.h"
#include "service/session/jail-processes.h"
#include "service/session/program.h"

/* The numbers in both processes. */
enum { PLACE_EXPECTATIONS, PLACE_ROWS, PLACE_ERROR, PLACE_LEADER, PLACE_WORD, PLACE_MAX };

/* Everything that needs memory, from before the fork. */
typedef struct Joiner {
	const VerifyJoin *join;
	int namespaces; /* CLONE_NEW... */
	char **environment;
	struct stat program;
	int null_fd, word_fd;
	pid_t session;
} Joiner;

static const struct {
	NamespaceKind kind;
	int flag;
	bool needed; /* the jail has its own, or it is none */
} namespaces[] = {
	{ NAMESPACE_USER, CLONE_NEWUSER, true }, { NAMESPACE_PID, CLONE_NEWPID, true },
	{ NAMESPACE_MNT, CLONE_NEWNS, true },    { NAMESPACE_IPC, CLONE_NEWIPC, true },
	{ NAMESPACE_UTS, CLONE_NEWUTS, true },   { NAMESPACE_CGROUP, CLONE_NEWCGROUP, false },
	{ NAMESPACE_NET, CLONE_NEWNET, false },
};

const char *join_stage_to_string(JoinStage stage)
{
	static const char *const words[JOIN_STAGE_MAX] = {
		[JOIN_STARTED] = "nothing was done",
		[JOIN_PREPARE] = "no process can be made ready for the jail",
		[JOIN_ENTER] = "the jail's namespaces cannot be joined",
		[JOIN_FORK] = "no process can be made in the jail",
		[JOIN_DROP] = "rights cannot be dropped in the jail",
		[JOIN_PROGRAM] = "inside, another file lies at " CS_VERIFY_PATH,
		[JOIN_EXECUTE] = CS_VERIFY_PATH " cannot be executed in the jail",
	};

	return (unsigned)stage < JOIN_STAGE_MAX ? words[stage] : words[JOIN_PREPARE];
}

/* Those in which the jail differs from the session: to join one's own is an error, or needs rights over it.
 */
static int namespaces_of(pid_t leader, int *ret)
{
	uint64_t own[NAMESPACE_KIND_MAX], jail[NAMESPACE_KIND_MAX];

	namespaces_read(0, own);
	namespaces_read(leader, jail);
	*ret = 0;
	for (size_t i = 0; i < ELEMENTSOF(namespaces); i++) {
		NamespaceKind kind = namespaces[i].kind;

		if (own[kind] == 0 || jail[kind] == 0)
			return -ESRCH;
		if (own[kind] != jail[kind])
			*ret |= namespaces[i].flag;
		else if (namespaces[i].needed)
			return -EREMCHG;
	}
	return 0;
}

static void say(int fd, JoinStage stage, int number)
{
	const JoinWord word = { .stage = stage, .number = number };

	(void)!write(fd, &word, sizeof(word));
}

_noreturn_ static void fail(JoinStage stage, int error)
{
	say(PLACE_WORD, stage, error);
	_exit(EXIT_FAILURE);
}

/* Above all places first, so that none is closed before it was copied. */
static int descriptors_place(const Joiner *joiner)
{
	const int from[PLACE_MAX] = {
		[PLACE_EXPECTATIONS] = joiner->join->expectations_fd,
		[PLACE_ROWS] = joiner->join->rows_fd,
		[PLACE_ERROR] = joiner->null_fd,
		[PLACE_LEADER] = joiner->join->leader_fd,
		[PLACE_WORD] = joiner->word_fd,
	};
	int high[PLACE_MAX];

	for (int i = 0; i < PLACE_MAX; i++) {
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, PLACE_MAX);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < PLACE_MAX; i++)
		if (dup3(high[i], i, i > PLACE_ERROR ? O_CLOEXEC : 0) < 0)
			return -errno;
	return close_range(PLACE_MAX, ~0U, 0) < 0 ? -errno : 0;
}

static int undumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int capabilities_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	/* Up to the first that this kernel does not know. */
	for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
			return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return 0;
}

_noreturn_ static void second_process(const Joiner *joiner)
{
	static char *const argv[] = { (char *)"verify", NULL };
	const VerifyJoin *join = joiner->join;
	struct stat program;
	int r;

	/* Its parent is in another pid namespace, and getppid(2) says 0 whether or not it lives: without it
	 * verify's socket has no other end, and the jail ends. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    setsid() < 0)
		fail(JOIN_PREPARE, errno);
	r = capabilities_drop();
	if (r == 0)
		r = undumpable();
	if (r < 0)
		fail(JOIN_DROP, -r);
	(void)umask(join->file_mode_mask);
	(void)setrlimit(RLIMIT_NOFILE, &join->descriptors);
	/* A checked jail may have lost its workspace; that is for the checks to say. */
	if (chdir(join->plan->cwd) < 0 && chdir("/") < 0)
		fail(JOIN_EXECUTE, errno);
	if (stat(CS_VERIFY_PATH, &program) < 0)
		fail(JOIN_EXECUTE, errno);
	if (program.st_dev != joiner->program.st_dev || program.st_ino != joiner->program.st_ino)
		fail(JOIN_PROGRAM, 0);
	(void)execve(CS_VERIFY_PATH, argv, joiner->environment);
	fail(JOIN_EXECUTE, errno);
}

_noreturn_ static void first_process(const Joiner *joiner)
{
	pid_t pid;
	int r;

	r = undumpable();
	if (r == 0)
		program_child_reset(joiner->session);
	if (r == 0)
		r = descriptors_place(joiner);
	if (r < 0) {
		say(joiner->word_fd, JOIN_PREPARE, -r);
		_exit(EXIT_FAILURE);
	}
	r = jail_enter(PLACE_LEADER, joiner->namespaces);
	if (r < 0)
		fail(JOIN_ENTER, -r);
	(void)close(PLACE_LEADER);

	/* As fork(2), but for the parent: clone(2). */
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, NULL, NULL, 0);
	if (pid < 0)
		fail(JOIN_FORK, errno);
	if (pid == 0)
		second_process(joiner);
	say(PLACE_WORD, JOIN_STARTED, (int)pid);
	_exit(EXIT_SUCCESS);
}

static int joiner_make(const VerifyJoin *join, Joiner *joiner, char **ret_problem)
{
	const Plan *plan = join->plan;
	int r;

	r = namespaces_of(join->leader, &joiner->namespaces);
	if (r == -EREMCHG)
		return refuse(ret_problem, r,
			      "the jail has not all the namespaces of its own that it needs; end the session "
			      "and report it");
	if (r < 0)
		return refuse(ret_problem, r, "the jail's namespaces cannot be seen: %s", strerror(-r));
	if (stat(CS_VERIFY_PATH, &joiner->program) < 0)
		return refuse(ret_problem, -errno, "%s is not there: %s; reinstall claude-sandbox",
			      CS_VERIFY_PATH, strerror(errno));
	joiner->environment = calloc(1, sizeof(char *));
	r = joiner->environment ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < plan->n_variables; i++)
		r = strings_appendf(&joiner->environment, "%s=%s", plan->variables[i].name,
				    plan->variables[i].value);
	if (r == 0)
		r = joiner->null_fd = program_open_null();
	return r < 0 ? r : 0;
}

int verify_join(const VerifyJoin *join, int *ret_pidfd, int *ret_word_fd, char **ret_problem)
{
	Joiner joiner = { .join = join, .null_fd = FD_NONE, .word_fd = FD_NONE, .session = getpid() };
	_cleanup_close_ int word_fd = FD_NONE;
	int pair[2], pidfd, r;
	pid_t pid;

	r = joiner_make(join, &joiner, ret_problem);
	if (r == 0 && pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		r = -errno;
	else if (r == 0) {
		word_fd = pair[0];
		joiner.word_fd = pair[1];
	}
	pid = r < 0 ? -1 : fork();
	if (pid == 0)
		first_process(&joiner);
	if (r == 0 && pid < 0)
		r = -errno;
	(void)strings_free(joiner.environment);
	(void)close_fd(joiner.null_fd);
	(void)close_fd(joiner.word_fd);
	if (r < 0)
		return *ret_problem ? r
				    : refuse(ret_problem, r, "no process for the checks: %s", strerror(-r));
	pidfd = program_pidfd(pid);
	if (pidfd < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return refuse(ret_problem, pidfd, "what checks cannot be watched: %s", strerror(-pidfd));
	}
	*ret_pidfd = pidfd;
	*ret_word_fd = TAKE_FD(word_fd);
	return 0;
}
