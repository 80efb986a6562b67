/* SPDX-License-Identifier: MIT */
#include "service/session/pasta.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/link/pack.h"
#include "service/plan/routes.h"
#include "service/session/program.h"
#include "service/session/tail.h"

#define PASTA_KILL_MSEC 2000
#define LIMIT_WANTED (128u << 20) /* bytes */
#define PROGRAM_BYTES_MAX (16 << 20)
#define PROFILE_BYTES_MAX 512
#define RESOLVER_PATH "/etc/resolv.conf"
#define PASTA_MTU "65520"
#define PASTA_MAC "02:00:00:00:00:01"

struct Pasta {
	pid_t pid; /* not reaped as long as pidfd is open */
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
	/*
	 * 0 and 1: what lies above 2 newer versions close at their start. --no-netns-quit: the path is no name
	 * that could be removed.
	 */
	static const char *const by_descriptors[] = {
		"--userns", "/proc/self/fd/0", "--netns", "/proc/self/fd/1", "--no-netns-quit",
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
	if (r == 0 && options->forwarder != 0 && options->server != 0 && options->knows_dns_host)
		r = append_address(&strings, "--dns-host", options->server);
	if (r == 0 && options->uid == 0) {
		/* Started by root it becomes nobody, who may not join the holder's namespaces. */
		r = strings_append(&strings, "--runas");
		if (r == 0)
			r = strings_appendf(&strings, "%u:%u", (unsigned)options->uid,
					    (unsigned)options->gid);
	}
	if (r == 0 && options->way == PASTA_BY_PROCESS)
		r = strings_appendf(&strings, "%d", (int)options->holder);
	for (size_t i = 0; r == 0 && options->way == PASTA_BY_DESCRIPTORS && i < ELEMENTSOF(by_descriptors);
	     i++)
		r = strings_append(&strings, by_descriptors[i]);
	return r < 0 ? NULL : TAKE_PTR(strings);
}

bool pasta_knows_dns_host(const char *path)
{
	static const char name[] = "dns-host"; /* with its end: the word in a text does not count */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool found = false;
	struct stat st;
	void *file;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > PROGRAM_BYTES_MAX)
		return false;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return false;
	found = memmem(file, (size_t)st.st_size, name, sizeof(name)) != NULL;
	(void)munmap(file, (size_t)st.st_size);
	return found;
}

char *pasta_profile(const Pasta *pasta)
{
	_cleanup_free_ char *path = NULL;
	char text[PROFILE_BYTES_MAX];
	_cleanup_close_ int fd = FD_NONE;
	ssize_t n;

	if (!pasta || asprintf(&path, "/proc/%d/attr/apparmor/current", (int)pasta->pid) < 0) {
		path = NULL;
		return NULL;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strdup(text);
}

/* Return: to be freed, each with its NUL; NULL without memory. */
static char *arguments_join(char *const *arguments, size_t *ret_size)
{
	size_t size = 0, at = 0;
	char *text;

	for (size_t i = 0; arguments[i]; i++)
		size += strlen(arguments[i]) + 1;
	text = malloc(size);
	for (size_t i = 0; text && arguments[i]; i++) {
		size_t n = strlen(arguments[i]) + 1;

		memcpy(text + at, arguments[i], n);
		at += n;
	}
	*ret_size = size;
	return text;
}

/* pasta takes the value of --runas apart in place: a colon may have become an end. */
static bool is_as_meant(const char *found, const char *meant, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (found[i] != meant[i] && (meant[i] != ':' || found[i] != '\0'))
			return false;
	return true;
}

int pasta_read_back(const Pasta *pasta, const PastaOptions *options, char **ret_problem)
{
	_cleanup_(strings_freep) char **arguments = pasta_arguments(options);
	_cleanup_free_ char *meant = NULL, *found = NULL, *path = NULL;
	_cleanup_close_ int fd = FD_NONE;
	size_t size = 0;
	ssize_t n;

	meant = arguments ? arguments_join(arguments, &size) : NULL;
	found = meant ? malloc(size + 1) : NULL;
	if (!found || asprintf(&path, "/proc/%d/cmdline", (int)pasta->pid) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	/* A few hundred bytes, which the kernel gives in one piece. */
	n = fd < 0 ? -1 : read(fd, found, size + 1);
	if (n < 0)
		return refuse(ret_problem, -errno, "pasta cannot be looked at: %s", strerror(errno));
	if ((size_t)n != size || !is_as_meant(found, meant, size))
		return refuse(ret_problem, -EREMCHG, "pasta runs with other options than were meant");
	return 0;
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
	/* Before the descriptor goes: epoll(7) keeps one that a child has a copy of. */
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	pasta->pidfd = close_fd(pasta->pidfd);
	(void)tail_read(&pasta->tail);
	line = tail_last_line(&pasta->tail);
	/* May free pasta: nothing of it is used afterwards. */
	pasta->ended(pasta->userdata, line);
	return 0;
}

/*
 * The agent's limits are its caller's; the wire's are not the agent's. Of the stack pasta takes more than 2
 * MiB, of data and address space what its tables take.
 */
static void raise_limits(void)
{
	static const __rlimit_resource_t resources[] = { RLIMIT_STACK, RLIMIT_DATA, RLIMIT_AS };
	struct rlimit limit;

	for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
		if (getrlimit(resources[i], &limit) < 0 || limit.rlim_cur >= LIMIT_WANTED)
			continue;
		limit.rlim_cur = MIN_OF(limit.rlim_max, (rlim_t)LIMIT_WANTED);
		(void)setrlimit(resources[i], &limit);
	}
}

/*
 * Must it leave AppArmor's profile? That lets it read /etc/resolv.conf and, in Debian 12's package, nothing that this
 * is a link to (systemd-resolved has it in /run). A pasta without --dns-host cannot be told the server in another
 * way: it would send all questions nowhere.
 */
static bool needs_other_files(const PastaOptions *options)
{
	char path[PATH_MAX];

	return !options->knows_dns_host && options->forwarder != 0 && options->server != 0 &&
	       access("/proc/self/attr/apparmor/exec", W_OK) == 0 && realpath(RESOLVER_PATH, path) &&
	       !streq(path, RESOLVER_PATH);
}

/*
 * pasta executes a variant of itself for processors with AVX2, and the profile would come back with that, so it is
 * started as that variant at once. Return: to be freed, or NULL: as it is.
 */
static char *variant_find(void)
{
#ifdef __x86_64__
	char *path = NULL;

	if (__builtin_cpu_supports("avx2") && program_find("pasta.avx2", "passt", &path, NULL) == 0)
		return path;
#endif
	return NULL;
}

/* The next execve(2) of this process leaves the profile out. Without AppArmor there is no such file. */
static void leave_apparmor(void)
{
	_cleanup_close_ int fd = open("/proc/self/attr/apparmor/exec", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "exec unconfined", strlen("exec unconfined")) < 0)
		return;
}

static int namespace_open(pid_t holder, const char *kind, int *ret_fd)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "/proc/%d/ns/%s", (int)holder, kind) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

int pasta_start(sd_event *event, const PastaOptions *options, PastaEnded ended, void *userdata, Pasta **ret,
		char **ret_problem)
{
	_cleanup_(strings_freep) char **arguments = pasta_arguments(options);
	_cleanup_(pasta_freep) Pasta *pasta = NULL;
	_cleanup_close_ int error_fd = FD_NONE, user_fd = FD_NONE, net_fd = FD_NONE;
	bool leaves = needs_other_files(options);
	_cleanup_free_ char *variant = leaves ? variant_find() : NULL;
	pid_t parent = getpid(), pid;
	int r = 0;

	if (options->way == PASTA_BY_DESCRIPTORS) {
		r = namespace_open(options->holder, "user", &user_fd);
		if (r == 0)
			r = namespace_open(options->holder, "net", &net_fd);
	}
	if (r < 0)
		return refuse(ret_problem, r, "the holder's namespaces cannot be opened: %s", strerror(-r));
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
		if (leaves)
			leave_apparmor();
		raise_limits();
		program_execute(variant ?: options->path, arguments, environment, user_fd, net_fd, error_fd);
	}
	pasta->pid = pid;
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
