/* SPDX-License-Identifier: MIT */
#include "service/session/doctor.h"
#include "service/session/program-output.h"
#include "service/session/program.h"

#define PROGRAM_MSEC 1000

/* What pasta says of itself where whoever built it named no version, as Debian 12's. */
#define NO_VERSION "unknown version"

/* The first line of what a program says of itself, or where it is. */
static void say_version(Doctor *doctor, const char *id, const char *path)
{
	_cleanup_free_ char *text = NULL;

	if (program_output(path, "--version", PROGRAM_MSEC, &text) == 0)
		*strchrnul(text, '\n') = '\0';
	if (text && strstr(text, NO_VERSION))
		doctor_say(doctor, id, ROW_PASS, NULL, "%s (it was built without a version number)", path);
	else if (text && *text)
		doctor_say(doctor, id, ROW_PASS, NULL, "%s, %s", path, text);
	else
		doctor_say(doctor, id, ROW_NOTE, NULL, "%s does not say its version", path);
}

static void look_at(Doctor *doctor, const char *id, const char *name, const char *package, RowStatus missing)
{
	_cleanup_free_ char *path = NULL, *problem = NULL;

	if (program_find(name, package, &path, &problem) < 0)
		doctor_say_sentence(doctor, id, missing, problem ?: "out of memory");
	else
		say_version(doctor, id, path);
}

static void look_at_bwrap(Doctor *doctor)
{
	_cleanup_free_ char *path = NULL, *help = NULL;

	if (program_find("bwrap", "bubblewrap", &path, NULL) == 0 &&
	    program_output(path, "--help", PROGRAM_MSEC, &help) == 0 && strstr(help, "--bind ") &&
	    !strstr(help, "--bind-fd"))
		doctor_say_sentence(doctor, DOCTOR_BWRAP, ROW_FAIL, BECAUSE(BWRAP_OLD));
	else
		look_at(doctor, DOCTOR_BWRAP, "bwrap", "bubblewrap", ROW_FAIL);
}

void doctor_look_at_programs(Doctor *doctor)
{
	look_at_bwrap(doctor);
	look_at(doctor, DOCTOR_PASTA, "pasta", "passt", ROW_FAIL);
	/* Without git there is no identity, and that is all. */
	look_at(doctor, DOCTOR_GIT, "git", "git", ROW_NOTE);
}
