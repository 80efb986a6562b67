/* SPDX-License-Identifier: MIT */
#include "service/daemon/config-watch.h"

#include <sys/inotify.h>

#include "service/daemon/config-file.h"
#include "service/daemon/log.h"
#include "service/link/pack.h"

/* The file's directory, since editors put a new file in the old one's place. */
#define EVENTS                                                                                           \
	(IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR | \
	 IN_DONT_FOLLOW)

/* What the file says, for comparison; an error has its sentence in both. */
typedef struct Content {
	char **policy;
	char **allow_ip;
	bool no_memory;
} Content;

struct ConfigWatch {
	sd_event *event;
	char *path;
	const char *name; /* in path */
	ConfigWatchFunction function;
	void *userdata;
	sd_event_source *source;
	Content content;
};

static void content_done(Content *content)
{
	strings_free(content->policy);
	strings_free(content->allow_ip);
	*content = (Content){ 0 };
}

static void add_setting(void *userdata, const char *name, const char *value, const char *origin)
{
	const char *const parts[] = { name, value, origin };
	Content *content = userdata;

	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		if (strings_append(&content->policy, parts[i] ? parts[i] : "") < 0)
			content->no_memory = true;
}

static void add_address(Content *content, const ConfigValue *value)
{
	if (strings_append(&content->allow_ip, value->text) < 0 ||
	    strings_append(&content->allow_ip, value->comment ? value->comment : "") < 0)
		content->no_memory = true;
}

static Content content_read(const char *path)
{
	_cleanup_free_ char *problem = NULL;
	const ConfigValue *value;
	const Config *config;
	Content content = { 0 };
	size_t index = 0;
	int r;

	r = config_file_last(path, &config, &problem);
	if (r < 0) {
		const char *sentence = problem ? problem : strerror(-r);

		content.no_memory = strings_append(&content.policy, sentence) < 0 ||
				    strings_append(&content.allow_ip, sentence) < 0;
		return content;
	}
	config_policy(config, add_setting, &content);
	while ((value = config_next(config, CONFIG_ALLOW_IP, &index)))
		add_address(&content, value);
	return content;
}

static bool strings_equal(char *const *a, char *const *b)
{
	size_t n = strings_count(a);

	if (strings_count(b) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!streq(a[i], b[i]))
			return false;
	return true;
}

static int on_directory(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	ConfigWatch *watch = userdata;
	bool policy, allow_ip;
	Content now;

	/* Without a name it is about the queue or the directory, and anything may have happened. */
	if (event->len > 0 && !streq(event->name, watch->name))
		return 0;
	now = content_read(watch->path);
	policy = now.no_memory || !strings_equal(now.policy, watch->content.policy);
	allow_ip = now.no_memory || !strings_equal(now.allow_ip, watch->content.allow_ip);
	content_done(&watch->content);
	watch->content = now;
	if (policy || allow_ip)
		watch->function(watch->userdata, policy, allow_ip);
	return 0;
}

int config_watch_new(sd_event *event, const char *path, ConfigWatchFunction function, void *userdata,
		     ConfigWatch **ret)
{
	_cleanup_(config_watch_freep) ConfigWatch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	watch->event = sd_event_ref(event);
	watch->function = function;
	watch->userdata = userdata;
	watch->path = strdup(path);
	if (!watch->path)
		return -ENOMEM;
	watch->name = strrchr(watch->path, '/') + 1;
	*ret = TAKE_PTR(watch);
	return 0;
}

ConfigWatch *config_watch_free(ConfigWatch *watch)
{
	if (!watch)
		return NULL;
	(void)config_watch_set(watch, false);
	sd_event_unref(watch->event);
	free(watch->path);
	free(watch);
	return NULL;
}

bool config_watch_set(ConfigWatch *watch, bool on)
{
	_cleanup_free_ char *directory = NULL;
	int r;

	if (on == (watch->source != NULL))
		return false;
	if (!on) {
		watch->source = sd_event_source_disable_unref(watch->source);
		content_done(&watch->content);
		return false;
	}
	directory = strndup(watch->path, (size_t)(watch->name - watch->path));
	if (!directory)
		return false;
	r = sd_event_add_inotify(watch->event, &watch->source, directory, EVENTS, on_directory, watch);
	if (r < 0) {
		watch->source = NULL;
		log_line("%s cannot be watched, so nobody is told of changes: %s", directory, strerror(-r));
		return false;
	}
	/* After the watch began, so that no change falls between. */
	watch->content = content_read(watch->path);
	return true;
}
