/* SPDX-License-Identifier: MIT */
#pragma once

/* The configuration as it lies on disk: read whole, and only if nobody but root can have written it. */

#include <sys/stat.h>

#include "dbus/base.h"
#include "service/daemon/users.h"
#include "service/plan/config.h"

/*
 * Read and parse path (CS_CONFIG_PATH; another one in tests). A file that is not there means the defaults.
 * Return: 0; -EINVAL with *ret_problem (path, line where there is one, reason and fix) for a file that is not
 * regular, not root's, writable by others, too long, or does not parse; other negative errnos with
 * *ret_problem.
 */
int config_file_read(const char *path, Config *ret, char **ret_problem);

/*
 * The same for whoever follows it: read again only where stat(2) tells of another file or another content.
 * *ret is valid until the next call. Whoever starts something by it reads it anew (config_file_read()).
 */
int config_file_last(const char *path, const Config **ret, char **ret_problem);
/* Likewise its text, whether or not it parses. */
int config_file_last_text(const char *path, const char **ret, size_t *ret_size, char **ret_problem);
/* We have put that text in the place of path: it need not be read. */
void config_file_written(const char *path, const char *text, size_t size);

/*
 * The same for whoever goes by all of it: a deny-group that the name service says is none denies nothing, and
 * is an error of its line. One that cannot be looked up now is none of the file. Return: as above.
 */
int config_file_read_checked(const char *path, Users *users, Config *ret, char **ret_problem);

/*
 * Its text as it is, for whoever changes it: with what stat(2) says of what was read. Return: 0; -ENOENT
 * without *ret_problem for a file that is not there; as above otherwise.
 */
int config_file_open(const char *path, int *ret_fd, struct stat *ret_st, char **ret_text, size_t *ret_size,
		     char **ret_problem);
