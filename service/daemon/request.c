/* SPDX-License-Identifier: MIT */
#include "service/daemon/request.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "dbus/wire.h"
#include "service/link/pack.h"

/* admin-guide/devices.txt of the kernel: memory devices, and the slaves of Unix98 pseudo-terminals. */
#define MAJOR_MEMORY 1
#define MAJOR_PTY_SLAVE_FIRST 136
#define MAJOR_PTY_SLAVE_LAST 143

void launch_request_done(LaunchRequest *request)
{
	free(request->agent);
	strings_free(request->argv);
	strings_free(request->environment);
	free(request->cwd);
	for (size_t i = 0; i < SLOTS_MAX; i++)
		close_fd(request->fds[i]);
	*request = LAUNCH_REQUEST_INIT;
}

static int bad_request(sd_bus_error *reterr, int error, const char *what)
{
	switch (error) {
	case -ENOMEM:
		return sd_bus_error_set_errno(reterr, -ENOMEM);
	case -E2BIG:
		sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"%s is too long: arguments and environment together may have %u bytes in %u "
			"strings, a path %u bytes.",
			what, CS_REQUEST_BYTES_MAX, CS_REQUEST_STRINGS_MAX, CS_PATH_BYTES_MAX);
		return error;
	case -EINVAL:
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "%s has a NUL byte inside; leave it out.",
				  what);
		return error;
	}
	sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "%s has another type than the interface says.", what);
	return -EBADMSG;
}

static int read_agent(sd_bus_message *m, char **ret, sd_bus_error *reterr)
{
	const char *agent;
	size_t n;

	if (sd_bus_message_read_basic(m, 's', &agent) <= 0)
		return bad_request(reterr, -EBADMSG, "agent");
	n = strlen(agent);
	if (n == 0 || n > REQUEST_AGENT_MAX) {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "agent is a name of 1 to %u bytes.",
				  REQUEST_AGENT_MAX);
		return -EINVAL;
	}
	*ret = strdup(agent);
	return *ret ? 0 : sd_bus_error_set_errno(reterr, -ENOMEM);
}

static int check_strings(char *const *strings, const char *what, sd_bus_error *reterr)
{
	for (size_t i = 0; strings[i]; i++)
		if (strlen(strings[i]) > REQUEST_STRING_MAX) {
			sd_bus_error_setf(reterr, CS_ERROR_LIMITS_EXCEEDED,
					  "Entry %zu of %s is longer than %u bytes, which no program can be "
					  "started with.",
					  i + 1, what, REQUEST_STRING_MAX);
			return -E2BIG;
		}
	return 0;
}

static int read_environment(sd_bus_message *m, size_t max_strings, size_t *budget, char ***ret,
			    sd_bus_error *reterr)
{
	int r = wire_read_vector(m, max_strings, budget, ret);

	return r < 0 ? bad_request(reterr, r, "environment") : check_strings(*ret, "environment", reterr);
}

static int read_words(sd_bus_message *m, LaunchRequest *request, sd_bus_error *reterr)
{
	size_t budget = CS_REQUEST_BYTES_MAX, n;
	int r;

	r = wire_read_vector(m, CS_REQUEST_STRINGS_MAX, &budget, &request->argv);
	if (r < 0)
		return bad_request(reterr, r, "argv");
	r = check_strings(request->argv, "argv", reterr);
	if (r < 0)
		return r;
	n = CS_REQUEST_STRINGS_MAX - strings_count(request->argv);
	return read_environment(m, n, &budget, &request->environment, reterr);
}

static int read_cwd(sd_bus_message *m, char **ret, sd_bus_error *reterr)
{
	size_t budget = CS_PATH_BYTES_MAX;
	int r;

	r = wire_read_bytes(m, &budget, ret);
	if (r < 0)
		return bad_request(reterr, r, "cwd");
	if ((*ret)[0] != '/') {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "cwd is not an absolute path.");
		return -EINVAL;
	}
	return 0;
}

/*
 * A socket stays in the network that it was made in. One of the internet can be disconnected and connected
 * anew (connect(2), AF_UNSPEC): with it an agent would reach whatever the machine reaches, its loopback
 * included. A Unix stream that is connected stays so; one that is not could be connected to abstract names,
 * or take what others connect to.
 */
static int socket_check(int fd, char **ret_problem)
{
	struct sockaddr_storage peer;
	int domain = -1, type = -1;
	socklen_t size = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return refuse(ret_problem, -EINVAL, "a socket that cannot be examined");
	if (domain == AF_INET || domain == AF_INET6)
		return refuse(ret_problem, -EINVAL,
			      "a socket of the network, which would take the agent out of the jail's own");
	if (type != SOCK_STREAM || domain != AF_UNIX)
		return refuse(ret_problem, -EINVAL, "a socket that is no stream");
	size = sizeof(peer);
	if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
		return refuse(ret_problem, -EINVAL, "a socket that is not connected");
	return 0;
}

static int device_check(int fd, const struct statx *st, dev_t *ret_terminal, char **ret_problem)
{
	static const unsigned memory[] = { 3, 5, 7, 8, 9 }; /* null, zero, full, random, urandom */

	if (st->stx_rdev_major == MAJOR_MEMORY)
		for (size_t i = 0; i < ELEMENTSOF(memory); i++)
			if (st->stx_rdev_minor == memory[i])
				return 0;
	if (st->stx_rdev_major >= MAJOR_PTY_SLAVE_FIRST && st->stx_rdev_major <= MAJOR_PTY_SLAVE_LAST &&
	    isatty(fd)) {
		*ret_terminal = makedev(st->stx_rdev_major, st->stx_rdev_minor);
		return 0;
	}
	return refuse(ret_problem, -EINVAL,
		      isatty(fd) ? "a terminal that is not the slave of a pseudo-terminal" : "a device");
}

int descriptor_check(int fd, dev_t *ret_terminal, char **ret_problem)
{
	struct statx st;
	int flags;

	*ret_terminal = 0;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return refuse(ret_problem, -EINVAL, "not open");
	if (flags & O_PATH)
		return refuse(ret_problem, -EINVAL, "a path, opened with O_PATH");
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
		return refuse(ret_problem, -EINVAL, "something that cannot be examined (%s)",
			      strerror(errno));

	switch (st.stx_mode & S_IFMT) {
	case S_IFREG:
	case S_IFIFO:
		return 0;
	case S_IFSOCK:
		return socket_check(fd, ret_problem);
	case S_IFCHR:
		return device_check(fd, &st, ret_terminal, ret_problem);
	case S_IFDIR:
		return refuse(ret_problem, -EINVAL, "a directory");
	case S_IFBLK:
		return refuse(ret_problem, -EINVAL, "a block device");
	case 0:
		/* anon_inode: eventfd, epoll, pidfd, io_uring, bpf, perf and more have no type. */
		return refuse(ret_problem, -EINVAL, "an object of the kernel, not a file");
	}
	return refuse(ret_problem, -EINVAL, "of a kind that cannot be passed");
}

/* Beside 0, 1 and 2 only what leads nowhere else: their kinds are the caller's choice, these are often left open. */
static int further_check(uint32_t key, int fd, sd_bus_error *reterr)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	    (S_ISREG(st.stx_mode) || S_ISFIFO(st.stx_mode)))
		return 0;
	sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
			  "Descriptor %u is neither a file nor a pipe; beside 0, 1 and 2 leave out "
			  "everything else.",
			  key);
	return -EINVAL;
}

/* The further ones are in the order of their keys. Return: 0 with *ret; a negative errno with *reterr. */
static int slot_of_key(LaunchRequest *request, uint32_t key, unsigned *ret, sd_bus_error *reterr)
{
	size_t n = 0, place;

	if (key < SLOTS_FIRST_FURTHER) {
		*ret = key;
		return request->descriptors & 1u << key ? -EEXIST : 0;
	}
	if (key > SLOTS_NUMBER_MAX) {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "fds has the key %u; %u is the last one.",
				  key, SLOTS_NUMBER_MAX);
		return -EINVAL;
	}
	while (n < SLOTS_FURTHER_MAX && request->further[n])
		n++;
	for (place = 0; place < n && request->further[place] < key; place++)
		;
	if (place < n && request->further[place] == key)
		return -EEXIST;
	if (n == SLOTS_FURTHER_MAX) {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
				  "fds has more than %u keys beside 0, 1 and 2; pass fewer.",
				  SLOTS_FURTHER_MAX);
		return -EINVAL;
	}
	*ret = SLOTS_FIRST_FURTHER + (unsigned)place;
	memmove(&request->further[place + 1], &request->further[place], n - place);
	memmove(&request->fds[*ret + 1], &request->fds[*ret], (n - place) * sizeof(int));
	request->further[place] = (uint8_t)key;
	request->fds[*ret] = FD_NONE;
	request->descriptors |= 1u << (SLOTS_FIRST_FURTHER + n);
	return 0;
}

static int take_descriptor(LaunchRequest *request, uint32_t key, int fd, sd_bus_error *reterr)
{
	_cleanup_free_ char *problem = NULL;
	dev_t terminal = 0;
	unsigned slot = 0;
	int r = slot_of_key(request, key, &slot, reterr);

	if (r == -EEXIST)
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "fds has the key %u twice.", key);
	if (r < 0)
		return -EINVAL;
	if (slot >= SLOTS_FIRST_FURTHER && further_check(key, fd, reterr) < 0)
		return -EINVAL;
	if (descriptor_check(fd, &terminal, &problem) < 0) {
		sd_bus_error_setf(
			reterr, CS_ERROR_BAD_REQUEST,
			"Descriptor %u is %s; pass a file, a pipe, a connected Unix stream socket or a "
			"pseudo-terminal.",
			key, problem ? problem : "of a kind that cannot be passed");
		return -EINVAL;
	}
	if (terminal != 0 && request->terminals != 0 && request->terminal != terminal) {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
				  "Descriptor %u is another terminal than the one before; pass one.", key);
		return -EINVAL;
	}
	request->fds[slot] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (request->fds[slot] < 0) {
		request->fds[slot] = FD_NONE;
		return sd_bus_error_set_errno(reterr, -errno);
	}
	request->descriptors |= 1u << slot;
	if (terminal != 0) {
		request->terminals |= 1u << slot;
		request->terminal = terminal;
	}
	return 0;
}

static int read_descriptors(sd_bus_message *m, LaunchRequest *request, sd_bus_error *reterr)
{
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{uh}");
	if (r < 0)
		return bad_request(reterr, r, "fds");
	while ((r = sd_bus_message_enter_container(m, 'e', "uh")) > 0) {
		uint32_t key;
		int fd;

		r = sd_bus_message_read(m, "uh", &key, &fd);
		if (r < 0)
			return bad_request(reterr, -EBADMSG, "fds");
		r = take_descriptor(request, key, fd, reterr);
		if (r < 0)
			return r;
		r = sd_bus_message_exit_container(m);
		if (r < 0)
			return bad_request(reterr, r, "fds");
	}
	if (r < 0)
		return bad_request(reterr, r, "fds");
	r = sd_bus_message_exit_container(m);
	return r < 0 ? bad_request(reterr, r, "fds") : 0;
}

int launch_request_read(sd_bus_message *m, LaunchRequest *ret, sd_bus_error *reterr)
{
	_cleanup_(launch_request_done) LaunchRequest request = LAUNCH_REQUEST_INIT;
	uint64_t background = 0;
	const OptionSpec options[] = { { CS_OPTION_BACKGROUND, 'b', &background } };
	int r;

	r = read_agent(m, &request.agent, reterr);
	if (r >= 0)
		r = read_words(m, &request, reterr);
	if (r >= 0)
		r = read_cwd(m, &request.cwd, reterr);
	if (r >= 0)
		r = read_descriptors(m, &request, reterr);
	if (r >= 0)
		r = options_read(m, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	request.background = background;
	*ret = request;
	request = LAUNCH_REQUEST_INIT;
	return 0;
}

int verify_request_read(sd_bus_message *m, LaunchRequest *ret, sd_bus_error *reterr)
{
	_cleanup_(launch_request_done) LaunchRequest request = LAUNCH_REQUEST_INIT;
	size_t budget = CS_REQUEST_BYTES_MAX;
	int r;

	r = read_agent(m, &request.agent, reterr);
	if (r >= 0)
		r = read_environment(m, CS_REQUEST_STRINGS_MAX, &budget, &request.environment, reterr);
	if (r >= 0)
		r = read_cwd(m, &request.cwd, reterr);
	if (r < 0)
		return r;
	*ret = request;
	request = LAUNCH_REQUEST_INIT;
	return 0;
}

static int read_option_text(sd_bus_message *m, const OptionSpec *spec, sd_bus_error *reterr)
{
	const char *text;

	if (sd_bus_message_read(m, "v", "s", &text) < 0)
		return bad_request(reterr, -EBADMSG, "options");
	if (strlen(text) > REQUEST_OPTION_MAX) {
		sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "The option '%s' has at most %u bytes.",
				  spec->key, REQUEST_OPTION_MAX);
		return -E2BIG;
	}
	free(*spec->text);
	*spec->text = strdup(text);
	return *spec->text ? 0 : sd_bus_error_set_errno(reterr, -ENOMEM);
}

/* What the variant holds. */
static const char *option_signature(const OptionSpec *spec, char buffer[static 2])
{
	if (spec->type == OPTION_BYTES)
		return "ay";
	if (spec->type == OPTION_VECTOR)
		return "aay";
	buffer[0] = spec->type;
	buffer[1] = '\0';
	return buffer;
}

static int read_option_bytes(sd_bus_message *m, const OptionSpec *spec, const char *signature,
			     sd_bus_error *reterr)
{
	size_t budget = spec->type == OPTION_BYTES ? CS_PATH_BYTES_MAX : CS_REQUEST_BYTES_MAX;
	int r;

	r = sd_bus_message_enter_container(m, 'v', signature);
	if (r < 0)
		return bad_request(reterr, r, "options");
	if (spec->type == OPTION_BYTES) {
		free(TAKE_PTR(*spec->text));
		r = wire_read_bytes(m, &budget, spec->text);
	} else {
		*spec->vector = strings_free(*spec->vector);
		r = wire_read_vector(m, CS_REQUEST_STRINGS_MAX, &budget, spec->vector);
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	return r < 0 ? bad_request(reterr, r, spec->key) : 0;
}

static int read_option_value(sd_bus_message *m, const OptionSpec *spec, const char *signature,
			     sd_bus_error *reterr)
{
	uint64_t number = 0;
	int truth = 0, r;

	if (spec->type == 's')
		return read_option_text(m, spec, reterr);
	if (spec->type == OPTION_BYTES || spec->type == OPTION_VECTOR)
		return read_option_bytes(m, spec, signature, reterr);
	r = spec->type == 'b' ? sd_bus_message_read(m, "v", signature, &truth)
			      : sd_bus_message_read(m, "v", signature, &number);
	if (r < 0)
		return bad_request(reterr, -EBADMSG, "options");
	*spec->value = spec->type == 'b' ? (uint64_t)truth : number;
	return 0;
}

static int read_option(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, uint64_t *seen,
		       sd_bus_error *reterr)
{
	const char *key, *contents;
	char type, buffer[2];

	if (sd_bus_message_read_basic(m, 's', &key) <= 0)
		return bad_request(reterr, -EBADMSG, "options");
	for (size_t i = 0; i < n_specs; i++) {
		const char *signature = option_signature(&specs[i], buffer);

		if (!streq(specs[i].key, key))
			continue;
		if (*seen & UINT64_C(1) << i) {
			sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "The option '%s' is given twice.",
					  key);
			return -EINVAL;
		}
		*seen |= UINT64_C(1) << i;
		if (sd_bus_message_peek_type(m, &type, &contents) <= 0 || type != 'v' ||
		    !streq(contents, signature)) {
			sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "The option '%s' has the type '%s'.",
					  key, signature);
			return -EINVAL;
		}
		return read_option_value(m, &specs[i], signature, reterr);
	}
	sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "The option '%.64s' is not known here; leave it out.",
			  key);
	return -EINVAL;
}

int options_read(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, sd_bus_error *reterr)
{
	uint64_t seen = 0;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	if (r < 0)
		return bad_request(reterr, r, "options");
	while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = read_option(m, specs, n_specs, &seen, reterr);
		if (r < 0)
			return r;
		r = sd_bus_message_exit_container(m);
		if (r < 0)
			return bad_request(reterr, r, "options");
	}
	if (r < 0)
		return bad_request(reterr, r, "options");
	r = sd_bus_message_exit_container(m);
	return r < 0 ? bad_request(reterr, r, "options") : 0;
}
