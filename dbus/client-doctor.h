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
 * Who has the service's name, as the bus knows it: a query that starts nothing. Return: 1 with *ret_uid and
 * *ret_pid (0: not known); 0 when nobody has it; a negative errno with *reterr.
 */
int client_get_owner(sd_bus *bus, uint32_t *ret_uid, uint32_t *ret_pid, sd_bus_error *reterr);

/*
 * Of a call that failed: the row of dbus/doctor.h that stands for it. The sentence is client_sentence()'s.
 * Return: the id, static.
 */
const char *client_doctor_row(int error, const sd_bus_error *e);
