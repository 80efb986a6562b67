/* SPDX-License-Identifier: MIT */
#include "service/daemon/allow-seen.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/names.h"
#include "service/daemon/config-file.h"
#include "service/daemon/log.h"
#include "service/daemon/run-dir.h"
#include "service/link/pack.h"

#define NAME "allow-ip"
#define NEW_NAME NAME ".new"
/* CONFIG_VALUES_MAX of "255.255.255.255/32" and a line's end. */
#define BYTES_MAX (CONFIG_VALUES_MAX * 19u)

struct AllowSeen {
	Audit *audit;
	char *path;
	char **addresses;
	bool known; /* they are what was there when somebody looked last */
};

int allow_seen_new(Audit *audit, const char *path, AllowSeen **ret)
{
	AllowSeen *seen = calloc(1, sizeof(*seen));

	if (seen)
		seen->path = strdup(path);
	if (!seen || !seen->path) {
		free(seen);
		return -ENOMEM;
	}
	seen->audit = audit;
	*ret = seen;
	return 0;
}

AllowSeen *allow_seen_free(AllowSeen *seen)
{
	if (!seen)
		return NULL;
	strings_free(seen->addresses);
	free(seen->path);
	free(seen);
	return NULL;
}

static bool has(char *const *addresses, const char *address)
{
	return addresses && strings_have(addresses, address);
}

/* ---- what is remembered ---- */

/* Return: the file's text, to be freed; NULL without one that root has written. */
static char *read_text(void)
{
	_cleanup_close_ int directory_fd = run_dir_open_log(false, NULL), fd = FD_NONE;
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (directory_fd < 0)
		return NULL;
	fd = openat(directory_fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != 0 || st.st_size > BYTES_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return NULL;
	n = read(fd, text, (size_t)st.st_size);
	if (n != st.st_size)
		return NULL;
	text[n] = '\0';
	return TAKE_PTR(text);
}

/* Whatever is no address is left out. */
static void recall(AllowSeen *seen)
{
	_cleanup_free_ char *text = read_text();
	char *rest = text, *line;

	seen->known = text != NULL;
	while (rest && (line = strsep(&rest, "\n"))) {
		_cleanup_free_ char *address = NULL;

		if (config_address_text(line, &address, NULL) >= 0 &&
		    strings_append(&seen->addresses, address) < 0)
			log_line("what allow-ip was is not known: no memory");
	}
}

static int write_text(int directory_fd, char *const *addresses)
{
	_cleanup_close_ int fd =
		openat(directory_fd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = 0;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; addresses && addresses[i] && r == 0; i++)
		r = dprintf(fd, "%s\n", addresses[i]) < 0 ? -errno : 0;
	if (r == 0 && (fsync(fd) < 0 || renameat(directory_fd, NEW_NAME, directory_fd, NAME) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory_fd, NEW_NAME, 0);
	return r;
}

/* Without it, the next service tells the same again: better twice than never. */
static void remember(const AllowSeen *seen)
{
	_cleanup_free_ char *problem = NULL;
	_cleanup_close_ int directory_fd = run_dir_open_log(true, &problem);
	int r = directory_fd < 0 ? directory_fd : write_text(directory_fd, seen->addresses);

	if (r < 0)
		log_line("what allow-ip is now is not kept in " CS_LOG_DIR ": %s",
			 problem ? problem : strerror(-r));
}

/* ---- what is there ---- */

static void tell(const AllowSeen *seen, const Config *config, char *const *now)
{
	const ConfigValue *value;
	struct stat st;
	bool there = stat(seen->path, &st) == 0;
	size_t index = 0;

	for (size_t i = 0; seen->addresses && seen->addresses[i]; i++)
		if (!has(now, seen->addresses[i]))
			audit_allow_ip_edited(seen->audit, "remove", seen->addresses[i], NULL, seen->path,
					      there ? &st : NULL);
	while ((value = config_next(config, CONFIG_ALLOW_IP, &index)))
		if (!has(seen->addresses, value->text))
			audit_allow_ip_edited(seen->audit, "add", value->text, value->comment, seen->path,
					      there ? &st : NULL);
}

static bool is_same(const AllowSeen *seen, char *const *now)
{
	size_t n = seen->addresses ? strings_count(seen->addresses) : 0;

	if (n != (now ? strings_count(now) : 0))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!has(now, seen->addresses[i]))
			return false;
	return true;
}

void allow_seen_look(AllowSeen *seen)
{
	_cleanup_(strings_freep) char **now = NULL;
	const ConfigValue *value;
	const Config *config;
	size_t index = 0;

	if (!seen->known)
		recall(seen);
	if (config_file_last(seen->path, &config, NULL) < 0)
		return;
	while ((value = config_next(config, CONFIG_ALLOW_IP, &index)))
		if (strings_append(&now, value->text) < 0)
			return;
	if (seen->known && is_same(seen, now))
		return;
	if (seen->known)
		tell(seen, config, now);
	strings_free(seen->addresses);
	seen->addresses = TAKE_PTR(now);
	seen->known = true;
	remember(seen);
}

void allow_seen_edited(AllowSeen *seen, const char *address, bool removed)
{
	size_t n = 0;

	if (!seen->known)
		recall(seen);
	if (seen->known && !removed && !has(seen->addresses, address) &&
	    strings_append(&seen->addresses, address) < 0)
		return;
	for (size_t i = 0; seen->known && removed && seen->addresses && seen->addresses[i]; i++)
		if (streq(seen->addresses[i], address))
			free(seen->addresses[i]);
		else
			seen->addresses[n++] = seen->addresses[i];
	if (seen->known && removed && seen->addresses)
		seen->addresses[n] = NULL;
	if (seen->known)
		remember(seen);
	allow_seen_look(seen);
}
