/* SPDX-License-Identifier: MIT */
#include "dbus/client-remote.h"

#define SSH_PATH "/usr/bin/ssh"
#define BRIDGE "systemd-stdio-bridge"
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define HOST_MOST 255u /* a name (RFC 1035, 2.3.4), with some room for a user */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define DIGITS "0123456789"

typedef struct Parts {
	const char *user, *host, *port; /* user and port may be NULL */
	size_t n_user, n_host;
} Parts;

static bool split_port(const char *rest, Parts *parts)
{
	size_t n;

	if (*rest == '\0')
		return true;
	if (*rest != ':')
		return false;
	parts->port = rest + 1;
	n = strspn(parts->port, DIGITS);
	return n > 0 && n <= 5 && parts->port[n] == '\0' && strtoul(parts->port, NULL, 10) - 1 < 65535;
}

static bool split(const char *text, Parts *ret)
{
	const char *at = strrchr(text, '@');
	Parts parts = { .host = at ? at + 1 : text };

	if (strlen(text) > HOST_MOST)
		return false;
	if (at) {
		parts.user = text;
		parts.n_user = (size_t)(at - text);
		if (parts.n_user == 0 || *text == '-' || strspn(text, NAME_CHARACTERS) < parts.n_user)
			return false;
	}
	if (*parts.host == '[') {
		parts.host++;
		parts.n_host = strspn(parts.host, "0123456789abcdefABCDEF:.");
		if (parts.n_host == 0 || parts.host[parts.n_host] != ']' ||
		    !split_port(parts.host + parts.n_host + 1, &parts))
			return false;
	} else {
		parts.n_host = strspn(parts.host, NAME_CHARACTERS);
		if (parts.n_host == 0 || *parts.host == '-' || !split_port(parts.host + parts.n_host, &parts))
			return false;
	}
	*ret = parts;
	return true;
}

bool client_remote_is_valid(const char *host)
{
	return split(host, &(Parts){ 0 });
}

/*
 * Of the characters that are left only ':' and '@' mean something in an address (D-Bus specification, "Server
 * Addresses").
 */
static char *escape(const char *text)
{
	char *escaped = malloc(3 * strlen(text) + 1), *to = escaped;

	for (; escaped && *text; text++) {
		const char *code = *text == ':' ? "%3a" : *text == '@' ? "%40" : NULL;

		if (code)
			to = mempcpy(to, code, 3);
		else
			*to++ = *text;
	}
	if (escaped)
		*to = '\0';
	return escaped;
}

char *client_remote_address(const char *host)
{
	_cleanup_free_ char *where = NULL;
	char *address = NULL;
	Parts parts = { 0 };

	if (!split(host, &parts))
		return NULL;
	if (asprintf(&address, "%.*s%s%.*s", (int)parts.n_user, parts.user ?: "", parts.user ? "@" : "",
		     (int)parts.n_host, parts.host) < 0)
		return NULL;
	where = escape(address);
	free(address);
	if (!where)
		return NULL;
	if (asprintf(&address, "unixexec:path=" SSH_PATH ",argv1=-xT%s%s,argv%d=--,argv%d=%s,argv%d=" BRIDGE,
		     parts.port ? ",argv2=-p,argv3=" : "", parts.port ?: "", parts.port ? 4 : 2,
		     parts.port ? 5 : 3, where, parts.port ? 6 : 4) < 0)
		return NULL;
	return address;
}

int client_open_remote(const char *host, sd_bus **ret, sd_bus_error *reterr)
{
	_cleanup_free_ char *address = client_remote_address(host);
	int r;

	if (!address || setenv("PATH", SYSTEM_PATH, 1) < 0 || unsetenv("SSH_ASKPASS") < 0 ||
	    unsetenv("SSH_ASKPASS_REQUIRE") < 0)
		return sd_bus_error_set_errno(reterr, -ENOMEM);
	if (access(SSH_PATH, X_OK) < 0)
		return sd_bus_error_setf(reterr, SD_BUS_ERROR_FILE_NOT_FOUND,
					 SSH_PATH " cannot be started here (%s); install openssh-client",
					 strerror(errno));
	r = client_open_address(address, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

static bool is_broken(int error, const sd_bus_error *e)
{
	switch (error) {
	case -ECONNRESET:
	case -ENOTCONN:
	case -EPIPE:
	case -ESHUTDOWN:
		return true;
	case -ETIMEDOUT: /* of ssh's login, unless the service itself was too slow */
		return !sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY);
	default:
		return false;
	}
}

char *client_remote_sentence(const char *host, int error, const sd_bus_error *e)
{
	_cleanup_free_ char *there = NULL;
	char *sentence = NULL;

	if (e && sd_bus_error_has_name(e, SD_BUS_ERROR_FILE_NOT_FOUND))
		(void)refuse(&sentence, 0, "%s", e->message);
	else if (is_broken(error, e))
		(void)refuse(&sentence, 0,
			     "no system bus answers over ssh at %s; look whether ssh logs in there, and "
			     "whether " BRIDGE " (package systemd) and the bus are there",
			     host);
	else if ((there = client_sentence_there(error, e)))
		(void)refuse(&sentence, 0, "%s: %s", host, there);
	return sentence;
}
