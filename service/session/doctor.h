/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Doctor in a session: the steps of a real start, each reported as it passes, and what can be found out about
 * this machine as the caller. Nothing here changes how a session starts; the sentences are those with which a
 * launch is refused.
 *
 * Every function does nothing for a doctor that is NULL, which is the session of an agent.
 */

#include "dbus/causes.h"
#include "dbus/doctor.h"
#include "service/link/rows.h"
#include "service/plan/request.h"
#include "service/session/network.h"

typedef struct Doctor Doctor;

/* row is borrowed by tell. Return: NULL without memory. */
typedef void (*DoctorTell)(void *userdata, const Row *row);
Doctor *doctor_new(DoctorTell tell, void *userdata);
Doctor *doctor_free(Doctor *doctor);
DEFINE_CLEANUP(Doctor, doctor_free)

/* One row. fix: what helps, or NULL. A row that was said is not said again. */
_printf_(5, 6) void doctor_say(Doctor *doctor, const char *id, RowStatus status, const char *fix,
			       const char *format, ...);
/* One row from a sentence "cause; fix". */
void doctor_say_sentence(Doctor *doctor, const char *id, RowStatus status, const char *sentence);
/* A row that the program in the jail found. */
void doctor_take(Doctor *doctor, const Row *row);
bool doctor_has_said(const Doctor *doctor, const char *id);

/* Make an empty directory, which goes with the doctor. Return: its path, borrowed, or NULL. */
const char *doctor_make_directory(Doctor *doctor);

/* The start has come to this step: one of DOCTOR_CHAIN_. It is told by what follows. */
void doctor_reach(Doctor *doctor, const char *id);
/* A step went well. */
#define doctor_passed(doctor, id, ...) doctor_say(doctor, id, ROW_PASS, NULL, __VA_ARGS__)
/* The start ends at the step that was reached, for that cause; what lies behind it was not tried. */
void doctor_failed(Doctor *doctor, const char *sentence);
/* Whatever was not said by now was not tried. */
void doctor_finish(Doctor *doctor);

/* doctor-machine.c: kernel and container. */
void doctor_look_at_machine(Doctor *doctor);
/*
 * What AppArmor does to the session and to pasta, which has a profile in its own package. profile: pasta's, or NULL;
 * problem: why it brought no wire, or NULL.
 */
void doctor_look_at_apparmor(Doctor *doctor, const char *profile, const char *problem);
void doctor_look_at_device(Doctor *doctor);
/*
 * doctor-person.c: who calls, where, and the agents. *ret: the first agent that is there, or NULL; static.
 * Where no agent may work in the directory of the request, it is replaced by an empty one of the doctor's.
 */
void doctor_look_at_person(Doctor *doctor, SessionRequest *request, const char **ret);
/* doctor-program.c */
void doctor_look_at_programs(Doctor *doctor);
/* doctor-network.c: the host's network, once it was read, and its name server, which is asked. */
void doctor_look_at_network(Doctor *doctor, const Network *network);
