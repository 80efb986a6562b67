/* SPDX-License-Identifier: MIT */

/*
 * A session of PURPOSE_DOCTOR is a launch like any other: the same steps in the same order, by the same
 * functions. Here stands what it reports on the way; in every other session there is no doctor, and nothing
 * of this happens. The agent's state is left alone, and what is executed in the jail is not the agent.
 */

#include "service/session/session-state.h"

static void tell(void *userdata, const Row *row)
{
	Session *session = userdata;

	link_server_row(session->link, 0, row);
}

/* Where nobody asked for one in particular, the first that is there. */
static int choose_agent(Session *session, const char *present)
{
	SessionRequest *request = &session->request;
	char *agent;

	if (!present || !session->profile->system_program)
		return 0;
	agent = strdup(present);
	if (!agent)
		return -ENOMEM;
	free(request->agent);
	request->agent = agent;
	session->profile = profile_find(agent);
	return 0;
}

int session_begin_doctor(Session *session)
{
	const char *present = NULL;

	if (session->request.purpose != PURPOSE_DOCTOR)
		return 0;
	session->doctor = doctor_new(tell, session);
	if (!session->doctor)
		return -ENOMEM;
	doctor_passed(session->doctor, DOCTOR_CHAIN_SESSION, "it runs as uid %u",
		      (unsigned)session->request.uid);
	doctor_look_at_person(session->doctor, &session->request, &present);
	doctor_look_at_machine(session->doctor);
	doctor_look_at_device(session->doctor);
	doctor_look_at_programs(session->doctor);
	return choose_agent(session, present);
}

void session_doctor_network(const Session *session)
{
	Doctor *doctor = session->doctor;

	doctor_look_at_network(doctor, &session->network);
	if (session->network.jailed)
		return;
	doctor_say(doctor, DOCTOR_CHAIN_TAP, ROW_NOTE, NULL, "not needed: the network is shared");
	doctor_say(doctor, DOCTOR_CHAIN_ROUTES, ROW_NOTE, NULL, "not needed: the network is shared");
	doctor_say(doctor, DOCTOR_CHAIN_WIRE, ROW_NOTE, NULL, "not needed: the network is shared");
}

void session_doctor_holder(const Session *session, const char *problem)
{
	Doctor *doctor = session->doctor;

	doctor_passed(doctor, DOCTOR_CHAIN_PROGRAMS, "%s%s%s", session->bwrap, session->pasta ? ", " : "",
		      session->pasta ?: "");
	if (problem && !session->holder.entered) {
		doctor_say_sentence(doctor, DOCTOR_KERNEL_USERNS, ROW_FAIL, problem);
		doctor_reach(doctor, DOCTOR_CHAIN_NAMESPACES);
		return;
	}
	doctor_passed(doctor, DOCTOR_KERNEL_USERNS, "this user may make them");
	doctor_passed(doctor, DOCTOR_CHAIN_NAMESPACES, "user%s",
		      session->network.jailed ? " and network" : "");
	if (problem)
		doctor_reach(doctor, DOCTOR_CHAIN_TAP);
	else if (session->network.ledger_problem)
		doctor_say_sentence(doctor, DOCTOR_CHAIN_TAP, ROW_NOTE, session->network.ledger_problem);
	else
		doctor_passed(doctor, DOCTOR_CHAIN_TAP, "jail0 and deny0");
}

void session_doctor_wire(const Session *session, const char *problem)
{
	const char *because = wire_other_way_because(session->wire);
	_cleanup_free_ char *profile = wire_profile(session->wire);
	Doctor *doctor = session->doctor;

	doctor_look_at_apparmor(doctor, profile, problem);
	if (problem)
		doctor_reach(doctor, DOCTOR_CHAIN_WIRE);
	else if (because)
		doctor_say(doctor, DOCTOR_CHAIN_WIRE, ROW_NOTE, NULL,
			   "pasta brought it up, by the holder's process ID (with inherited descriptors: %s)",
			   because);
	else
		doctor_passed(doctor, DOCTOR_CHAIN_WIRE, "pasta brought it up, by inherited descriptors");
}

void session_doctor_proc(const Session *session, int error)
{
	_cleanup_free_ char *sentence = NULL;

	if (error == 0) {
		doctor_passed(session->doctor, DOCTOR_CHAIN_PROC, "it can be mounted");
		return;
	}
	if (config_procfs(&session->request.config) != PROCFS_PRIVATE) {
		doctor_say(session->doctor, DOCTOR_CHAIN_PROC, ROW_NOTE, FIX_PROC_OUTER, CAUSE_PROC_MASKED,
			   strerror(-error));
		return;
	}
	(void)refuse(&sentence, error, BECAUSE(PROC_MASKED), strerror(-error));
	doctor_say_sentence(session->doctor, DOCTOR_CHAIN_PROC, ROW_FAIL, sentence ?: "out of memory");
}

void session_doctor_git(const Session *session)
{
	const GitIdentity *git = &session->preparation.git;
	Doctor *doctor = session->doctor;

	if (git->name && git->email)
		doctor_passed(doctor, DOCTOR_GIT_IDENTITY, "%s <%s>", git->name, git->email);
	else if (!session->git)
		doctor_say(doctor, DOCTOR_GIT_IDENTITY, ROW_NOTE, NULL, "not known: there is no git");
	else if (git->problem)
		doctor_say(doctor, DOCTOR_GIT_IDENTITY, ROW_WARN, "see what holds it up there",
			   "not known: git %s", git->problem);
	else
		doctor_say_sentence(doctor, DOCTOR_GIT_IDENTITY, ROW_WARN, BECAUSE(GIT_IDENTITY_NONE));
}

void session_doctor_plan(const Session *session)
{
	const Plan *plan = &session->plan;
	_cleanup_free_ char *said = NULL;
	size_t n = 0;

	if (!session->doctor)
		return;
	if (plan->guarded)
		doctor_passed(session->doctor, DOCTOR_ENTRY_PLANTED,
			      "directories ahead of /usr/local/bin that agents may write are guarded");
	else
		doctor_passed(session->doctor, DOCTOR_ENTRY_PLANTED,
			      "agents write in no directory ahead of /usr/local/bin");
	for (size_t i = 0; plan->warnings && plan->warnings[i]; i++, n++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", said ?: "", said ? " | " : "", plan->warnings[i]) < 0)
			return;
		free(said);
		said = longer;
	}
	if (n > 0)
		doctor_say(session->doctor, DOCTOR_CHAIN_PLAN, ROW_NOTE, NULL, "%s", said);
	else
		doctor_passed(session->doctor, DOCTOR_CHAIN_PLAN, "%zu entries in %s", plan->n_entries,
			      plan->workspace);
}
