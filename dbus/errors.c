/* SPDX-License-Identifier: MIT */
#include "dbus/errors.h"

static const struct {
	const char *name, *sentence;
} errors[] = {
	{ CS_ERROR_NOT_AUTHORIZED, "You may not do this; an administrator can." },
	{ CS_ERROR_NESTED_CALLER, "The caller is confined in a way that a session would undo; call from an "
				  "ordinary login shell on the host." },
	{ CS_ERROR_BAD_CONFIGURATION,
	  "The configuration " CS_CONFIG_PATH " cannot be used; correct the file." },
	{ CS_ERROR_BAD_REQUEST, "The request is not well formed; compare it with the documented signature." },
	{ CS_ERROR_UNSAFE_WORKSPACE,
	  "This directory may not be a workspace; change to a project directory." },
	{ CS_ERROR_UNSAFE_ENTRY_POINT,
	  "A directory ahead of " CS_BIN_DIR " on PATH could hold a program in our "
	  "name; put " CS_BIN_DIR " first." },
	{ CS_ERROR_AGENT_MISSING, "The agent is not installed; 'claude-sandbox install' fetches it." },
	{ CS_ERROR_JAIL_UNAVAILABLE,
	  "The jail cannot be built on this machine; 'claude-sandbox doctor' says why." },
	{ CS_ERROR_ROUTES_DIFFER, "The jail's network does not hold what was meant; nothing was started." },
	{ CS_ERROR_LIMITS_EXCEEDED, "A limit of the service is reached; end a session or try again later." },
	{ CS_ERROR_NO_SUCH_SESSION, "There is no such session; 'claude-sandbox sessions' lists them." },
	{ CS_ERROR_PLAN_REFUSED, "The session's mounts cannot be arranged safely; nothing was started." },
	{ CS_ERROR_SESSION_DIED,
	  "The session ended before the agent ran; 'claude-sandbox doctor' looks for the cause." },
	{ CS_ERROR_SESSION_SILENT,
	  "The session does not answer; try again, or stop it ('claude-sandbox stop')." },
	{ CS_ERROR_SHUTTING_DOWN, "The service is stopping; try again." },
};

const char *error_name_at(size_t index)
{
	return index < ELEMENTSOF(errors) ? errors[index].name : NULL;
}

static const char *error_fallback(const char *name)
{
	for (size_t i = 0; name && i < ELEMENTSOF(errors); i++)
		if (streq(errors[i].name, name))
			return errors[i].sentence;
	return NULL;
}

bool error_is_known(const char *name)
{
	return error_fallback(name) != NULL;
}

const char *error_sentence(const char *name, const char *message)
{
	const char *fallback;

	if (message && message[strspn(message, " \t\r\n")] != '\0')
		return message;
	fallback = error_fallback(name);
	return fallback ? fallback : "The service refused without a reason; its log may say why.";
}

static const char *error_fix(int error)
{
	switch (error) {
	case -EMFILE:
	case -ETOOMANYREFS: /* unix(7): more descriptors under way than may be open */
		return "raise the limit of open files (ulimit -n) to 1024 or more";
	case -ENFILE:
		return "this machine has no open files left: end other programs";
	case -ENOMEM:
	case -ENOBUFS:
		return "this machine has no memory left: end other programs";
	case -EAGAIN:
		return "end other processes of this user, or raise their limit (ulimit -u)";
	case -ENOSPC:
	case -EDQUOT:
		return "free space there";
	case -EROFS:
		return "make that file system writable";
	case -ENOSYS:
	case -EOPNOTSUPP:
	case -EPROTONOSUPPORT:
	case -EAFNOSUPPORT:
	case -ENOPROTOOPT:
		return "this kernel, or the container around this machine, has to offer it";
	case -EPERM:
	case -EACCES:
		return "a security module or the container around this machine forbids it";
	case -EREMCHG:
		return "start again, and look for a program that changes networks";
	default:
		return "start again, and if it stays, see what 'claude-sandbox doctor' says";
	}
}

void error_add_fix(char **sentence, int error)
{
	const char *fix = error_fix(error);
	char *whole;
	size_t n;

	if (!*sentence || strchr(*sentence, ';'))
		return;
	n = strlen(*sentence);
	while (n > 0 && (*sentence)[n - 1] == '.')
		n--;
	if (asprintf(&whole, "%.*s; %s", (int)n, *sentence, fix) < 0)
		return;
	free(*sentence);
	*sentence = whole;
}
