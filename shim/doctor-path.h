/* SPDX-License-Identifier: MIT */
#pragma once

/* Doctor's row of the PATH of whoever typed the command. */

#include "dbus/client.h"
#include "shim/sandbox.h"

/* What an agent's name starts. Return: 0 or -ENOMEM. */
int doctor_rows_path(ClientTable *rows, const SandboxContext *context);
