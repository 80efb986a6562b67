/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * /etc/claude-sandbox.conf and its environment twins, parsed strictly. Pure: the text comes in, values and
 * sentences come out. One flat list of values keeps each with its origin, so that GetPolicy, ListAllowIp, the
 * request to the session and the messages are all read off the same list.
 */

#include "dbus/base.h"
#include "service/link/pack.h"

#define CONFIG_BYTES_MAX (256u * 1024)
#define CONFIG_VALUES_MAX 1024u

/* In the order of claude-sandbox.conf(5); config_key_name() gives the spelling in the file. */
typedef enum ConfigKey {
	CONFIG_WORKSPACE_ROOT,
	CONFIG_NO_FORGE,
	CONFIG_EGRESS_JAIL,
	CONFIG_ALLOW_IP,
	CONFIG_LOCAL_PORT,
	CONFIG_LOCAL_MODEL_PORT,
	CONFIG_CALLBACK_PORT,
	CONFIG_TOOLS,
	CONFIG_ALLOW_READ,
	CONFIG_ALLOW_WRITE,
	CONFIG_HIDE,
	CONFIG_PASS_ENV,
	CONFIG_GPU,
	CONFIG_ALLOW_DEVICE,
	CONFIG_PROCFS,
	CONFIG_HISTORY,
	CONFIG_FORGE_HOST,
	CONFIG_DENY_GROUP,
	CONFIG_MEMORY_MAX,
	CONFIG_TASKS_MAX,
	CONFIG_MAX_SESSIONS,
	CONFIG_KEY_MAX,
	CONFIG_KEY_INVALID = -EINVAL,
} ConfigKey;

typedef enum ConfigProcfs {
	PROCFS_AUTO,
	PROCFS_PRIVATE,
	PROCFS_OUTER,
	PROCFS_MAX,
} ConfigProcfs;

typedef struct ConfigValue {
	ConfigKey key;
	char *text;    /* canonical: "1"/"0" for flags, decimal for numbers, "A.B.C.D/LEN" without "/32" for
			  addresses */
	char *comment; /* what followed '#' on the line, trimmed; "" when nothing did */
	char *origin;  /* "/etc/claude-sandbox.conf:LINE", "environment CLAUDE_SANDBOX_..." or "default" */
} ConfigValue;

typedef struct Config {
	ConfigValue *values;
	size_t n_values;
} Config;

#define CONFIG_INIT ((Config){ 0 })

void config_done(Config *config);
const char *config_key_name(ConfigKey key);
ConfigKey config_key_from_name(const char *name, size_t n);
bool config_key_is_list(ConfigKey key);

/*
 * Parse size bytes of a file called path. A missing file is size 0. Defaults are not in the list: the getters
 * supply them. Return: 0; -EINVAL with *ret_problem "PATH:LINE: reason and fix"; -E2BIG; -ENOMEM. *ret is set
 * only on success.
 */
int config_parse(const char *path, const char *text, size_t size, Config *ret, char **ret_problem);

/*
 * Add the twins found in environment (NAME=VALUE strings). A scalar replaces when it narrows; lists add.
 * ret_widenings receives one sentence in words for each twin that asks for more than the configuration gives
 * (jail off, allow-ip, allow-write, ports, devices, workspace-root, pass-env, gpu, history,
 * forge turned back on); the caller decides. Ports in both directions are refused here too. Return: 0; -EINVAL with
 * *ret_problem naming the variable; -ENOMEM.
 */
int config_add_environment(Config *config, char *const *environment, char ***ret_widenings,
			   char **ret_problem);

/*
 * Is name (of a variable, up to '=') one of ours? What begins with CLAUDE_SANDBOX_ and is none may be
 * misspelt, and whoever set it believes that it holds.
 */
bool config_twin_is_known(const char *name, size_t n);

/* Getters, with the defaults of claude-sandbox.conf(5). */
bool config_flag(const Config *config, ConfigKey key); /* no-forge, egress-jail, gpu */
uint64_t
config_number(const Config *config,
	      ConfigKey key); /* tasks-max 4096, max-sessions 64, memory-max 0 = none, local-model-port 0 */
const char *config_text(const Config *config, ConfigKey key); /* workspace-root, or NULL */
ConfigProcfs config_procfs(const Config *config);
bool config_history_all(const Config *config);
/* Walk the values of one key; *index starts at 0. Return: the next or NULL. */
const ConfigValue *config_next(const Config *config, ConfigKey key, size_t *index);
/*
 * deny-group: the default list when the file names none. Return: NULL-terminated, to be freed with
 * strings_free(), or NULL without memory.
 */
char **config_deny_groups(const Config *config);

/* Every effective setting for GetPolicy: name, value, origin ("default" where nothing was said). */
typedef void (*ConfigPolicyFunction)(void *userdata, const char *name, const char *value, const char *origin);
void config_policy(const Config *config, ConfigPolicyFunction function, void *userdata);

/*
 * IPv4 "A.B.C.D" or "A.B.C.D/LEN" with 16 <= LEN <= 32 and no host bits; refuses the default route, loopback,
 * multicast, 240/4, 0/8 and our own synthetic addresses. Return: 0, or -EINVAL with the reason.
 */
int config_parse_address(const char *text, uint32_t *ret_address /* host order */, unsigned *ret_length,
			 char **ret_problem);

/* The same, as ConfigValue.text has it. Return: as config_parse_address(); -ENOMEM. */
int config_address_text(const char *text, char **ret, char **ret_problem);

/* May this name be passed by pass-env? Return: NULL, or why not. */
const char *config_pass_env_refusal(const char *name);

void config_pack(const Config *config, PackWriter *w);
/* Return: 0, -EBADMSG, -ENOMEM. Text is bounded, keys are checked; values are trusted (root wrote the
 * snapshot). */
int config_unpack(PackReader *r, Config *ret);
