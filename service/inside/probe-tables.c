/* SPDX-License-Identifier: MIT */
#include "service/inside/probe-tables.h"

static const struct {
	const Probe *probes;
	const size_t *n;
} groups[] = {
	{ probes_identity, &probes_identity_count }, { probes_namespaces, &probes_namespaces_count },
	{ probes_mounts, &probes_mounts_count },     { probes_masks, &probes_masks_count },
	{ probes_paths, &probes_paths_count },       { probes_devices, &probes_devices_count },
	{ probes_set_id, &probes_set_id_count },     { probes_processes, &probes_processes_count },
	{ probes_kernel, &probes_kernel_count },     { probes_control, &probes_control_count },
	{ probes_sockets, &probes_sockets_count },   { probes_families, &probes_families_count },
	{ probes_links, &probes_links_count },       { probes_reach, &probes_reach_count },
	{ probes_host, &probes_host_count },         { probes_ipv6, &probes_ipv6_count },
	{ probes_handles, &probes_handles_count },   { probes_state, &probes_state_count },
};

const Probe *probe_at(size_t index)
{
	for (size_t i = 0; i < ELEMENTSOF(groups); i++) {
		if (index < *groups[i].n)
			return &groups[i].probes[index];
		index -= *groups[i].n;
	}
	return NULL;
}

const Probe *probe_find(const char *id)
{
	const Probe *probe;

	for (size_t i = 0; (probe = probe_at(i)); i++)
		if (streq(probe->id, id))
			return probe;
	return NULL;
}
