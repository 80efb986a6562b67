/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The directory below ~/.config where a forge's tool keeps its logins. Agents write there: what is found is
 * hostile. No link is followed, nothing is read but a plain file of the person's own, and a file is replaced
 * as a whole.
 */

#include "dbus/base.h"

#define FORGE_FILE_MOST ((size_t)1024 * 1024)

/* Bytes that hold secrets: wiped when they are freed. */
typedef struct ForgeText {
	char *bytes;
	size_t n;
} ForgeText;

void forge_text_done(ForgeText *text);

/*
 * Open home/.config/name; what is not there is made, mode 0700 (*ret_made tells).
 * Return: 0; -ELOOP (a link), -EPERM (another's, or others may write there), another errno, all with *reterr.
 */
int forge_store_open(const char *home, const char *name, int *ret_fd, bool *ret_made, char **reterr);

/* Read file there. what: how to call it in a sentence. Return: 0, empty when it is not there; -ELOOP, -EPERM,
 * -E2BIG, another errno, all with *reterr. */
int forge_store_read(int directory_fd, const char *file, const char *what, ForgeText *ret, char **reterr);

/* Write it as a whole, mode 0600, or leave what is there. Return: 0 or an errno with *reterr. */
int forge_store_write(int directory_fd, const char *file, const char *what, const ForgeText *text,
		      char **reterr);
