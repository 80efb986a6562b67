/* SPDX-License-Identifier: MIT */
#include "service/session/descriptor-facts.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Documentation/admin-guide/devices.txt of the kernel: "1 char, 3 = /dev/null". */
#define NULL_DEVICE makedev(1, 3)

void descriptor_facts_done(DescriptorFacts *facts)
{
	for (size_t i = 0; i < KEYS_MAX; i++)
		free(facts->paths[i]);
	*facts = (DescriptorFacts){ 0 };
}

static bool is_file(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	return S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) ||
	       (S_ISCHR(st.st_mode) && st.st_rdev != NULL_DEVICE);
}

static bool is_writable(int fd, const char *link)
{
	int flags = fcntl(fd, F_GETFL), seals = fcntl(fd, F_GET_SEALS);

	if (seals >= 0 && seals & F_SEAL_WRITE)
		return false;
	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY)
		return true;
	return access(link, W_OK) == 0;
}

/* *ret is NULL for a file whose path cannot be told. Return: 0 or -ENOMEM. */
static int read_path(const char *link, char **ret)
{
	_cleanup_free_ char *path = malloc(PATH_MAX + 1);
	ssize_t n;

	if (!path)
		return -ENOMEM;
	n = readlink(link, path, PATH_MAX);
	if (n < 0 || n >= PATH_MAX)
		return 0;
	path[n] = '\0';
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

int descriptor_facts_find(const int fds[static KEYS_MAX], const uint8_t further[static SLOTS_FURTHER_MAX],
			  DescriptorFacts *ret)
{
	_cleanup_(descriptor_facts_done) DescriptorFacts facts = { 0 };

	for (unsigned i = 0; i < KEYS_MAX; i++) {
		char link[64];
		int r;

		if (!is_file(fds[i]))
			continue;
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fds[i]);
		r = read_path(link, &facts.paths[facts.n]);
		if (r < 0)
			return r;
		facts.descriptors[facts.n] = (PlanDescriptor){ .number = slot_number(i, further),
							       .path = facts.paths[facts.n],
							       .writable = is_writable(fds[i], link) };
		facts.n++;
	}
	*ret = facts;
	facts = (DescriptorFacts){ 0 };
	return 0;
}
