/* SPDX-License-Identifier: MIT */
#include "service/session/doctor.h"

#include <stdarg.h>

#include "service/link/pack.h"

/* In the order in which a start takes them. */
static const char *const chain[] = {
	DOCTOR_CHAIN_PROGRAMS, DOCTOR_CHAIN_NAMESPACES, DOCTOR_CHAIN_TAP,    DOCTOR_CHAIN_ROUTES,
	DOCTOR_CHAIN_PROC,     DOCTOR_CHAIN_PLAN,       DOCTOR_CHAIN_MOUNTS, DOCTOR_CHAIN_WIRE,
	DOCTOR_CHAIN_AGENT,    DOCTOR_ANSWERS,
};

struct Doctor {
	DoctorTell tell;
	void *userdata;
	char **said; /* ids */
	const char *step;
	bool failed;
	char *directory;
	bool resolver_failed;
};

Doctor *doctor_new(DoctorTell tell, void *userdata)
{
	Doctor *doctor = malloc(sizeof(*doctor));

	if (doctor)
		*doctor = (Doctor){ .tell = tell, .userdata = userdata, .step = chain[0] };
	return doctor;
}

Doctor *doctor_free(Doctor *doctor)
{
	if (!doctor)
		return NULL;
	strings_free(doctor->said);
	if (doctor->directory)
		(void)rmdir(doctor->directory);
	free(doctor->directory);
	free(doctor);
	return NULL;
}

bool doctor_has_said(const Doctor *doctor, const char *id)
{
	for (size_t i = 0; doctor && doctor->said && doctor->said[i]; i++)
		if (streq(doctor->said[i], id))
			return true;
	return false;
}

static void say(Doctor *doctor, const char *id, RowStatus status, const char *detail, const char *fix)
{
	Row row = { 0 };

	if (doctor_has_said(doctor, id) || strings_append(&doctor->said, id) < 0 ||
	    row_make(id, status, doctor_title(id) ?: id, detail, fix, &row) < 0)
		return;
	if (status != ROW_PASS && streq(id, DOCTOR_RESOLVER))
		doctor->resolver_failed = true;
	doctor->tell(doctor->userdata, &row);
	row_done(&row);
}

void doctor_say(Doctor *doctor, const char *id, RowStatus status, const char *fix, const char *format, ...)
{
	_cleanup_free_ char *detail = NULL;
	va_list arguments;

	if (!doctor)
		return;
	va_start(arguments, format);
	if (vasprintf(&detail, format, arguments) < 0)
		detail = NULL;
	va_end(arguments);
	say(doctor, id, status, detail, fix);
}

void doctor_take(Doctor *doctor, const Row *row)
{
	bool bare = row->status == ROW_FAIL && !*row->fix;

	/* One cause has one row that fails. */
	if (row->status == ROW_FAIL && streq(row->id, DOCTOR_ANSWERS) && doctor->resolver_failed) {
		doctor_say(doctor, DOCTOR_ANSWERS, ROW_NOTE, NULL,
			   "none, as the host gets none (dns.resolver)");
		return;
	}
	say(doctor, row->id, row->status, row->detail,
	    bare && streq(row->id, DOCTOR_ANSWERS) ? FIX_ANSWERS_NONE : row->fix);
}

void doctor_say_sentence(Doctor *doctor, const char *id, RowStatus status, const char *sentence)
{
	_cleanup_free_ char *cause = NULL, *fix = NULL;

	if (doctor && cause_split(sentence, &cause, &fix) == 0)
		say(doctor, id, status, cause, fix);
}

const char *doctor_make_directory(Doctor *doctor)
{
	char template[] = "/tmp/claude-sandbox-doctor.XXXXXX";

	if (!doctor->directory && mkdtemp(template))
		doctor->directory = strdup(template);
	return doctor->directory;
}

void doctor_reach(Doctor *doctor, const char *id)
{
	if (doctor)
		doctor->step = id;
}

void doctor_failed(Doctor *doctor, const char *sentence)
{
	if (!doctor || doctor->failed)
		return;
	doctor->failed = true;
	doctor_say_sentence(doctor, doctor->step, ROW_FAIL, sentence);
	doctor_finish(doctor);
}

void doctor_finish(Doctor *doctor)
{
	doctor_look_at_apparmor(doctor, NULL, NULL);
	for (size_t i = 0; doctor && i < ELEMENTSOF(chain); i++)
		doctor_say(doctor, chain[i], ROW_NOTE, NULL, DOCTOR_NOT_TRIED);
}
