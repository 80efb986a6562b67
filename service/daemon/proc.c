/* SPDX-License-Identifier: MIT */
#include "service/daemon/proc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/sysmacros.h>

#define PROC_BYTES_MAX (64u * 1024)

bool pidfd_alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&p, 1, 0) == 0;
}

int pidfd_of(pid_t pid)
{
	int fd = pid > 0 ? pidfd_open(pid, 0) : (errno = ESRCH, -1);

	return fd < 0 ? -errno : fd;
}

int pidfd_kill(int pidfd, int signal)
{
	return pidfd_send_signal(pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int proc_read(pid_t pid, const char *name, char **ret)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	_cleanup_close_ int fd = FD_NONE;
	size_t size = 0;

	if (asprintf(&path, "/proc/%d/%s", pid, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT && kill(pid, 0) < 0 && errno == ESRCH ? -ESRCH : -errno;

	text = malloc(PROC_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	while (size < PROC_BYTES_MAX) {
		ssize_t n = read(fd, text + size, PROC_BYTES_MAX - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	text[size] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

/* The value behind "NAME:" at the beginning of a line, or NULL. */
static const char *status_field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			return line + n + 1;
		if (*line == '\0')
			break;
	}
	return NULL;
}

int proc_parse_status(const char *text, ProcStatus *ret)
{
	const char *uid = status_field(text, "Uid"), *gid = status_field(text, "Gid");
	const char *umask_text = status_field(text, "Umask"), *nnp = status_field(text, "NoNewPrivs");
	const char *seccomp = status_field(text, "Seccomp"), *permitted = status_field(text, "CapPrm");
	const char *bounding = status_field(text, "CapBnd"), *ignored = status_field(text, "SigIgn");
	const char *filters = status_field(text, "Seccomp_filters");
	uint64_t capabilities, bounding_set, ignored_signals;
	unsigned effective_uid, effective_gid, mask, no_new_privs, mode = 0, n_filters = 0;

	if (!uid || sscanf(uid, "%*u %u", &effective_uid) != 1)
		return -EBADMSG;
	if (!gid || sscanf(gid, "%*u %u", &effective_gid) != 1)
		return -EBADMSG;
	if (!umask_text || sscanf(umask_text, "%o", &mask) != 1 || mask > 0777)
		return -EBADMSG;
	if (!nnp || sscanf(nnp, "%u", &no_new_privs) != 1)
		return -EBADMSG;
	if (!permitted || sscanf(permitted, "%" SCNx64, &capabilities) != 1)
		return -EBADMSG;
	if (!bounding || sscanf(bounding, "%" SCNx64, &bounding_set) != 1)
		return -EBADMSG;
	if (!ignored || sscanf(ignored, "%" SCNx64, &ignored_signals) != 1)
		return -EBADMSG;
	/* A kernel without CONFIG_SECCOMP has no such line. */
	if (seccomp && sscanf(seccomp, "%u", &mode) != 1)
		return -EBADMSG;
	if (filters && sscanf(filters, "%u", &n_filters) != 1)
		return -EBADMSG;

	*ret = (ProcStatus){
		.uid = effective_uid,
		.gid = effective_gid,
		.umask = mask,
		.no_new_privs = no_new_privs != 0,
		.seccomp = mode,
		.seccomp_filters = n_filters,
		.capabilities = capabilities,
		.bounding_set = bounding_set,
		.ignored_signals = ignored_signals,
	};
	return 0;
}

int proc_parse_stat(const char *text, ProcStat *ret)
{
	/* The command's name stands in parentheses and may hold any byte: the last ')' ends it. */
	const char *rest = strrchr(text, ')');
	uint64_t start;
	unsigned number;
	int terminal;

	if (!rest)
		return -EBADMSG;
	/* Fields 3 to 6, 7 (tty_nr), 8 to 21, 22 (starttime). */
	if (sscanf(rest + 1,
		   " %*c %*d %*d %*d %d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		   &terminal, &start) != 2)
		return -EBADMSG;

	/* proc_pid_stat(5): minor in bits 31 to 20 and 7 to 0, major in 15 to 8. */
	number = (unsigned)terminal;
	*ret = (ProcStat){
		.terminal =
			number ? makedev(number >> 8 & 0xff, (number & 0xff) | (number >> 12 & 0xfff00)) : 0,
		.start_ticks = start,
	};
	return 0;
}

int proc_status(pid_t pid, ProcStatus *ret)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = proc_read(pid, "status", &text);
	return r < 0 ? r : proc_parse_status(text, ret);
}

int proc_stat(pid_t pid, ProcStat *ret)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = proc_read(pid, "stat", &text);
	return r < 0 ? r : proc_parse_stat(text, ret);
}

uint64_t proc_ticks_to_usec(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return ticks * (USEC_PER_SEC / (hz > 0 ? (uint64_t)hz : 100));
}

/* fs/proc/base.c of the kernel, proc_pid_limits(): "%-25s %-20s %-20s %-10s" after a line of headings. */
static int parse_limit(const char **text, rlim_t *ret)
{
	char *end;

	while (**text == ' ')
		(*text)++;
	if (starts_with(*text, "unlimited")) {
		*text += strlen("unlimited");
		*ret = RLIM_INFINITY;
		return 0;
	}
	if (**text < '0' || **text > '9')
		return -EBADMSG;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return errno ? -EBADMSG : 0;
}

int proc_parse_limits(const char *text, struct rlimit ret[static RLIM_NLIMITS])
{
	static const char *const names[RLIM_NLIMITS] = {
		[RLIMIT_CPU] = "Max cpu time",
		[RLIMIT_FSIZE] = "Max file size",
		[RLIMIT_DATA] = "Max data size",
		[RLIMIT_STACK] = "Max stack size",
		[RLIMIT_CORE] = "Max core file size",
		[RLIMIT_RSS] = "Max resident set",
		[RLIMIT_NPROC] = "Max processes",
		[RLIMIT_NOFILE] = "Max open files",
		[RLIMIT_MEMLOCK] = "Max locked memory",
		[RLIMIT_AS] = "Max address space",
		[RLIMIT_LOCKS] = "Max file locks",
		[RLIMIT_SIGPENDING] = "Max pending signals",
		[RLIMIT_MSGQUEUE] = "Max msgqueue size",
		[RLIMIT_NICE] = "Max nice priority",
		[RLIMIT_RTPRIO] = "Max realtime priority",
		[RLIMIT_RTTIME] = "Max realtime timeout",
	};
	struct rlimit limits[RLIM_NLIMITS];

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		const char *line = strstr(text, names[i]);

		if (!line || (line != text && line[-1] != '\n'))
			return -EBADMSG;
		line += strlen(names[i]);
		if (parse_limit(&line, &limits[i].rlim_cur) < 0 || *line != ' ' ||
		    parse_limit(&line, &limits[i].rlim_max) < 0)
			return -EBADMSG;
	}
	memcpy(ret, limits, sizeof(limits));
	return 0;
}

int proc_limits(pid_t pid, struct rlimit ret[static RLIM_NLIMITS])
{
	_cleanup_free_ char *text = NULL;
	int r = proc_read(pid, "limits", &text);

	return r < 0 ? r : proc_parse_limits(text, ret);
}
