/* SPDX-License-Identifier: MIT */
#include "service/plan/config-values.h"

#include <arpa/inet.h>

#include "service/plan/config-keys.h"
#include "service/plan/device-rules.h"
#include "service/plan/workspace-rules.h"

/* The most processes that Linux can number (proc(5), pid_max): 2^22. */
#define TASKS_MOST 4194304u
#define SESSIONS_MOST 10000u
/* RFC 1123 section 2.1, RFC 1035 section 2.3.4 */
#define HOST_NAME_MOST 253u
#define LABEL_MOST 63u
/* LOGIN_NAME_MAX, which bounds the names of groups too. */
#define NAME_MOST 255u

typedef int (*ValueFunction)(const char *text, char **ret_text, char **ret_problem);

static int refuse_value(char **ret_problem, const char *text, const char *why)
{
	_cleanup_free_ char *shown = config_display(text);

	return shown ? refuse(ret_problem, -EINVAL, "'%s' %s", shown, why) : -ENOMEM;
}

static int take_copy(const char *text, char **ret)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

/* Plain decimal: digits alone, no sign, no leading zero, at most max. */
static bool number_parse(const char *text, size_t n, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (n == 0 || (text[0] == '0' && n > 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned digit = (unsigned char)text[i] - (unsigned)'0';

		if (digit > 9 || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = value;
	return true;
}

static int parse_flag(const char *text, char **ret, char **ret_problem)
{
	static const char *const words[][2] = {
		{ "0", "1" }, { "no", "yes" }, { "off", "on" }, { "false", "true" }
	};

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		for (unsigned value = 0; value < 2; value++)
			if (strcasecmp(text, words[i][value]) == 0)
				return take_copy(words[0][value], ret);
	return refuse_value(ret_problem, text, "is neither yes nor no; write one of them");
}

static int parse_port(const char *text, char **ret, char **ret_problem)
{
	uint64_t port;

	if (!number_parse(text, strlen(text), 65535, &port) || port == 0)
		return refuse_value(
			ret_problem, text,
			"is not a TCP port; write one number from 1 to 65535, without sign or leading zero");
	return take_copy(text, ret);
}

/* ip_unprivileged_port_start of a new network namespace, whatever the machine's is (ip(7)). */
#define UNPRIVILEGED_PORT_FIRST 1024

static int parse_callback_port(const char *text, char **ret, char **ret_problem)
{
	int r = parse_port(text, ret, ret_problem);

	if (r < 0 || strtoul(*ret, NULL, 10) >= UNPRIVILEGED_PORT_FIRST)
		return r;
	free(*ret);
	*ret = NULL;
	return refuse_value(ret_problem, text,
			    "is a port that no agent can listen on; write one from 1024 to 65535");
}

static int parse_model_port(const char *text, char **ret, char **ret_problem)
{
	uint64_t port;

	if (!number_parse(text, strlen(text), 65535, &port))
		return refuse_value(
			ret_problem, text,
			"is not a TCP port; write one number from 1 to 65535, without sign or leading zero, "
			"or 0 for none");
	return take_copy(text, ret);
}

static int parse_tasks(const char *text, char **ret, char **ret_problem)
{
	uint64_t count;

	if (!number_parse(text, strlen(text), TASKS_MOST, &count) || count == 0)
		return refuse_value(ret_problem, text,
				    "is not a count of tasks; write a number from 1 to 4194304");
	return take_copy(text, ret);
}

static int parse_sessions(const char *text, char **ret, char **ret_problem)
{
	uint64_t count;

	if (!number_parse(text, strlen(text), SESSIONS_MOST, &count) || count == 0)
		return refuse_value(ret_problem, text,
				    "is not a count of sessions; write a number from 1 to 10000");
	return take_copy(text, ret);
}

/* Bytes, or with K, M, G as powers of 1024, as systemd.resource-control(5) writes memory limits. */
static int parse_size(const char *text, char **ret, char **ret_problem)
{
	static const char suffixes[] = "KMG";
	size_t n = strlen(text);
	unsigned shift = 0;
	uint64_t value;
	char *canonical;

	if (n > 0) {
		const char *suffix = strchr(suffixes, text[n - 1]);

		if (suffix) {
			shift = 10 * (unsigned)(suffix - suffixes + 1);
			n--;
		}
	}
	/* Limits above a signed 64-bit count of bytes mean nothing to the kernel. */
	if (!number_parse(text, n, (uint64_t)INT64_MAX >> shift, &value) || value == 0)
		return refuse_value(
			ret_problem, text,
			"is not a size; write a number of bytes above 0, or one with the suffix K, M or G "
			"(2G), or leave the line out for no limit");
	if (asprintf(&canonical, "%llu", (unsigned long long)(value << shift)) < 0)
		return -ENOMEM;
	*ret = canonical;
	return 0;
}

/* Lexical only, since nothing here may look at the file system: repeated and trailing slashes go; "~" stays for
 * the home of whoever starts an agent. */
static int parse_path(const char *text, char **ret, char **ret_problem)
{
	_cleanup_free_ char *path = NULL;
	bool home = text[0] == '~' && (text[1] == '/' || text[1] == '\0');
	size_t n = 0;

	if (text[0] != '/' && !home)
		return refuse_value(
			ret_problem, text,
			"is not an absolute path; write it from '/' on, or from '~/' for each user's home "
			"(variables are not expanded)");
	path = malloc(strlen(text) + 1);
	if (!path)
		return -ENOMEM;
	if (home)
		path[n++] = '~';
	for (const char *part = text + home; *part;) {
		size_t length;

		part += strspn(part, "/");
		length = strcspn(part, "/");
		if (length == 0)
			break;
		if ((length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
			return refuse_value(ret_problem, text,
					    "has a '.' or '..' in it; write the path without them");
		path[n++] = '/';
		memcpy(path + n, part, length);
		n += length;
		part += length;
	}
	if (n == 0)
		path[n++] = '/';
	path[n] = '\0';
	*ret = TAKE_PTR(path);
	return 0;
}

/* What the path alone forbids is refused here, where the line is known, and not first at each launch. */
static int refuse_never(char **ret_problem, const char *text, const char *cause)
{
	_cleanup_free_ char *shown = config_display(text);

	return shown ? refuse(ret_problem, -EINVAL, "'%s' is never given to an agent: %s; remove it", shown,
			      cause)
		     : -ENOMEM;
}

static int parse_writable(const char *text, char **ret, char **ret_problem)
{
	_cleanup_free_ char *path = NULL;
	const char *cause;
	int r = parse_path(text, &path, ret_problem);

	if (r < 0)
		return r;
	cause = allow_write_refusal(path);
	if (cause)
		return refuse_never(ret_problem, text, cause);
	*ret = TAKE_PTR(path);
	return 0;
}

static int parse_workspace(const char *text, char **ret, char **ret_problem)
{
	_cleanup_free_ char *path = NULL;
	const char *cause;
	int r = parse_path(text, &path, ret_problem);

	if (r < 0)
		return r;
	cause = workspace_root_refusal(path);
	if (cause)
		return refuse_never(ret_problem, text, cause);
	*ret = TAKE_PTR(path);
	return 0;
}

static int parse_device(const char *text, char **ret, char **ret_problem)
{
	_cleanup_free_ char *path = NULL;
	const char *cause;
	int r = parse_path(text, &path, ret_problem);

	if (r < 0)
		return r;
	if (!starts_with(path, "/dev/"))
		return refuse_value(ret_problem, text,
				    "is not below /dev; name a device node such as /dev/kvm");
	cause = device_path_refusal(path);
	if (cause)
		return refuse_never(ret_problem, text, cause);
	*ret = TAKE_PTR(path);
	return 0;
}

static int parse_address(const char *text, char **ret, char **ret_problem)
{
	char name[INET_ADDRSTRLEN];
	struct in_addr network;
	uint32_t address = 0;
	unsigned length = 0;
	char *canonical;
	int r;

	r = config_parse_address(text, &address, &length, ret_problem);
	if (r < 0)
		return r;
	network.s_addr = htonl(address);
	inet_ntop(AF_INET, &network, name, sizeof(name));
	r = length == 32 ? asprintf(&canonical, "%s", name) : asprintf(&canonical, "%s/%u", name, length);
	if (r < 0)
		return -ENOMEM;
	*ret = canonical;
	return 0;
}

static int parse_variable(const char *text, char **ret, char **ret_problem)
{
	const char *why = config_pass_env_refusal(text);

	if (why)
		return refuse_value(ret_problem, text, why);
	return take_copy(text, ret);
}

static int parse_procfs(const char *text, char **ret, char **ret_problem)
{
	if (!streq(text, "auto") && !streq(text, "private") && !streq(text, "outer"))
		return refuse_value(ret_problem, text,
				    "is not one of auto, private and outer; write one of them");
	return take_copy(text, ret);
}

static int parse_history(const char *text, char **ret, char **ret_problem)
{
	if (!streq(text, "project") && !streq(text, "all"))
		return refuse_value(ret_problem, text, "is neither project nor all; write one of them");
	return take_copy(text, ret);
}

/* The name ends in a URL of the session's git configuration: letters, digits, hyphens and dots alone. */
static int parse_host(const char *text, char **ret, char **ret_problem)
{
	static const char fix[] =
		"is not a host name; write one such as gitlab.example.org, without https://, port "
		"or path";
	_cleanup_free_ char *host = strdup(text);
	size_t label = 0;

	if (!host)
		return -ENOMEM;
	if (strlen(host) > HOST_NAME_MOST)
		return refuse_value(ret_problem, text, fix);
	for (char *c = host;; c++) {
		if (*c == '.' || *c == '\0') {
			if (label == 0 || label > LABEL_MOST || c[-1] == '-')
				return refuse_value(ret_problem, text, fix);
			if (*c == '\0')
				break;
			label = 0;
			continue;
		}
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
		if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || (*c == '-' && label > 0)))
			return refuse_value(ret_problem, text, fix);
		label++;
	}
	*ret = TAKE_PTR(host);
	return 0;
}

/* A group that does not exist denies nothing, so what cannot be one name is refused instead of ignored. */
static int parse_group(const char *text, char **ret, char **ret_problem)
{
	bool digits = true;

	if (strlen(text) > NAME_MOST || text[0] == '-')
		return refuse_value(ret_problem, text,
				    "is not the name of a group; write a name as in /etc/group");
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c <= ' ' || *c == 0x7f || *c == ',' || *c == ':')
			return refuse_value(ret_problem, text,
					    "is not the name of one group; write one group on each line");
		digits = digits && *c >= '0' && *c <= '9';
	}
	if (digits)
		return refuse_value(ret_problem, text, "is a number; write the name of the group");
	return take_copy(text, ret);
}

static const ValueFunction parsers[CONFIG_TYPE_MAX] = {
	[TYPE_FLAG] = parse_flag,
	[TYPE_PORT] = parse_port,
	[TYPE_PORT_OR_0] = parse_model_port,
	[TYPE_CALLBACK] = parse_callback_port,
	[TYPE_TASKS] = parse_tasks,
	[TYPE_SESSIONS] = parse_sessions,
	[TYPE_SIZE] = parse_size,
	[TYPE_PATH] = parse_path,
	[TYPE_WRITABLE] = parse_writable,
	[TYPE_WORKSPACE] = parse_workspace,
	[TYPE_DEVICE] = parse_device,
	[TYPE_ADDRESS] = parse_address,
	[TYPE_VARIABLE] = parse_variable,
	[TYPE_PROCFS] = parse_procfs,
	[TYPE_HISTORY] = parse_history,
	[TYPE_HOST] = parse_host,
	[TYPE_GROUP] = parse_group,
};

int config_value_parse(ConfigKey key, const char *text, char **ret_text, char **ret_problem)
{
	if (strlen(text) > CONFIG_TEXT_MAX)
		return refuse(ret_problem, -EINVAL, "the value is longer than %u bytes; shorten it",
			      CONFIG_TEXT_MAX);
	return parsers[config_row(key)->type](text, ret_text, ret_problem);
}
