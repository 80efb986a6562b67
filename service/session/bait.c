/* SPDX-License-Identifier: MIT */
#include "service/session/bait.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "service/link/bait-name.h"

#define TOKEN_BYTES 16u
#define BACKLOG 32
#define ABSTRACT_PREFIX "claude-sandbox-bait-"
#define NAME_PRIVATE 0177 /* umask(2): to its user alone */

struct Bait {
	sd_event *event;
	char token[2 * TOKEN_BYTES + 1];
	ExpectedBait items[BAIT_KIND_MAX];
	int fds[BAIT_KIND_MAX];
	sd_event_source *sources[BAIT_KIND_MAX];
	size_t n;
	unsigned answers;
	char *path; /* to be removed, or NULL */
};

static void bait_stop(Bait *bait)
{
	for (size_t i = 0; i < bait->n; i++) {
		bait->sources[i] = sd_event_source_disable_unref(bait->sources[i]);
		bait->fds[i] = close_fd(bait->fds[i]);
	}
}

Bait *bait_free(Bait *bait)
{
	if (!bait)
		return NULL;
	bait_stop(bait);
	for (size_t i = 0; i < bait->n; i++)
		free(bait->items[i].name);
	if (bait->path)
		(void)unlink(bait->path);
	free(bait->path);
	(void)sd_event_unref(bait->event);
	free(bait);
	return NULL;
}

static void answer_stream(const Bait *bait, int listen_fd)
{
	_cleanup_close_ int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		(void)send(fd, bait->token, strlen(bait->token), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answer_datagram(const Bait *bait, int fd)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	char asked[64];

	if (recvfrom(fd, asked, sizeof(asked), MSG_DONTWAIT, (struct sockaddr *)&from, &size) >= 0)
		(void)sendto(fd, bait->token, strlen(bait->token), MSG_DONTWAIT, (struct sockaddr *)&from,
			     size);
}

static int on_asked(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Bait *bait = userdata;
	int type = SOCK_STREAM;
	socklen_t size = sizeof(type);

	/* Anybody of this machine may ask, and nobody may keep the session from its work. */
	if (++bait->answers > BAIT_ANSWERS_MAX) {
		bait_stop(bait);
		return 0;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
	if (type == SOCK_STREAM)
		answer_stream(bait, fd);
	else
		answer_datagram(bait, fd);
	return 0;
}

/* Takes fd and name, whatever happens. */
static int bait_add(Bait *bait, BaitKind kind, int fd, uint16_t port, char *name)
{
	int r;

	bait->items[bait->n] = (ExpectedBait){ .kind = kind, .port = port, .name = name };
	bait->fds[bait->n] = fd;
	r = sd_event_add_io(bait->event, &bait->sources[bait->n], fd, EPOLLIN, on_asked, bait);
	bait->n++;
	return r < 0 ? r : 0;
}

static int add_internet(Bait *bait, BaitKind kind)
{
	bool six = kind == BAIT_TCP6 || kind == BAIT_UDP6, stream = kind == BAIT_TCP4 || kind == BAIT_TCP6;
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr *to = six ? (struct sockaddr *)&to6 : (struct sockaddr *)&to4;
	socklen_t size = six ? sizeof(to6) : sizeof(to4);
	_cleanup_close_ int fd =
		socket(six ? AF_INET6 : AF_INET,
		       (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, to, size) < 0 || (stream && listen(fd, BACKLOG) < 0) ||
	    getsockname(fd, to, &size) < 0)
		return 0;
	return bait_add(bait, kind, TAKE_FD(fd), ntohs(six ? to6.sin6_port : to4.sin_port), NULL);
}

/* name: as ExpectedBait has it. Taken. */
static int add_unix(Bait *bait, BaitKind kind, char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t before = kind == BAIT_ABSTRACT ? 1 : 0, n = strlen(name);
	_cleanup_free_ char *owned = name;
	mode_t mask;
	int r;

	if (fd < 0 || before + n >= sizeof(to.sun_path))
		return 0;
	memcpy(to.sun_path + before, name, n);
	mask = umask(NAME_PRIVATE);
	r = bind(fd, (struct sockaddr *)&to,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + before + n));
	(void)umask(mask);
	if (r < 0)
		return 0;
	if (kind == BAIT_PATH) {
		bait->path = strdup(name);
		if (!bait->path) {
			(void)unlink(name);
			return -ENOMEM;
		}
	}
	if (listen(fd, BACKLOG) < 0)
		return 0;
	return bait_add(bait, kind, TAKE_FD(fd), 0, TAKE_PTR(owned));
}

static int token_make(Bait *bait)
{
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(bait->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int bait_new(sd_event *event, const char *id, Bait **ret)
{
	_cleanup_(bait_freep) Bait *bait = calloc(1, sizeof(*bait));
	_cleanup_free_ char *name = bait_name(id);
	char *abstract = NULL, *path = NULL;
	int r;

	if (!bait || !name)
		return -ENOMEM;
	bait->event = sd_event_ref(event);
	r = token_make(bait);
	for (BaitKind kind = BAIT_TCP4; r == 0 && kind <= BAIT_UDP6; kind++)
		r = add_internet(bait, kind);
	/* Neither the token nor the id: names are seen in /proc/net/unix. */
	if (r == 0)
		r = asprintf(&abstract, ABSTRACT_PREFIX "%s", name) < 0
			    ? -ENOMEM
			    : add_unix(bait, BAIT_ABSTRACT, abstract);
	if (r == 0)
		r = (path = bait_path(id)) ? add_unix(bait, BAIT_PATH, path) : -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(bait);
	return 0;
}

bool bait_is_spent(const Bait *bait)
{
	return bait && bait->answers > BAIT_ANSWERS_MAX;
}

const ExpectedBait *bait_list(const Bait *bait, size_t *ret_n)
{
	*ret_n = bait ? bait->n : 0;
	return bait ? bait->items : NULL;
}

const char *bait_token(const Bait *bait)
{
	return bait ? bait->token : NULL;
}
