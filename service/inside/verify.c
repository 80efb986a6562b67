/* SPDX-License-Identifier: MIT */
#include "service/inside/verify.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "service/inside/battery.h"
#include "service/inside/filter.h"
#include "service/inside/probes.h"

/*
 * Descriptors: 0 is a sealed memfd with the expectations; 1 the SOCK_SEQPACKET end that rows go to; 2 the
 * terminal of a session that was made to be verified, else /dev/null. Nothing else is kept. Where 0 and 1 are
 * anything else, a person has typed the program's name: rows are lines of text and nothing is expected.
 *
 * It shares its uid with an agent that may run beside it, so first of all it is not dumpable: nobody without
 * rights over its user namespace traces it, or reads and writes its memory. The file has no permission to
 * read, so that this holds from execve(2) on.
 */

#define EXPECTATIONS_FD STDIN_FILENO
#define ROWS_FD STDOUT_FILENO
#define DESCRIPTORS_LOOKED_AT 1024
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static bool rows_are_wanted(void)
{
	int type = 0, domain = 0;
	socklen_t size = sizeof(type);

	if (getsockopt(ROWS_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    getsockopt(ROWS_FD, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0)
		return false;
	return type == SOCK_SEQPACKET && domain == AF_UNIX;
}

/* Return: 0; -EPERM for anything but a sealed memfd; another negative errno. */
static int expectations_read(Expectations *ret)
{
	int seals = fcntl(EXPECTATIONS_FD, F_GET_SEALS), r;
	struct stat st;
	void *data;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPERM;
	if (fstat(EXPECTATIONS_FD, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > (off_t)EXPECTATIONS_BYTES_MAX)
		return -EBADMSG;
	/* Sealed: it can neither change nor shrink under the mapping. */
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, EXPECTATIONS_FD, 0);
	if (data == MAP_FAILED)
		return -errno;
	r = expectations_decode(data, (size_t)st.st_size, ret);
	(void)munmap(data, (size_t)st.st_size);
	return r;
}

/* Whatever else is open here, an agent in this place would have had. */
static unsigned descriptors_beside(void)
{
	unsigned n = 0;

	for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_LOOKED_AT; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int verify_battery(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	int failed;

	if (e && e->battery == BATTERY_DOCTOR)
		battery_run(b, doctor_table, doctor_count);
	else
		battery_run(b, checks_table, checks_count);
	if (e && e->battery == BATTERY_CHECKS_AND_PROBES)
		probes_run(b);
	failed = battery_failed(b);
	if (failed < 0)
		return VERIFY_EXIT_UNABLE;
	return failed > 0 ? VERIFY_EXIT_FAILED : VERIFY_EXIT_PASSED;
}

int verify_run(void)
{
	_cleanup_(expectations_done) Expectations expectations = { 0 };
	_cleanup_(battery_freep) Battery *b = NULL;
	unsigned leaked;
	bool wanted;
	int r;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return VERIFY_EXIT_UNABLE;
	wanted = rows_are_wanted();
	leaked = descriptors_beside();
	if (close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
		return VERIFY_EXIT_UNABLE;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);

	r = wanted ? expectations_read(&expectations) : 0;
	/* In the agent's place init has done it. Whoever joins a jail has no filter yet, and measures with
	 * the agent's before anything else. */
	if (r == 0 && expectations.joined)
		r = filter_install(expectations.forbid_namespaces);
	if (r < 0)
		return VERIFY_EXIT_UNABLE;
	b = battery_new(wanted ? &expectations : NULL, wanted ? ROWS_FD : FD_NONE);
	if (!b)
		return VERIFY_EXIT_UNABLE;
	battery_set_leaked(b, leaked);
	return verify_battery(b);
}
