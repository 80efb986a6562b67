/* SPDX-License-Identifier: MIT */

/* The kernel's own table, of sockets made here; and messages that no kernel sends. */

#include "service/net/unix-sockets.h"

#include <linux/sock_diag.h>
#include <linux/rtnetlink.h>
#include <linux/unix_diag.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

static int bound(int type, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && strlen(name) < sizeof(address.sun_path));
	memcpy(address.sun_path, name, strlen(name) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static const UnixSocket *find(const UnixSockets *sockets, const char *file)
{
	struct stat st;

	assert_int_equal(lstat(file, &st), 0);
	for (size_t i = 0; i < sockets->n; i++)
		if (sockets->sockets[i].inode == (uint32_t)st.st_ino)
			return &sockets->sockets[i];
	return NULL;
}

static void sockets_are_known_by_their_files(void **state)
{
	_cleanup_(unix_sockets_done) UnixSockets sockets = { 0 };
	_cleanup_close_ int listening = FD_NONE, datagram = FD_NONE, silent = FD_NONE, abstract = FD_NONE;
	struct sockaddr_un hidden = { .sun_family = AF_UNIX, .sun_path = "\0unix-sockets-test" };
	char directory[] = "/tmp/unix-sockets-XXXXXX";

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	listening = bound(SOCK_STREAM, "relative");
	assert_int_equal(listen(listening, 1), 0);
	datagram = bound(SOCK_DGRAM, "datagram");
	silent = bound(SOCK_STREAM, "silent");
	abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(abstract, (struct sockaddr *)&hidden, sizeof(hidden)), 0);
	assert_int_equal(listen(abstract, 1), 0);
	assert_int_equal(rename("datagram", "renamed"), 0);

	assert_int_equal(unix_sockets_read(&sockets), 0);
	assert_non_null(find(&sockets, "relative"));
	assert_string_equal(find(&sockets, "relative")->name, "relative");
	assert_int_equal(find(&sockets, "relative")->uid, getuid());
	assert_non_null(find(&sockets, "renamed"));
	assert_string_equal(find(&sockets, "renamed")->name, "datagram");
	assert_null(find(&sockets, "silent"));
	for (size_t i = 0; i < sockets.n; i++)
		assert_true(sockets.sockets[i].name[0] != 0);

	assert_int_equal(unlink("relative"), 0);
	assert_int_equal(unlink("renamed"), 0);
	assert_int_equal(unlink("silent"), 0);
	assert_int_equal(rmdir(directory), 0);
}

typedef struct Made {
	union {
		struct nlmsghdr header;
		uint8_t bytes[256];
	};
} Made;

static void put(Made *made, uint16_t type, const void *data, size_t size)
{
	struct rtattr attribute = { .rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = type };
	uint8_t *to = made->bytes + made->header.nlmsg_len;

	memcpy(to, &attribute, sizeof(attribute));
	if (size > 0)
		memcpy(to + RTA_LENGTH(0), data, size);
	made->header.nlmsg_len += (uint32_t)RTA_SPACE(size);
}

static void start(Made *made)
{
	const struct unix_diag_msg body = { .udiag_family = AF_UNIX,
					    .udiag_type = SOCK_DGRAM,
					    .udiag_state = 7 };

	*made = (Made){ .header = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				    .nlmsg_len = NLMSG_LENGTH(sizeof(body)) } };
	memcpy(made->bytes + NLMSG_HDRLEN, &body, sizeof(body));
}

static void odd_messages_are_passed_over(void **state)
{
	_cleanup_(unix_sockets_done) UnixSockets sockets = { 0 };
	const struct unix_diag_vfs file = { .udiag_vfs_ino = 7 };
	Made made;

	start(&made);
	put(&made, UNIX_DIAG_NAME, "/a", 2);
	assert_int_equal(unix_sockets_take(&sockets, &made.header), 0);
	put(&made, UNIX_DIAG_VFS, &file, sizeof(file) - 1);
	assert_int_equal(unix_sockets_take(&sockets, &made.header), 0);
	start(&made);
	put(&made, UNIX_DIAG_NAME, NULL, 0);
	put(&made, UNIX_DIAG_VFS, &file, sizeof(file));
	assert_int_equal(unix_sockets_take(&sockets, &made.header), 0);
	assert_int_equal(sockets.n, 0);

	/* A name without its end, and a length that leads out of the message. */
	start(&made);
	put(&made, UNIX_DIAG_VFS, &file, sizeof(file));
	put(&made, UNIX_DIAG_NAME, "/ab", 3);
	made.bytes[made.header.nlmsg_len] = 0xff;
	made.header.nlmsg_len += 4;
	assert_int_equal(unix_sockets_take(&sockets, &made.header), 0);
	assert_int_equal(sockets.n, 1);
	assert_string_equal(sockets.sockets[0].name, "/ab");

	made.header.nlmsg_len = NLMSG_HDRLEN + 4;
	assert_int_equal(unix_sockets_take(&sockets, &made.header), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_are_known_by_their_files),
		cmocka_unit_test(odd_messages_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
