/* SPDX-License-Identifier: MIT */
#include "service/net/tap.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "dbus/causes.h"

#define TUN_PATH "/dev/net/tun"

/* May this process read and write a file of that owner and mode, as far as the mode says? */
static bool mode_permits(const struct stat *st)
{
	_cleanup_free_ gid_t *groups = NULL;
	int n = getgroups(0, NULL);
	bool member = st->st_gid == getegid();

	if (geteuid() == st->st_uid)
		return (st->st_mode & 0600) == 0600;
	if (n > 0 && (groups = calloc((size_t)n, sizeof(*groups))))
		n = getgroups(n, groups);
	for (int i = 0; groups && i < n; i++)
		member = member || groups[i] == st->st_gid;
	if (member)
		return (st->st_mode & 0060) == 0060;
	return (st->st_mode & 0006) == 0006;
}

/* Where devices cannot be opened whatever their mode says: may_open_dev() of the kernel answers EACCES. */
static bool is_without_devices(void)
{
	struct statvfs fs;

	return statvfs(TUN_PATH, &fs) == 0 && (fs.f_flag & ST_NODEV);
}

static int tun_explain(int error, char **ret_problem)
{
	struct stat st;

	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		return refuse(ret_problem, error, BECAUSE(TUN_ABSENT));
	case -ENODEV:
	case -ENXIO:
		return refuse(ret_problem, -ENODEV, BECAUSE(TUN_DRIVER));
	case -EPERM:
		return refuse(ret_problem, error, BECAUSE(TUN_CGROUP));
	case -EACCES:
		if (stat(TUN_PATH, &st) < 0)
			return refuse(ret_problem, error, BECAUSE(TUN_DIRECTORY));
		if (!mode_permits(&st))
			return refuse(ret_problem, error, BECAUSE(TUN_MODE), st.st_mode & 07777u);
		if (is_without_devices())
			return refuse(ret_problem, error, BECAUSE(TUN_NODEV));
		return refuse(ret_problem, error, BECAUSE(TUN_MODULE));
	default:
		return refuse(ret_problem, error, TUN_PATH " cannot be opened: %s", strerror(-error));
	}
}

static int explain_attach(const char *name, int error, char **ret_problem)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return refuse(ret_problem, error,
			      "no right to make a tap in a network namespace of our own: user namespaces are "
			      "restricted here");
	case -EBUSY:
		return refuse(ret_problem, error, "the device %s exists already", name);
	case -ENODEV:
	case -EBADFD:
	case -ENOTTY:
		return refuse(ret_problem, -ENODEV, BECAUSE(TUN_OTHER));
	default:
		return refuse(ret_problem, error, "cannot make the device %s: %s", name, strerror(-error));
	}
}

int tun_look(char **ret_problem)
{
	_cleanup_close_ int fd = open(TUN_PATH, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned features = 0;

	if (fd < 0)
		return tun_explain(-errno, ret_problem);
	if (ioctl(fd, TUNGETFEATURES, &features) < 0)
		return refuse(ret_problem, -ENODEV, BECAUSE(TUN_OTHER));
	return 0;
}

int tun_make(const char *name, int kind, int *ret_fd, char **ret_problem)
{
	/* TUN_EXCL: never attach to a device that somebody else made under our name. */
	struct ifreq request = { .ifr_flags = (short)(kind | IFF_NO_PI | IFF_TUN_EXCL) };
	_cleanup_close_ int fd = open(TUN_PATH, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return tun_explain(-errno, ret_problem);
	assert(strlen(name) < sizeof(request.ifr_name));
	memcpy(request.ifr_name, name, strlen(name) + 1);
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return explain_attach(name, -errno, ret_problem);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int tap_open(int *ret_fd, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	r = tun_make(ROUTES_JAIL_DEVICE, IFF_TAP, &fd, ret_problem);
	if (r < 0)
		return r;
	if (ioctl(fd, TUNSETPERSIST, 1) < 0)
		return refuse(ret_problem, -errno,
			      "cannot make the tap " ROUTES_JAIL_DEVICE " persistent: %s", strerror(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int tap_step_filter(Denial *denial, MeantKind kind, char **ret_problem)
{
	static const uint8_t far_end[ETH_ALEN] = ROUTES_FAR_END_MAC;
	_cleanup_free_ struct tun_filter *filter = calloc(1, sizeof(*filter) + ETH_ALEN);
	int n;

	if (!filter)
		return -ENOMEM;
	/* TUN_FLT_ALLMULTI stays unset: no multicast and no broadcast passes. */
	filter->count = 1;
	memcpy(filter->addr[0], far_end, ETH_ALEN);
	n = ioctl(denial->tap_fd, TUNSETTXFILTER, filter);
	if (n < 0)
		return refuse(ret_problem, -errno, "cannot set the filter of " ROUTES_JAIL_DEVICE ": %s",
			      strerror(errno));
	/* The number of exact addresses that the kernel took. */
	if (n != 1)
		return refuse(ret_problem, -EIO,
			      "the kernel took %d addresses into the filter of " ROUTES_JAIL_DEVICE
			      " instead of one",
			      n);
	return 0;
}
