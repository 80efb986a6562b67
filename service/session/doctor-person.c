/* SPDX-License-Identifier: MIT */
#include "service/session/doctor.h"

#include "service/plan/agent-find.h"
#include "service/session/view.h"

static const char *variable(const SessionRequest *request, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; request->environment && request->environment[i]; i++)
		if (strncmp(request->environment[i], name, n) == 0 && request->environment[i][n] == '=')
			return request->environment[i] + n + 1;
	return NULL;
}

/* Return: whether agents can be given it. */
static bool look_at_home(Doctor *doctor, const SessionRequest *request, const PlanView *view)
{
	const char *named = variable(request, "HOME");
	_cleanup_free_ char *problem = NULL;
	int r = agent_check_homes(request, view, &problem);

	if (r < 0)
		doctor_say_sentence(doctor, DOCTOR_USER_HOME, ROW_FAIL, problem ?: strerror(-r));
	else if (named && !streq(named, request->home))
		doctor_say(doctor, DOCTOR_USER_HOME, ROW_NOTE, "unset HOME, or let passwd name the right one",
			   "HOME is %s, and passwd says %s, which is what agents are given; both are hidden",
			   named, request->home);
	else
		doctor_say(doctor, DOCTOR_USER_HOME, ROW_PASS, NULL, "%s", request->home);
	return r >= 0;
}

static void look_at_root(Doctor *doctor, const SessionRequest *request)
{
	if (request->uid == 0)
		doctor_say(doctor, DOCTOR_USER_ROOT, ROW_WARN, "start agents as an ordinary user",
			   "this is root: sessions work, but the agents' own sandboxes are off in them");
	else
		doctor_say(doctor, DOCTOR_USER_ROOT, ROW_PASS, NULL, "%s, uid %u", request->user,
			   (unsigned)request->uid);
}

/* Installers put a program into a directory of its version: the last part of the path that is 1.2.3 or
 * name-1.2.3. */
static char *version_in(const char *path, const char *name)
{
	const char *found = NULL;
	size_t n = 0;

	for (const char *p = path; *p; p += strcspn(p, "/")) {
		const char *version;

		p += strspn(p, "/");
		version = starts_with(p, name);
		version = version && *version == '-' ? version + 1 : p;
		if (*version >= '0' && *version <= '9') {
			found = version;
			n = strcspn(version, "/");
		}
	}
	return found ? strndup(found, n) : NULL;
}

/* One that is merely not there is no mistake, unless it was asked for. */
static RowStatus status_of_missing(const SessionRequest *request, const Profile *profile, const char *problem)
{
	_cleanup_free_ char *missing = NULL;

	if (streq(request->agent, profile->name))
		return ROW_FAIL;
	(void)refuse(&missing, 0, BECAUSE(AGENT_MISSING), profile->name, profile->name);
	return missing && problem && streq(missing, problem) ? ROW_NOTE : ROW_WARN;
}

/* Return: whether it is there. */
static bool look_at_agent(Doctor *doctor, const SessionRequest *request, const Profile *profile,
			  const PlanView *view)
{
	_cleanup_free_ char *path = NULL, *problem = NULL, *id = NULL, *version = NULL;
	int r;

	if (asprintf(&id, DOCTOR_AGENT "%s", profile->name) < 0) {
		id = NULL;
		return false;
	}
	r = agent_find(request, profile, view, &path, &problem);
	if (r < 0) {
		doctor_say_sentence(doctor, id, status_of_missing(request, profile, problem),
				    problem ?: strerror(-r));
		return false;
	}
	version = version_in(path, profile->name);
	doctor_say(doctor, id, ROW_PASS, NULL, "%s%s%s", path, version ? ", version " : "", version ?: "");
	return true;
}

static void look_at_directory(Doctor *doctor, SessionRequest *request, const PlanView *view)
{
	_cleanup_free_ char *problem = NULL;
	const char *other;
	int r = agent_check_directory(request, view, &problem);

	if (r >= 0) {
		doctor_say(doctor, DOCTOR_USER_DIRECTORY, ROW_PASS, NULL, "agents may work in %s",
			   request->cwd);
		return;
	}
	/* "/" stands for none that was named. */
	if (streq(request->cwd, "/"))
		doctor_say(doctor, DOCTOR_USER_DIRECTORY, ROW_PASS, NULL, "none was named");
	else
		doctor_say_sentence(doctor, DOCTOR_USER_DIRECTORY, ROW_NOTE, problem ?: strerror(-r));
	other = doctor_make_directory(doctor);
	if (other && (other = strdup(other))) {
		free(request->cwd);
		request->cwd = (char *)other;
	}
}

static void say_nothing_tried(Doctor *doctor)
{
	const Profile *profile;

	doctor_say(doctor, DOCTOR_USER_DIRECTORY, ROW_NOTE, NULL, DOCTOR_NOT_TRIED);
	for (size_t i = 0; (profile = profile_at(i)); i++) {
		_cleanup_free_ char *id = NULL;

		if (profile->system_program)
			continue;
		if (asprintf(&id, DOCTOR_AGENT "%s", profile->name) < 0)
			id = NULL;
		if (id)
			doctor_say(doctor, id, ROW_NOTE, NULL, DOCTOR_NOT_TRIED);
	}
}

void doctor_look_at_person(Doctor *doctor, SessionRequest *request, const char **ret)
{
	View view = { 0 };
	PlanView functions;
	const Profile *profile;

	*ret = NULL;
	look_at_root(doctor, request);
	if (view_init(&view, request->uid, request->home) < 0)
		return;
	functions = view_functions(&view);
	/* The rest would only say the same once more. */
	if (!look_at_home(doctor, request, &functions)) {
		say_nothing_tried(doctor);
		view_done(&view);
		return;
	}
	if (!config_text(&request->config, CONFIG_WORKSPACE_ROOT))
		look_at_directory(doctor, request, &functions);
	for (size_t i = 0; (profile = profile_at(i)); i++)
		if (!profile->system_program && look_at_agent(doctor, request, profile, &functions) && !*ret)
			*ret = profile->name;
	view_done(&view);
}
