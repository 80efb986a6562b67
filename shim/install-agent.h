/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What can be installed, and where npm's registry has it: a closed table. Which packages, and where in them
 * the program lies, is what their makers publish.
 */

#include "dbus/base.h"

typedef struct InstallAgent {
	const char *name;
	const char *package; /* whose versions a person names */
	/* The package with the native program for this machine, an optional dependency of `package`; or NULL.
	 */
	const char *native;
	/* Where there is none: the package that has Node.js, and which versions of it. */
	const char *node, *node_versions;
	/* Where the program may lie in the package that is kept, the first that is there; ends with NULL. */
	const char *const *programs;
} InstallAgent;

/* NULL for a name that is none of ours; index from 0, NULL at the end. */
const InstallAgent *install_agent_find(const char *name);
const InstallAgent *install_agent_at(size_t index);

/*
 * A version as digits, letters, dots and hyphens (semver.org without build metadata), or a tag of the
 * registry as letters, digits and hyphens: nothing that npm could take for an option, a place or another
 * package. At most 64 characters.
 */
bool install_version_is_valid(const char *version) _pure_;
