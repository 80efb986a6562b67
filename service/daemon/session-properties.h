/* SPDX-License-Identifier: MIT */
#pragma once

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "service/daemon/registry.h"

/* Names of the properties of a session (CS_SESSION_INTERFACE), each written once. */
#define SESSION_PROPERTY_ID "Id"
#define SESSION_PROPERTY_AGENT "Agent"
#define SESSION_PROPERTY_USER "User"
#define SESSION_PROPERTY_UID "Uid"
#define SESSION_PROPERTY_WORKSPACE "Workspace"
#define SESSION_PROPERTY_STARTED "Started"
#define SESSION_PROPERTY_STATE "State"
#define SESSION_PROPERTY_LEADER "Leader"
#define SESSION_PROPERTY_JAILED "Jailed"
#define SESSION_PROPERTY_WARNINGS "Warnings"
#define SESSION_PROPERTY_POSTURE "Posture"
#define SESSION_PROPERTY_EXIT_STATUS "ExitStatus"

/* Of one text from a session, in bytes. */
#define SESSION_TEXT_MAX 1024u

/*
 * Append the value of a property, from what is kept. Return: >= 0, or -ENOENT for a name that is none and
 * other negative errnos.
 */
int session_append_property(const Session *session, const char *name, sd_bus_message *m);
/* Return: the type of a property, or NULL for a name that is none. */
const char *session_property_type(const char *name);
