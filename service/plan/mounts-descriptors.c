/* SPDX-License-Identifier: MIT */

/*
 * What the caller handed in as standard input, output and error or beside them, where that is a file. It is no mount, and
 * yet a way out: /proc/self/fd opens a file again, with all the rights that its owner has, whatever the
 * descriptor was opened for. So it is shown for what can be done with it.
 */

#include "service/plan/plan-build.h"

int build_descriptors(PlanBuild *build)
{
	static const struct {
		const char *read, *change;
	} reasons[] = {
		{ "standard input: the file can be read",
		  "standard input: the file can be opened again and changed" },
		{ "standard output: the file can be read",
		  "standard output: the file can be opened again and changed" },
		{ "standard error: the file can be read",
		  "standard error: the file can be opened again and changed" },
		{ "a descriptor above 2: the file can be read",
		  "a descriptor above 2: the file can be opened again and changed" },
	};

	for (size_t i = 0; i < build->facts->n_descriptors; i++) {
		const PlanDescriptor *descriptor = &build->facts->descriptors[i];
		unsigned row = MIN_OF(descriptor->number, (unsigned)ELEMENTSOF(reasons) - 1);
		_cleanup_free_ char *path = NULL;

		/* A file without a path here, or with none that this process can see. */
		if (!descriptor->path || descriptor->path[0] != '/') {
			if (asprintf(&path, "/proc/self/fd/%u", descriptor->number) < 0) {
				path = NULL;
				return -ENOMEM;
			}
		}
		int r = plan_add_special(build->plan, ENTRY_DESCRIPTOR, path ?: descriptor->path,
					 descriptor->writable ? ENTRY_RW : ENTRY_RO, "caller",
					 descriptor->writable ? reasons[row].change : reasons[row].read);
		if (r < 0)
			return r;
	}
	return 0;
}
