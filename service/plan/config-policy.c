/* SPDX-License-Identifier: MIT */
#include "service/plan/config.h"

#include "service/plan/config-keys.h"
#include "service/plan/config-values.h"

#define FROM_DEFAULT "default"

/* Membership of one of these is root by another name, or the way to every other user's data. */
static const char *const default_deny_groups[] = {
	"docker", "lxd",  "incus",  "incus-admin", "libvirt", "podman",
	"disk",   "kmem", "shadow", "sudo",        "wheel",   "adm",
};

static const char *setting(const Config *config, ConfigKey key)
{
	const ConfigValue *value = config_find(config, key, NULL);

	return value ? value->text : config_row(key)->initial;
}

bool config_flag(const Config *config, ConfigKey key)
{
	return streq(setting(config, key) ?: "0", "1");
}

uint64_t config_number(const Config *config, ConfigKey key)
{
	return strtoull(setting(config, key) ?: "0", NULL, 10);
}

const char *config_text(const Config *config, ConfigKey key)
{
	return setting(config, key);
}

ConfigProcfs config_procfs(const Config *config)
{
	const char *text = setting(config, CONFIG_PROCFS);

	if (streq(text, "private"))
		return PROCFS_PRIVATE;
	return streq(text, "outer") ? PROCFS_OUTER : PROCFS_AUTO;
}

bool config_history_all(const Config *config)
{
	return streq(setting(config, CONFIG_HISTORY), "all");
}

const ConfigValue *config_next(const Config *config, ConfigKey key, size_t *index)
{
	while (*index < config->n_values) {
		const ConfigValue *value = &config->values[(*index)++];

		if (value->key == key)
			return value;
	}
	return NULL;
}

char **config_deny_groups(const Config *config)
{
	_cleanup_(strings_freep) char **groups = NULL;
	const ConfigValue *value;
	size_t index = 0;

	while ((value = config_next(config, CONFIG_DENY_GROUP, &index)))
		if (strings_append(&groups, value->text) < 0)
			return NULL;
	for (size_t i = 0;
	     !config_find(config, CONFIG_DENY_GROUP, NULL) && i < ELEMENTSOF(default_deny_groups); i++)
		if (strings_append(&groups, default_deny_groups[i]) < 0)
			return NULL;
	return TAKE_PTR(groups);
}

/* A size as a person writes it: with the largest suffix that leaves a whole number. */
static char *show_size(const char *text)
{
	static const char suffixes[] = "KMG";
	unsigned long long size = strtoull(text, NULL, 10);
	size_t n = 0;
	char *shown;

	while (n < strlen(suffixes) && size != 0 && size % 1024 == 0) {
		size /= 1024;
		n++;
	}
	if (asprintf(&shown, "%llu%.1s", size, n > 0 ? &suffixes[n - 1] : "") < 0)
		return NULL;
	return shown;
}

void config_policy(const Config *config, ConfigPolicyFunction function, void *userdata)
{
	for (int k = 0; k < CONFIG_KEY_MAX; k++) {
		ConfigKey key = (ConfigKey)k;
		const ConfigValue *value;
		size_t index = 0;

		while ((value = config_next(config, key, &index))) {
			_cleanup_free_ char *shown = config_row(key)->type == TYPE_SIZE
							     ? show_size(value->text)
							     : config_display(value->text);

			function(userdata, config_key_name(key), shown ?: "?", value->origin);
		}
		if (config_find(config, key, NULL))
			continue;
		if (key != CONFIG_DENY_GROUP) {
			function(userdata, config_key_name(key), config_row(key)->initial ?: "",
				 FROM_DEFAULT);
			continue;
		}
		for (size_t i = 0; i < ELEMENTSOF(default_deny_groups); i++)
			function(userdata, config_key_name(key), default_deny_groups[i], FROM_DEFAULT);
	}
}

void config_pack(const Config *config, PackWriter *w)
{
	pack_u32(w, (uint32_t)config->n_values);
	for (size_t i = 0; i < config->n_values; i++) {
		pack_u32(w, config->values[i].key);
		pack_string(w, config->values[i].text);
		pack_string(w, config->values[i].comment);
		pack_string(w, config->values[i].origin);
	}
}

int config_unpack(PackReader *r, Config *ret)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	uint32_t n = unpack_u32(r);

	if (!r->error && n > CONFIG_VALUES_MAX)
		r->error = -EBADMSG;
	for (uint32_t i = 0; !r->error && i < n; i++) {
		ConfigKey key = (ConfigKey)unpack_enum(r, CONFIG_KEY_MAX);
		_cleanup_free_ char *text = unpack_string(r, CONFIG_TEXT_MAX);
		_cleanup_free_ char *comment = unpack_string(r, CONFIG_COMMENT_MAX);
		_cleanup_free_ char *origin = unpack_string(r, CONFIG_ORIGIN_MAX);

		if (!r->error)
			r->error = config_append(&config, key, text, comment, origin);
	}
	if (r->error)
		return r->error;

	*ret = config;
	config = CONFIG_INIT;
	return 0;
}
