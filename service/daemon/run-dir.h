/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The service's places below /run and /var/tmp. Every one is made or checked through descriptors, links are
 * never followed, and a directory that somebody else made is refused, never repaired.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/daemon/record.h"
#include "service/plan/config.h"

/* The names of the socket, the record and the control group's name in a session's directory. */
#define RUN_DIR_LINK "link"
#define RUN_DIR_RECORD "record"
#define RUN_DIR_POLICY "policy"
#define RUN_DIR_GROUP "group" /* a link: made at once with what it says */

/*
 * Make CS_RUN_DIR (0755), CS_SESSIONS_DIR (0711) and CS_RUN_DIR/users (0711), root's. Return: 1 when no service
 * has run since the machine's start; 0; a negative errno with *ret_problem.
 */
int run_dir_prepare(char **ret_problem);
/*
 * Open what a user's sessions lock, CS_RUN_DIR/users/UID/guard (while they live) and state (while they write
 * the agent's state), made where they are missing. They are root's (0600, in directories of root's): nobody
 * else can hold their locks, and nobody can fill /run through them, since flock(2) works on the read-only
 * descriptors that this returns. Return: 0, or a negative errno with *ret_problem.
 */
int run_dir_open_locks(uid_t uid, int *ret_guard_fd, int *ret_state_fd, char **ret_problem);
/*
 * Make CS_TEMP_ROOT (root's, 0711) and UID below it (the user's, 0700). Return: 0; -EPERM with *ret_problem
 * where something of another owner, or a link, is in the way.
 */
int run_dir_make_temp(uid_t uid, gid_t gid, char **ret_problem);

/*
 * Open CS_LOG_DIR (root's, 0700), made where it is missing if make is set. Return: its descriptor; -ENOENT
 * where it is missing; -EPERM and other negative errnos with *ret_problem, which may be NULL.
 */
int run_dir_open_log(bool make, char **ret_problem);

/* Make the directory of a session (root's, 0711). Return: 0, or -EEXIST and other negative errnos. */
int run_dir_make_session(const char *id);
/*
 * Bind a SOCK_SEQPACKET socket (root's, 0600) in it, by an address without the id; nobody listens yet.
 * Return: its descriptor, or a negative errno.
 */
int run_dir_bind_link(const char *id);
/* Connect to it without waiting. Return: a descriptor; -ECONNREFUSED when nobody listens; -ENOENT; others. */
int run_dir_connect_link(const char *id);
/* Write down the path of its control group, in the place of another one. Return: 0 or a negative errno. */
int run_dir_write_group(const char *id, const char *path);
/* Return: 0 with *ret to be freed, -ENOENT for a session without one, -EBADMSG for what is no session's
 * group, other negative errnos. */
int run_dir_read_group(const char *id, char **ret);
/* Write the record, whole or not at all. Return: 0 or a negative errno. */
int run_dir_write_record(const char *id, const Record *record);
/*
 * Read a record that only root can have written. Return: 0; -ENOENT; -EBADMSG for a record or a directory
 * that are not ours; other negative errnos.
 */
int run_dir_read_record(const char *id, Record *ret);
/* The same for the configuration that it was started with. */
int run_dir_write_policy(const char *id, const Config *config);
int run_dir_read_policy(const char *id, Config *ret);
/* Remove the directory of a session and the files that we made in it. Return: 0 or a negative errno. */
int run_dir_remove_session(const char *id);

/* Call each with every valid id in CS_SESSIONS_DIR. Return: 0 or a negative errno. */
int run_dir_each_session(void (*each)(void *userdata, const char *id), void *userdata);
