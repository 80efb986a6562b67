/* SPDX-License-Identifier: MIT */
#include "service/session/terminal-keys.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define TERMINAL_PATH_MAX 64u
#define TERMINAL_DIRECTORY "/dev/pts/"

void terminal_keys_done(TerminalKeys *keys)
{
	for (size_t i = 0; i < KEYS_MAX; i++)
		close_fdp(&keys->fds[i]);
	close_fdp(&keys->terminal_fd);
	freep(&keys->terminal_path);
}

/* The path at which fd, a terminal, can be found again. */
static int terminal_path(int fd, char **ret, char **ret_problem)
{
	char link[64], path[TERMINAL_PATH_MAX];
	const char *number;
	struct stat a, b;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n < 0)
		return refuse(ret_problem, -errno, "the terminal has no name: %s", strerror(errno));
	if ((size_t)n >= sizeof(path))
		return refuse(ret_problem, -EINVAL, "the terminal is not one of /dev/pts");
	path[n] = 0;
	number = starts_with(path, TERMINAL_DIRECTORY);
	if (!number || !*number || strspn(number, "0123456789") != strlen(number))
		return refuse(ret_problem, -EINVAL,
			      "the terminal is not one of /dev/pts; start from a shell there");
	if (fstat(fd, &a) < 0 || stat(path, &b) < 0 || !S_ISCHR(b.st_mode) || a.st_rdev != b.st_rdev)
		return refuse(ret_problem, -EINVAL, "%s is another terminal than the one that was given",
			      path);
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

int terminal_keys_make(TerminalKeys *keys, int *ret_fd, char **ret_problem)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	_cleanup_(terminal_keys_done) TerminalKeys new = TERMINAL_KEYS_INIT;
	_cleanup_close_ int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	int r;

	if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0)
		return refuse(ret_problem, -errno, "no terminal can be made: %s", strerror(errno));
	new.terminal_fd = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (new.terminal_fd < 0)
		return refuse(ret_problem, -errno, "the new terminal cannot be opened: %s", strerror(errno));
	(void)ioctl(fd, TIOCSWINSZ, &size);
	r = terminal_path(new.terminal_fd, &new.terminal_path, ret_problem);
	if (r < 0)
		return r;
	*keys = new;
	new = TERMINAL_KEYS_INIT;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int key_check(unsigned key, int fd, bool terminal, char **ret_problem)
{
	struct stat st;
	int flags;

	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(ret_problem, -EINVAL, "descriptor %u was announced and is not there", key);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || flags & O_PATH || S_ISDIR(st.st_mode))
		return refuse(ret_problem, -EINVAL,
			      "descriptor %u is a directory or a mere path; give a file, pipe or socket",
			      key);
	if (terminal != (isatty(fd) == 1))
		return refuse(ret_problem, -EINVAL,
			      terminal ? "descriptor %u was announced as a terminal and is none"
				       : "descriptor %u is a terminal; a terminal of the caller does not "
					 "enter a jail",
			      key);
	return 0;
}

static bool is_same_device(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_rdev == y.st_rdev && x.st_dev == y.st_dev;
}

int terminal_keys_take(TerminalKeys *keys, const int fds[static KEYS_MAX], const SessionRequest *request,
		       char **ret_problem)
{
	_cleanup_(terminal_keys_done) TerminalKeys new = TERMINAL_KEYS_INIT;
	int r = 0;

	for (unsigned i = 0; i < KEYS_MAX; i++)
		new.fds[i] = fds[i];
	for (unsigned i = 0; r == 0 && i < KEYS_MAX; i++) {
		bool terminal = request->terminals & (1u << i);

		if (!(request->descriptors & (1u << i))) {
			close_fdp(&new.fds[i]);
			continue;
		}
		r = key_check(slot_number(i, request->further), new.fds[i], terminal, ret_problem);
		if (r < 0 || !terminal)
			continue;
		if (new.terminal_fd < 0) {
			new.terminal_fd = TAKE_FD(new.fds[i]);
			r = terminal_path(new.terminal_fd, &new.terminal_path, ret_problem);
		} else if (!is_same_device(new.terminal_fd, new.fds[i]))
			r = refuse(ret_problem, -EINVAL,
				   "two different terminals were given; a session has one");
		else
			close_fdp(&new.fds[i]);
	}
	if (r < 0)
		return r;
	*keys = new;
	new = TERMINAL_KEYS_INIT;
	return 0;
}
