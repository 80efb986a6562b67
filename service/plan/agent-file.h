/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the first bytes of a program tell: whether it is our own entry, wherever a copy of it lies, and which
 * program starts it when it is a script. The bytes are a stranger's.
 */

#include "dbus/base.h"

/* So much of a program is looked at. A "#!" line of Linux is shorter than 256 bytes (execve(2)). */
#define AGENT_HEAD_BYTES (16u * 1024)

/* Is this an ELF program with the note of our entry (CS_ENTRY_NOTE)? */
bool agent_file_is_entry(const void *head, size_t size) _pure_;

typedef struct AgentScript {
	char *interpreter; /* as it is spelled; NULL when env(1) looks it up */
	char *command;     /* what env(1) looks up on PATH, or NULL */
} AgentScript;

void agent_script_done(AgentScript *script);

/*
 * Take the "#!" line apart. Return: 1 with *ret; 0 when it is no script; -ENOEXEC for a line that the kernel
 * would not take or that env(1) is given nothing to start by; -ENOMEM.
 */
int agent_script_parse(const char *head, size_t size, AgentScript *ret);

/* Is it a script of a shell that names one of our entries outside a comment: one that would start itself? */
bool agent_script_starts_entry(const AgentScript *script, const char *head, size_t size);

/*
 * The directory that belongs to the program at a canonical path, when a package manager of JavaScript put it
 * there: PREFIX/lib/node_modules/PACKAGE for one that is installed for all projects, else the outermost
 * node_modules, since there packages share what they need. Return: 0 with *ret to be freed, or NULL when
 * there is none; -ENOMEM.
 */
int agent_package(const char *program, char **ret);

/* The node that such a program was installed with, PREFIX/bin/node; as agent_package(). */
int agent_package_node(const char *program, char **ret);

/* A script that starts the JavaScript program with that node. Return: 0; -ENAMETOOLONG; -ENOMEM. */
int agent_starter(const char *node, const char *program, char **ret);
