/* SPDX-License-Identifier: MIT */
#pragma once

#include "shim/sandbox.h"

/* What each verb does. Return: an exit status. */
int verb_shell(const SandboxCall *call, const SandboxContext *context);
int verb_sessions(const SandboxCall *call, const SandboxContext *context);
int verb_show(const SandboxCall *call, const SandboxContext *context);
int verb_exposure(const SandboxCall *call, const SandboxContext *context);
int verb_routes(const SandboxCall *call, const SandboxContext *context);
int verb_ports(const SandboxCall *call, const SandboxContext *context);
int verb_denied(const SandboxCall *call, const SandboxContext *context);
int verb_doctor(const SandboxCall *call, const SandboxContext *context);
int verb_verify(const SandboxCall *call, const SandboxContext *context);
int verb_why(const SandboxCall *call, const SandboxContext *context);
int verb_stop(const SandboxCall *call, const SandboxContext *context);
int verb_allow_ip(const SandboxCall *call, const SandboxContext *context);
/* of verb_allow_ip() */
int verb_allow_edit(const SandboxCall *call, const SandboxContext *context);
int verb_policy(const SandboxCall *call, const SandboxContext *context);
int verb_install(const SandboxCall *call, const SandboxContext *context);
int verb_gh_auth(const SandboxCall *call, const SandboxContext *context);
int verb_glab_auth(const SandboxCall *call, const SandboxContext *context);
int verb_log(const SandboxCall *call, const SandboxContext *context);
int verb_version(const SandboxCall *call, const SandboxContext *context);
int verb_help(const SandboxCall *call, const SandboxContext *context);
