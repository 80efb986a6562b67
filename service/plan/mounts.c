/* SPDX-License-Identifier: MIT */

/* clang-format off */
/*
 * THE ORDER. bwrap performs the entries one after the other, and the last one that reaches a path decides
 * what is seen there. So this order is policy:
 *
 *  1  "/" read-only             everything else is said in terms of it
 *  2  /dev, /dev/console        fresh; the terminal of the session and no other
 *  3  /proc                     private where it can be had, else the outer one read-only
 *  4  /tmp                      private
 *     /media, /mnt              private: other disks, other machines
 *  5  /run, /var/run            private, before anything is put back below them; what tells names of users; the
 *                               marker; then the sockets
 *                               and FIFOs that are still in sight, since read-only stops neither
 *                               in sessions of root, what of /etc and /var others cannot read is covered: before
 *                               12 and 14, which may show some of it
 *  6  the homes                 private: from here on nothing of a home is seen that no later entry names;
 *                               the person's credential stores that links lead out of the home are covered too
 *  7  the agent's state         ... after 6, which it reaches through; what is of one project alone first, then
 *                               in it what all sessions share, what nobody shares, and the transcripts
 *  8  what every agent is given of a home
 *  9  parts of .local/share      ... and their masks, which follow what they cover
 * 10  tools                     of the home, read-only; then their caches; then what may hold a secret among them
 * 11  the agent                 read-only, after 8 and 9: it may lie below a mask of theirs; then the programs
 *                               that its settings name (mounts-named.c)
 * 12  the workspace             after the homes, in which it mostly lies; its git directories
 * 13  the temp root             hidden as a whole, then this workspace's own part
 * 14  allow-read, allow-write   after every mask that an administrator may want to reach through; then the
 *                               sockets that 7 to 13 have brought back into sight
 * 15  dotfiles, system secrets  after 14: no configuration opens these; then what the configuration hides
 * 16  resolv.conf               after 5 and 14, below which its canonical place may lie
 * 17  /etc/claude-gitconfig     after 14
 * 18  the entry-point guard     last, since it covers names in everything writable. The directories that it
 *                               keeps in place stand right after the bind that each lies in: the mounts below
 *                               them follow, and stay
 *
 * Afterwards what came out is checked: nothing writable covers the agent.
 */
/* clang-format on */

#include "service/plan/mounts.h"

#include "service/plan/environment.h"
#include "service/plan/plan-build.h"

static int make_entries(PlanBuild *build)
{
	int r;

	/* Cheap and telling refusals first: they need the homes and the agent, and no entry. */
	if ((r = build_find_homes(build)) < 0 || (r = build_check_workspace(build)) < 0 ||
	    (r = build_find_stores(build)) < 0 || (r = build_find_agent(build)) < 0)
		return r;

	if ((r = build_root(build)) < 0 || (r = build_run(build)) < 0 || (r = build_names(build)) < 0 ||
	    (r = build_system_private(build)) < 0 || (r = build_marker(build)) < 0 ||
	    (r = build_sockets(build)) < 0)
		return r;
	if ((r = build_homes(build)) < 0 || (r = build_state(build)) < 0 || (r = build_shared(build)) < 0 ||
	    (r = build_share(build)) < 0 || (r = build_tools(build)) < 0 ||
	    (r = build_certificates(build)) < 0 || (r = build_agent(build)) < 0 ||
	    (r = build_named(build)) < 0)
		return r;
	if ((r = build_workspace(build)) < 0 || (r = build_temp_root(build)) < 0 ||
	    (r = build_allow_read(build)) < 0 || (r = build_allow_write(build)) < 0 ||
	    (r = build_bound_sockets(build)) < 0)
		return r;
	if ((r = build_dotfiles(build)) < 0 || (r = build_secrets(build)) < 0 ||
	    (r = build_hide(build)) < 0 || (r = build_resolver(build)) < 0 ||
	    (r = build_git_config(build)) < 0)
		return r;

	if ((r = build_entry_guard(build)) < 0 || (r = build_check_allow_write(build)) < 0 ||
	    (r = build_check_links(build)) < 0)
		return r;
	if ((r = build_check_agent(build)) < 0)
		return r;
	return build_descriptors(build);
}

int plan_make(const SessionRequest *request, const Profile *profile, const PlanFacts *facts,
	      const PlanView *view, Plan *ret, const char **ret_error, char **ret_problem)
{
	_cleanup_(plan_done) Plan plan = { 0 };
	PlanBuild build = {
		.request = request,
		.profile = profile,
		.facts = facts,
		.view = view,
		.plan = &plan,
		.agent = { .program = PLAN_NODE_INIT },
		.workspace = PLAN_NODE_INIT,
	};

	plan.jailed = config_flag(&request->config, CONFIG_EGRESS_JAIL);

	int r = make_entries(&build);
	if (r >= 0)
		r = environment_make(&plan, request, profile, facts, view);
	if (r >= 0) {
		plan.argv = profile_arguments(profile, plan.program, request->argv);
		if (!plan.argv)
			r = -ENOMEM;
	}
	if (r == -E2BIG && plan.guarded)
		r = build_refuse(
			&build, CS_ERROR_PLAN_REFUSED,
			"the plan has more than %u mounts: put /usr/local/bin before the directories on PATH "
			"that agents may write, or take allow-write lines out of the configuration",
			PLAN_MOUNTS_MAX);
	else if (r == -E2BIG)
		r = build_refuse(&build, CS_ERROR_PLAN_REFUSED,
				 "the plan has more than %u mounts: take allow-write lines out of the "
				 "configuration, or end "
				 "programs that listen on many sockets",
				 PLAN_MOUNTS_MAX);
	else if (r < 0 && !build.problem)
		(void)build_refuse(&build, CS_ERROR_PLAN_REFUSED, "the plan could not be made: %s",
				   strerror(-r));

	plan_node_done(&build.workspace);
	stores_free(build.stores);
	build_allowed_done(&build);
	plan_agent_done(&build.agent);
	free(build.home);
	strings_free(build.homes);
	if (r < 0) {
		if (ret_error)
			*ret_error = build.error ?: CS_ERROR_PLAN_REFUSED;
		if (ret_problem) {
			free(*ret_problem);
			*ret_problem = TAKE_PTR(build.problem);
		}
		free(build.problem);
		return r;
	}
	free(build.problem);
	*ret = plan;
	plan = (Plan){ 0 };
	return 0;
}
