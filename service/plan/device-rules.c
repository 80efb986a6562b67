/* SPDX-License-Identifier: MIT */
#include "service/plan/device-rules.h"

#include <sys/sysmacros.h>

#include "base/paths.h"

/*
 * Refused is what opens a way round the jail for whoever holds the node, not what is merely precious: memory
 * and disks lie below every mode and mount, network devices lead round the routes, terminals and input
 * devices type into, or show, the person's own session. A camera or a key store is for an administrator to
 * weigh.
 */
#define MEMORY "it reaches the memory or the ports of the machine"
#define DISK "it reaches disks below the modes of their files"
#define NETWORK "it leads into networks past the jail's"
#define TERMINAL "it is a terminal, into which the person's own session types or is typed"
#define INPUT "what the person types could be read or made there"
#define SCREEN "it shows the person's screen"
/* A file system that the agent serves in a user namespace of its own shows set-id files of the user's; an
 * overlay copies them into the workspace, and no call of these carries a mode that the filter of init could
 * see. */
#define SERVING "an agent could make set-id files with it"
#define LOG "it is the kernel's own log"

/* At the path and below it; a "*" at the end stands for any rest of the name. */
static const struct {
	const char *path, *cause;
} names[] = {
	{ "/dev/mem", MEMORY },
	{ "/dev/kmem", MEMORY },
	{ "/dev/port", MEMORY },
	{ "/dev/oldmem", MEMORY },
	{ "/dev/snapshot", MEMORY },
	{ "/dev/cpu", MEMORY },
	{ "/dev/mapper", DISK },
	{ "/dev/loop-control", DISK },
	{ "/dev/btrfs-control", DISK },
	{ "/dev/bsg", DISK },
	{ "/dev/disk", DISK },
	{ "/dev/net", NETWORK },
	{ "/dev/tap*", NETWORK },
	{ "/dev/ppp", NETWORK },
	{ "/dev/vhost-net", NETWORK },
	{ "/dev/vhost-vsock", NETWORK },
	{ "/dev/tty", TERMINAL },
	{ "/dev/console", TERMINAL },
	{ "/dev/ptmx", TERMINAL },
	{ "/dev/pts", TERMINAL },
	{ "/dev/vcs*", SCREEN },
	{ "/dev/fb*", SCREEN },
	{ "/dev/input", INPUT },
	{ "/dev/uinput", INPUT },
	{ "/dev/uhid", INPUT },
	{ "/dev/kmsg", LOG },
	{ "/dev/fuse", SERVING },
	/* Whoever may write there chooses what the name is, or makes it a link. */
	{ "/dev/shm", "files of other programs lie there, and no devices" },
	{ "/dev/mqueue", "files of other programs lie there, and no devices" },
	{ "/dev/hugepages", "files of other programs lie there, and no devices" },
	{ "/dev/fd", "it names what each program has open, and no device" },
	{ "/dev/stdin", "it names what each program has open, and no device" },
	{ "/dev/stdout", "it names what each program has open, and no device" },
	{ "/dev/stderr", "it names what each program has open, and no device" },
};

/* The kernel's Documentation/admin-guide/devices.txt; character devices, last included. */
static const struct {
	unsigned kind, first, last; /* major, minors */
	const char *cause;
} numbers[] = {
	{ 1, 1, 2, MEMORY },             /* mem, kmem */
	{ 1, 4, 4, MEMORY },             /* port */
	{ 1, 11, 11, LOG },              /* kmsg */
	{ 1, 12, 12, MEMORY },           /* oldmem */
	{ 2, 0, UINT32_MAX, TERMINAL },  /* BSD pseudo-terminals, masters */
	{ 3, 0, UINT32_MAX, TERMINAL },  /* and slaves */
	{ 4, 0, 63, TERMINAL },          /* virtual consoles; from 64 on serial ports, which may be given */
	{ 5, 0, 2, TERMINAL },           /* tty, console, ptmx */
	{ 7, 0, UINT32_MAX, SCREEN },    /* vcs, vcsa, vcsu */
	{ 10, 200, 200, NETWORK },       /* net/tun */
	{ 10, 223, 223, INPUT },         /* uinput */
	{ 10, 229, 229, SERVING },       /* fuse */
	{ 10, 231, 231, MEMORY },        /* snapshot */
	{ 10, 234, 234, DISK },          /* btrfs-control */
	{ 10, 236, 237, DISK },          /* mapper/control, loop-control */
	{ 10, 238, 238, NETWORK },       /* vhost-net */
	{ 10, 239, 239, INPUT },         /* uhid */
	{ 10, 241, 241, NETWORK },       /* vhost-vsock */
	{ 13, 0, UINT32_MAX, INPUT },    /* input */
	{ 21, 0, UINT32_MAX, DISK },     /* sg */
	{ 29, 0, UINT32_MAX, SCREEN },   /* fb */
	{ 108, 0, UINT32_MAX, NETWORK }, /* ppp */
	{ 162, 0, UINT32_MAX, DISK },    /* raw */
	{ 202, 0, UINT32_MAX, MEMORY },  /* cpu/N/msr */
};

const char *device_path_refusal(const char *path)
{
	if (!starts_with(path, "/dev/"))
		return "it is not below /dev";
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		size_t n = strlen(names[i].path) - 1;
		bool prefix = names[i].path[n] == '*';

		if (prefix ? strncmp(path, names[i].path, n) == 0 : path_is_within(path, names[i].path))
			return names[i].cause;
	}
	return NULL;
}

const char *device_refusal(const PlanNode *node)
{
	const char *cause = device_path_refusal(node->path);
	unsigned kind = major(node->device), number = minor(node->device);

	if (cause)
		return cause;
	if (S_ISBLK(node->mode))
		return DISK;
	if (!S_ISCHR(node->mode))
		return "it is no device";
	/* Unix98 pseudo-terminals. */
	if (kind >= 128 && kind <= 143)
		return TERMINAL;
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		if (numbers[i].kind == kind && number >= numbers[i].first && number <= numbers[i].last)
			return numbers[i].cause;
	return NULL;
}
