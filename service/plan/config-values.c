/* SPDX-License-Identifier: MIT */
#include "service/plan/config-values.h"

#include <arpa/inet.h>

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
	if (!streq(text, "0") && !streq(text, "1"))
		return refuse_value(ret_problem, text, "is neither 0 nor 1; write one of them");
	return take_copy(text, ret);
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

/* Lexical only, since nothing here may look at the file system: repeated and trailing slashes go. */
static int parse_path(const char *text, char **ret, char **ret_problem)
{
	_cleanup_free_ char *path = NULL;
	size_t n = 0;

	if (text[0] != '/')
		return refuse_value(
			ret_problem, text,
			"is not an absolute path; write it from '/' on ('~' and variables are not expanded)");
	path = malloc(strlen(text) + 1);
	if (!path)
		return -ENOMEM;
	for (const char *part = text; *part;) {
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

static const struct {
	const char *name;
	ValueFunction parse;
	bool list, split;
} keys[CONFIG_KEY_MAX] = {
	[CONFIG_WORKSPACE_ROOT] = { "workspace-root", parse_workspace },
	[CONFIG_NO_FORGE] = { "no-forge", parse_flag },
	[CONFIG_EGRESS_JAIL] = { "egress-jail", parse_flag },
	[CONFIG_ALLOW_IP] = { "allow-ip", parse_address, .list = true },
	[CONFIG_LOCAL_PORT] = { "local-port", parse_port, .list = true },
	[CONFIG_LOCAL_MODEL_PORT] = { "local-model-port", parse_model_port },
	[CONFIG_CALLBACK_PORT] = { "callback-port", parse_port, .list = true },
	[CONFIG_ALLOW_WRITE] = { "allow-write", parse_writable, .list = true },
	[CONFIG_PASS_ENV] = { "pass-env", parse_variable, .list = true, .split = true },
	[CONFIG_GPU] = { "gpu", parse_flag },
	[CONFIG_ALLOW_DEVICE] = { "allow-device", parse_device, .list = true },
	[CONFIG_PROCFS] = { "procfs", parse_procfs },
	[CONFIG_FORGE_HOST] = { "forge-host", parse_host, .list = true },
	[CONFIG_DENY_GROUP] = { "deny-group", parse_group, .list = true },
	[CONFIG_MEMORY_MAX] = { "memory-max", parse_size },
	[CONFIG_TASKS_MAX] = { "tasks-max", parse_tasks },
	[CONFIG_MAX_SESSIONS] = { "max-sessions", parse_sessions },
};

const char *config_key_name(ConfigKey key)
{
	return keys[key].name;
}

ConfigKey config_key_from_name(const char *name, size_t n)
{
	for (int key = 0; key < CONFIG_KEY_MAX; key++)
		if (strlen(keys[key].name) == n && memcmp(keys[key].name, name, n) == 0)
			return (ConfigKey)key;
	return CONFIG_KEY_INVALID;
}

bool config_key_is_list(ConfigKey key)
{
	return keys[key].list;
}

bool config_key_is_split(ConfigKey key)
{
	return keys[key].split;
}

bool config_key_is_flag(ConfigKey key)
{
	return keys[key].parse == parse_flag;
}

int config_value_parse(ConfigKey key, const char *text, char **ret_text, char **ret_problem)
{
	if (strlen(text) > CONFIG_TEXT_MAX)
		return refuse(ret_problem, -EINVAL, "the value is longer than %u bytes; shorten it",
			      CONFIG_TEXT_MAX);
	return keys[key].parse(text, ret_text, ret_problem);
}

/* Letters compare without case, and '_' is '-'. */
static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' ? '-' : c;
}

/* Do a and b differ by at most one inserted, left out or replaced character? */
static bool nearly_equal(const char *a, const char *b)
{
	while (*a && folded(*a) == folded(*b)) {
		a++;
		b++;
	}
	for (int way = 0; way < 3; way++) {
		const char *x = a, *y = b;

		if (way != 1 && *x)
			x++;
		if (way != 2 && *y)
			y++;
		while (*x && folded(*x) == folded(*y)) {
			x++;
			y++;
		}
		if (!*x && !*y)
			return true;
	}
	return false;
}

const char *config_key_suggestion(const char *name)
{
	for (int key = 0; key < CONFIG_KEY_MAX; key++)
		if (nearly_equal(keys[key].name, name))
			return keys[key].name;
	return NULL;
}
