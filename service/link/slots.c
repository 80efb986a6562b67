/* SPDX-License-Identifier: MIT */
#include "service/link/slots.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446 /* linux/magic.h since Linux 6.9 */
#endif

bool slots_are_valid(uint32_t slots, const uint8_t further[static SLOTS_FURTHER_MAX])
{
	unsigned before = SLOTS_FIRST_FURTHER - 1;

	for (size_t i = 0; i < SLOTS_FURTHER_MAX; i++) {
		bool given = slots & 1u << (SLOTS_FIRST_FURTHER + i);

		if (given != (further[i] > 0) || (given && (before == 0 || further[i] <= before)))
			return false;
		before = further[i];
	}
	return (slots & ~SLOTS_ALL) == 0;
}

unsigned slot_number(unsigned slot, const uint8_t further[static SLOTS_FURTHER_MAX])
{
	return slot < SLOTS_FIRST_FURTHER ? slot : further[slot - SLOTS_FIRST_FURTHER];
}

bool descriptor_is_of_kernel(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case NSFS_MAGIC:
	case PID_FS_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case SELINUX_MAGIC:
	case BPF_FS_MAGIC:
		return true;
	default:
		return false;
	}
}
