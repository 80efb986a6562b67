/* SPDX-License-Identifier: MIT */
/*
 * ORDER IS SECURITY. Where the caller lives comes first, in an order of its own (caller-place.c). The pidfd is
 * asked last: only then is all of the above about the process that the bus named.
 */
#include "service/daemon/caller.h"

#include "dbus/causes.h"
#include "service/daemon/caller-place.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/proc.h"
#include "service/daemon/selinux.h"
#include "service/link/spawn.h"

#define LOGIN_UID_UNSET "4294967295" /* proc_pid_loginuid(5) */

void caller_facts_done(CallerFacts *facts)
{
	free(facts->oom_score_adj);
	free(facts->selinux);
	free(facts->login_uid);
	free(facts->cgroups);
	free(facts->cgroup);
	*facts = (CallerFacts){ 0 };
}

static int nested(char **ret_problem, const char *cause)
{
	return refuse(ret_problem, -EPERM,
		      "A session is refused: %s. A session would give the caller what it lacks; call from an "
		      "ordinary login shell on this machine.",
		      cause);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && streq(text + n - m, end);
}

/*
 * proc_pid_attr(5): an enforced AppArmor profile, or NULL. Without AppArmor the file is missing, or cannot be
 * read (EINVAL). Return: 0 or a negative errno.
 */
static int apparmor_profile(pid_t pid, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r = proc_read(pid, "attr/apparmor/current", &text);

	*ret = NULL;
	if (r < 0)
		return r == -ENOENT || r == -EINVAL ? 0 : r;
	*strchrnul(text, '\n') = '\0';
	if (ends_with(text, "(enforce)") || ends_with(text, "(kill)"))
		*ret = TAKE_PTR(text);
	return 0;
}

static int check_confinement(pid_t pid, const ProcStatus *theirs, char **ret_problem)
{
	_cleanup_free_ char *their_profile = NULL, *our_profile = NULL;
	ProcStatus ours;
	int r;

	r = proc_status(getpid(), &ours);
	if (r >= 0)
		r = apparmor_profile(pid, &their_profile);
	if (r >= 0)
		r = apparmor_profile(getpid(), &our_profile);
	if (r < 0)
		return r;
	if (theirs->no_new_privs && !ours.no_new_privs)
		return nested(ret_problem, "the caller has no_new_privs set");
	/* In a container we have a filter ourselves; one more is the caller's own. */
	if ((theirs->seccomp != 0 && ours.seccomp == 0) || theirs->seccomp_filters > ours.seccomp_filters)
		return nested(ret_problem, "the caller runs under a seccomp filter");
	/* Only root's session keeps capabilities. */
	if (theirs->uid == 0 && (ours.capabilities & ~(theirs->capabilities & theirs->bounding_set)) != 0)
		return nested(ret_problem, "the caller is root without all of root's capabilities");
	if (their_profile && (!our_profile || !streq(their_profile, our_profile)))
		return nested(ret_problem, "the caller is confined by an AppArmor profile");
	return 0;
}

static int check_place(pid_t pid, char **ret_problem)
{
	const char *cause = NULL;
	int r = caller_place_check(pid, &cause);

	if (r == -ESRCH)
		return nested(ret_problem, "the calling process has ended");
	return r == 0 ? nested(ret_problem, cause) : r;
}

static int read_line(pid_t pid, const char *name, char **ret)
{
	int r;

	r = proc_read(pid, name, ret);
	if (r >= 0)
		*strchrnul(*ret, '\n') = '\0';
	return r;
}

static int read_inherited(pid_t pid, CallerFacts *facts)
{
	int r;

	r = read_line(pid, "oom_score_adj", &facts->oom_score_adj);
	if (r < 0)
		return r;
	r = selinux_of_caller(pid, &facts->selinux);
	if (r < 0)
		return r;
	/* A kernel without CONFIG_AUDITSYSCALL has none. */
	r = read_line(pid, "loginuid", &facts->login_uid);
	if (r == -ENOMEM || r == -ESRCH)
		return r;
	if (facts->login_uid && streq(facts->login_uid, LOGIN_UID_UNSET)) {
		free(facts->login_uid);
		facts->login_uid = NULL;
	}

	r = proc_read(pid, "cgroup", &facts->cgroups);
	if (r == -ENOMEM || r == -ESRCH)
		return r;
	/* Staying below it narrows; a session that is none of its caller's gains nothing by another one. */
	facts->cgroup = facts->cgroups ? cgroup_find_own(facts->cgroups) : NULL;
	inherited_read(pid, &facts->inherited);
	return proc_limits(pid, facts->limits);
}

int caller_read(const Client *client, CallerFacts *ret, char **ret_problem)
{
	_cleanup_(caller_facts_done) CallerFacts facts = { 0 };
	ProcStatus status;
	ProcStat stat;
	int r;

	if (client->problem)
		return nested(ret_problem, client->problem);
	r = check_place(client->pid, ret_problem);
	if (r >= 0)
		r = proc_status(client->pid, &status);
	if (r >= 0)
		r = check_confinement(client->pid, &status, ret_problem);
	if (r >= 0)
		r = proc_stat(client->pid, &stat);
	if (r >= 0)
		r = read_inherited(client->pid, &facts);
	if (!pidfd_alive(client->pidfd))
		return nested(ret_problem, "the calling process has ended");
	/* A cause that was found above stands; the rest is about the service, not about the caller. */
	if (r < 0 && r != -ENOMEM && !*ret_problem)
		return refuse(
			ret_problem, r == -EPERM ? -EACCES : r,
			"The service cannot read its caller's process in /proc: %s. Mount /proc without "
			"hidepid for root; else try again.",
			strerror(-r));
	if (r < 0)
		return r;
	if (status.uid != client->uid)
		return nested(ret_problem, "the calling process has changed its user since it connected");

	facts.gid = status.gid;
	facts.umask = status.umask;
	facts.bounding_set = status.bounding_set;
	facts.ignored_signals = status.ignored_signals;
	facts.terminal = stat.terminal;
	*ret = facts;
	facts = (CallerFacts){ 0 };
	return 0;
}

/*
 * What the parts of a session need. What it raises for itself as far as it may is judged by the hard limit.
 * Measured with pasta of Debian 12: it crashes with a stack of 2 MiB, and needs 68 MiB of data and 74 MiB of
 * address space. Files are those in memory that carry arguments and environment (2 MiB), and the agent's
 * state.
 */
int caller_check_limits(const struct rlimit limits[static RLIM_NLIMITS], char **ret_problem)
{
	static const struct {
		__rlimit_resource_t resource;
		bool raised;
		rlim_t needed, unit;
		const char *what, *unit_text, *option;
	} wanted[] = {
		{ RLIMIT_NOFILE, true, SPAWN_FILES_NEEDED, 1, "open files", "", "-Hn" },
		{ RLIMIT_FSIZE, false, 4 << 20, 1 << 10, "file sizes", " KiB", "-f" },
		{ RLIMIT_STACK, true, 4 << 20, 1 << 10, "the stack", " KiB", "-Hs" },
		{ RLIMIT_DATA, true, 72 << 20, 1 << 10, "a program's data", " KiB", "-Hd" },
		{ RLIMIT_AS, true, 80 << 20, 1 << 10, "a program's memory", " KiB", "-Hv" },
	};

	for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
		const struct rlimit *limit = &limits[wanted[i].resource];
		rlim_t value = wanted[i].raised ? limit->rlim_max : limit->rlim_cur;

		if (value < wanted[i].needed)
			return refuse(ret_problem, -ENOBUFS, BECAUSE(LIMIT_LOW), wanted[i].what,
				      (unsigned long long)(value / wanted[i].unit), wanted[i].unit_text,
				      (unsigned long long)(wanted[i].needed / wanted[i].unit),
				      wanted[i].unit_text, wanted[i].option);
	}
	return 0;
}
