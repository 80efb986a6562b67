/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Doctor's rows: ids, which never change, and their titles. Who can see a fault reports it: the command what
 * no service is needed for, the service what is root's, a session what is the caller's.
 */

#include "dbus/base.h"

#define DOCTOR_ENTRY_PATH "entry.path"
#define DOCTOR_ENTRY_OURS "entry.ours"
#define DOCTOR_ENTRY_PLANTED "entry.planted"
#define DOCTOR_BUS "service.bus"
#define DOCTOR_POLICY "service.policy"
#define DOCTOR_ACTIVATION "service.activation"
#define DOCTOR_NAME "service.name"
#define DOCTOR_FILES_OWNER "files.owner"
#define DOCTOR_CONFIG_FILE "config.file"
#define DOCTOR_CONFIG_OWNER "config.owner"
#define DOCTOR_CONFIG_WARNINGS "config.warnings"
#define DOCTOR_CONFIG_ENVIRONMENT "config.environment"
#define DOCTOR_RUN_STALE "run.stale"
#define DOCTOR_POLKIT_ALIVE "polkit.alive"
#define DOCTOR_POLKIT_ACTIONS "polkit.actions"
#define DOCTOR_POLKIT_LAUNCH "polkit.launch"
#define DOCTOR_CGROUP "cgroup.controllers"
#define DOCTOR_USER_CALLER "user.caller"
#define DOCTOR_USER_GROUPS "user.groups"
#define DOCTOR_USER_ROOT "user.root"
#define DOCTOR_USER_HOME "user.home"
#define DOCTOR_USER_DIRECTORY "user.directory"
#define DOCTOR_KERNEL_VERSION "kernel.version"
#define DOCTOR_KERNEL_SECCOMP "kernel.seccomp"
#define DOCTOR_KERNEL_APPARMOR "kernel.apparmor"
#define DOCTOR_KERNEL_USERNS "kernel.userns"
#define DOCTOR_CONTAINER "machine.container"
#define DOCTOR_WSL "machine.wsl"
#define DOCTOR_BWRAP "program.bwrap"
#define DOCTOR_PASTA "program.pasta"
#define DOCTOR_GIT "program.git"
#define DOCTOR_TUN "device.tun"
#define DOCTOR_AGENT "agent." /* and the agent's name */
#define DOCTOR_UPLINK "network.uplink"
#define DOCTOR_FORWARDER "network.forwarder"
#define DOCTOR_RESOLVER "dns.resolver"
#define DOCTOR_ANSWERS "dns.answers"
#define DOCTOR_GIT_IDENTITY "git.identity"
#define DOCTOR_CHAIN_SESSION "chain.session"
#define DOCTOR_CHAIN_PROGRAMS "chain.programs"
#define DOCTOR_CHAIN_NAMESPACES "chain.namespaces"
#define DOCTOR_CHAIN_TAP "chain.tap"
#define DOCTOR_CHAIN_ROUTES "chain.routes"
#define DOCTOR_CHAIN_PROC "chain.proc"
#define DOCTOR_CHAIN_WIRE "chain.wire"
#define DOCTOR_CHAIN_PLAN "chain.plan"
#define DOCTOR_CHAIN_MOUNTS "chain.mounts"
#define DOCTOR_CHAIN_AGENT "chain.agent"
#define DOCTOR_CHAIN_END "chain.end"

/* For lists, in the order in which a person reads them: index from 0. Return: the id, NULL at the end. */
const char *doctor_id_at(size_t index);
/* Return: the title of a row, NULL for an id that is none. */
const char *doctor_title(const char *id);

/* What a row says that stands behind one that failed. */
#define DOCTOR_NOT_TRIED "not tried"
