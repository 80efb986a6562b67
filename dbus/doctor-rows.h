/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Doctor's rows of a client's own: what needs no service. The ids, titles and sentences are those that the
 * service has.
 */

#include "dbus/client.h"

#define DOCTOR_COLUMNS 5u /* id, status, title, detail, fix */

/* A table that grows. Return: 0 with the new row at the end of rows; -EEXIST for an id that is there;
 * -ENOMEM. */
int doctor_rows_add(ClientTable *rows, const char *id, const char *status, const char *detail,
		    const char *fix);
/* The same, of a sentence "cause; fix". */
int doctor_rows_add_sentence(ClientTable *rows, const char *id, const char *status, const char *sentence);
/* A row of the service's, if there is none of that id. Return: as above. */
int doctor_rows_take(ClientTable *rows, char *const cells[static DOCTOR_COLUMNS]);

/* What an agent's name starts, by the PATH of who asks. Return: 0 or -ENOMEM. */
int doctor_rows_path(ClientTable *rows, char *const *environment);

/* What is installed, for when no service tells it. Return: 0 or -ENOMEM. */
int doctor_rows_installed(ClientTable *rows);
