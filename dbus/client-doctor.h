/* SPDX-License-Identifier: MIT */
#pragma once

/* Doctor, for clients that wait and for those with a loop of their own; rows come as client-verify.h reads
 * them. */

#include "dbus/client.h"

/* Strings are borrowed. */
typedef struct ClientDoctor {
	const char *agent;        /* NULL: the first that is installed */
	char *const *environment; /* NULL: none is said */
	const char *directory;    /* absolute; NULL: none is said */
	const char *call;         /* the option call: rows come as signals; NULL: in the answer alone */
	bool interactive;         /* a person is there to answer polkit's dialog */
} ClientDoctor;

/* The message, to be sent and freed. Return: 0 or a negative errno. */
int client_doctor_message(sd_bus *bus, const ClientDoctor *doctor, sd_bus_message **ret);
/* The answer: a table of id, status, title, detail, fix. Return: 0, -EBADMSG, -ENOMEM. */
int client_read_doctor(sd_bus_message *reply, ClientTable *ret);

/*
 * Is whoever has the service's name the service, as far as the bus of this machine and /proc tell everybody,
 * and does it answer within seconds? Starts nothing. Return: 0, also when nobody has it or it cannot be
 * known; -EADDRINUSE (another has it) or -ETIMEDOUT, both with *ret_problem.
 */
int client_check_owner(sd_bus *bus, char **ret_problem);

/* client_sentence(), where it may be another than the service that answered. bus: NULL if there was none. */
char *client_sentence_from(sd_bus *bus, int error, const sd_bus_error *e);

/*
 * Of a call that failed: the row of dbus/doctor.h that stands for it. The sentence is client_sentence()'s.
 * Return: the id, static.
 */
const char *client_doctor_row(int error, const sd_bus_error *e);
