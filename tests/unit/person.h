/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A person at a terminal of ours, with a shell that has launch as its one job, in a world of its own: a mount
 * namespace with a bus at the real path and launch-stand-in in the place of service and session. The agent is
 * a shell under the real init.
 */

#include <sys/types.h>
#include <termios.h>

#include "dbus/names.h"
#include "tests/unit/jail-fixture.h"

/* A person at a terminal, or a script with pipes. */
typedef struct Person {
	int terminal_fd; /* master of the outer terminal */
	int slave_fd;    /* kept, to see its modes */
	int in_fd, out_fd, err_fd;
	pid_t pid;      /* launch; leader of a group in the foreground */
	pid_t shell;    /* session leader, its parent, as a shell would be */
	int control_fd; /* what launch's end and stops are told on: int status */
	int command_fd; /* to the shell: 'f' foreground, 'b' background */
	struct termios modes;
} Person;

typedef enum Keys {
	KEY_IN_PIPE = 1,
	KEY_OUT_PIPE = 2,
	KEY_ERR_PIPE = 4,
	KEY_PIPES = 7,
	KEY_BACKGROUND = 8,
	KEY_NO_TERMINAL = 16,
	KEY_IN_DIRECTORY = 32,
	KEY_IN_CLOSED = 64,
} Keys;

/* cmocka's group fixtures. */
int world_make(void **state);
int world_end(void **state);

/* Start `claude ARGUMENTS`; keys: which of 0, 1, 2 are not the terminal. */
void person_start(Person *person, unsigned keys, const char *const *arguments);
void person_end(Person *person);
/* What the shell's wait(2) says next. Fails the test after DEADLINE_MSEC, as all of these. */
int person_status(Person *person);
void person_type(Person *person, const char *text);

void expect_exit(Person *person, int code);
void expect_death(Person *person, int number);
void expect_stop(Person *person, int number);
void expect_modes_restored(const Person *person);
/* What the stand-in says. */
void expect_told(const char *what);
bool is_raw(const Person *person);
/* All that waits on fd now, without blocking; to be freed. */
char *read_waiting(int fd);

#define START(keys, ...) person_start(&person, keys, (const char *const[]){ __VA_ARGS__, NULL })
