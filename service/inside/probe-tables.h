/* SPDX-License-Identifier: MIT */
#pragma once

/* The tables of the files probes-*.c. */

#include "service/inside/probing.h"

#define PROBE_TABLE(name)          \
	extern const Probe name[]; \
	extern const size_t name##_count

PROBE_TABLE(probes_identity);
PROBE_TABLE(probes_namespaces);
PROBE_TABLE(probes_mounts);
PROBE_TABLE(probes_masks);
PROBE_TABLE(probes_paths);
PROBE_TABLE(probes_devices);
PROBE_TABLE(probes_set_id);
PROBE_TABLE(probes_processes);
PROBE_TABLE(probes_kernel);
PROBE_TABLE(probes_control);
PROBE_TABLE(probes_sockets);
PROBE_TABLE(probes_families);
PROBE_TABLE(probes_links);
PROBE_TABLE(probes_reach);
PROBE_TABLE(probes_host);
PROBE_TABLE(probes_ipv6);
PROBE_TABLE(probes_handles);
PROBE_TABLE(probes_state);
