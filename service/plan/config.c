/* SPDX-License-Identifier: MIT */
#include "service/plan/config.h"

#include "service/plan/config-values.h"

static void value_done(ConfigValue *value)
{
	free(value->text);
	free(value->comment);
	free(value->origin);
}

void config_done(Config *config)
{
	for (size_t i = 0; i < config->n_values; i++)
		value_done(&config->values[i]);
	free(config->values);
	*config = CONFIG_INIT;
}

ConfigValue *config_find(const Config *config, ConfigKey key, const char *text)
{
	for (size_t i = 0; i < config->n_values; i++) {
		ConfigValue *value = &config->values[i];

		if (value->key == key && (!text || streq(value->text, text)))
			return value;
	}
	return NULL;
}

int config_append(Config *config, ConfigKey key, const char *text, const char *comment, const char *origin)
{
	ConfigValue *grown, value = { .key = key };

	if (config->n_values >= CONFIG_VALUES_MAX)
		return -E2BIG;
	grown = reallocarray(config->values, config->n_values + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	config->values = grown;

	value.text = strdup(text);
	value.comment = strdup(comment);
	value.origin = strdup(origin);
	if (!value.text || !value.comment || !value.origin) {
		value_done(&value);
		return -ENOMEM;
	}
	config->values[config->n_values++] = value;
	return 0;
}

void config_remove(Config *config, ConfigValue *value)
{
	size_t index = (size_t)(value - config->values);

	value_done(value);
	memmove(value, value + 1, (config->n_values - index - 1) * sizeof(*value));
	config->n_values--;
}

int config_check_ports(const Config *config, char **ret_problem)
{
	for (size_t i = 0; i < config->n_values; i++) {
		const ConfigValue *back = &config->values[i], *forth;

		if (back->key != CONFIG_CALLBACK_PORT)
			continue;
		forth = config_find(config, CONFIG_LOCAL_PORT, back->text);
		if (!forth)
			forth = config_find(config, CONFIG_LOCAL_MODEL_PORT, back->text);
		if (forth)
			return refuse(
				ret_problem, -EINVAL,
				"%s: port %s is a callback-port and, by %s, also a %s; a port crosses in one "
				"direction only: remove one of the two",
				back->origin, back->text, forth->origin, config_key_name(forth->key));
	}
	return 0;
}

/* Where the parser is, for the origin of what it finds and the place of what it refuses. */
typedef struct Place {
	const char *path;
	unsigned line;
} Place;

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static void trim(const char **text, size_t *n)
{
	while (*n > 0 && is_space(**text)) {
		(*text)++;
		(*n)--;
	}
	while (*n > 0 && is_space((*text)[*n - 1]))
		(*n)--;
}

static int value_add(Config *config, const Place *place, ConfigKey key, const char *text, const char *comment,
		     char **ret_problem)
{
	_cleanup_free_ char *canonical = NULL, *origin = NULL, *reason = NULL;
	const ConfigValue *before;
	int r;

	r = config_value_parse(key, text, &canonical, &reason);
	if (r == -EINVAL)
		return refuse(ret_problem, r, "%s:%u: %s: %s", place->path, place->line, config_key_name(key),
			      reason);
	if (r < 0)
		return r;

	/* A value that a list has already adds nothing: the first line that named it stays its origin. */
	before = config_find(config, key, config_key_is_list(key) ? canonical : NULL);
	if (before && config_key_is_list(key))
		return 0;
	if (before)
		return refuse(ret_problem, -EINVAL,
			      "%s:%u: '%s' is set already at %s; keep one of the two lines", place->path,
			      place->line, config_key_name(key), before->origin);

	if (asprintf(&origin, "%s:%u", place->path, place->line) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	r = config_append(config, key, canonical, comment, origin);
	if (r == -E2BIG)
		return refuse(ret_problem, r, "%s:%u: more than %u values; shorten the lists", place->path,
			      place->line, CONFIG_VALUES_MAX);
	return r;
}

static int values_add(Config *config, const Place *place, ConfigKey key, const char *text,
		      const char *comment, char **ret_problem)
{
	if (!config_key_is_split(key))
		return value_add(config, place, key, text, comment, ret_problem);

	for (;;) {
		_cleanup_free_ char *one = NULL;
		size_t n;
		int r;

		text += strspn(text, " \t,");
		n = strcspn(text, " \t,");
		if (n == 0)
			return 0;
		one = strndup(text, n);
		if (!one)
			return -ENOMEM;
		r = value_add(config, place, key, one, comment, ret_problem);
		if (r < 0)
			return r;
		text += n;
	}
}

static int refuse_unknown(const Place *place, const char *name, char **ret_problem)
{
	_cleanup_free_ char *shown = config_display(name);
	const char *meant = config_key_suggestion(name);
	size_t word = strcspn(name, " \t");
	ConfigKey first = config_key_from_name(name, word);

	if (!shown)
		return -ENOMEM;
	if (first >= 0)
		return refuse(ret_problem, -EINVAL, "%s:%u: '=' is missing after '%s'; write '%s = VALUE'",
			      place->path, place->line, config_key_name(first), config_key_name(first));
	if (meant)
		return refuse(ret_problem, -EINVAL,
			      "%s:%u: unknown key '%s'; write '%s' if that is meant, or remove it",
			      place->path, place->line, shown, meant);
	return refuse(ret_problem, -EINVAL, "%s:%u: unknown key '%s'; correct it or remove the line",
		      place->path, place->line, shown);
}

/* The first '#' at the start or after white space, or n. */
static size_t comment_offset(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] == '#' && (i == 0 || is_space(text[i - 1])))
			return i;
	return n;
}

static int line_parse(Config *config, const Place *place, const char *text, size_t n, char **ret_problem)
{
	_cleanup_free_ char *name = NULL, *value = NULL, *comment = NULL, *shown = NULL;
	size_t n_setting, n_name, n_value, n_comment;
	const char *equals, *value_at, *comment_at;
	ConfigKey key;

	/* One at the end belongs to the line's end, as editors of other systems write it. */
	if (n > 0 && text[n - 1] == '\r')
		n--;
	if (n > CONFIG_LINE_MAX)
		return refuse(ret_problem, -EINVAL, "%s:%u: the line is longer than %u bytes; shorten it",
			      place->path, place->line, CONFIG_LINE_MAX);
	if (memchr(text, 0, n))
		return refuse(ret_problem, -EINVAL,
			      "%s:%u: a NUL byte in the line; the file is text: remove the byte", place->path,
			      place->line);
	if (memchr(text, '\r', n))
		return refuse(ret_problem, -EINVAL,
			      "%s:%u: a carriage return inside the line; end lines with a line feed",
			      place->path, place->line);
	if (place->line == 1 && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return refuse(ret_problem, -EINVAL,
			      "%s:%u: the file begins with a byte order mark; save it as UTF-8 without one",
			      place->path, place->line);

	n_setting = comment_offset(text, n);
	comment_at = n_setting < n ? text + n_setting + 1 : text + n;
	n_comment = n_setting < n ? n - n_setting - 1 : 0;
	trim(&comment_at, &n_comment);
	trim(&text, &n_setting);
	if (n_setting == 0)
		return 0;

	equals = memchr(text, '=', n_setting);
	n_name = equals ? (size_t)(equals - text) : n_setting;
	value_at = equals ? equals + 1 : text + n_setting;
	n_value = equals ? n_setting - n_name - 1 : 0;
	trim(&text, &n_name);
	trim(&value_at, &n_value);

	name = strndup(text, n_name);
	value = strndup(value_at, n_value);
	comment = strndup(comment_at, n_comment);
	shown = comment ? config_display(comment) : NULL;
	if (!name || !value || !shown)
		return -ENOMEM;

	key = config_key_from_name(name, n_name);
	if (key < 0)
		return refuse_unknown(place, name, ret_problem);
	if (!equals && config_key_is_flag(key))
		return value_add(config, place, key, "1", shown, ret_problem);
	if (strspn(value, config_key_is_split(key) ? " \t," : "") == n_value)
		return refuse(ret_problem, -EINVAL,
			      "%s:%u: '%s' has no value; write '%s = %s' or remove the line", place->path,
			      place->line, name, name, config_key_is_flag(key) ? "1" : "VALUE");
	return values_add(config, place, key, value, shown, ret_problem);
}

int config_parse(const char *path, const char *text, size_t size, Config *ret, char **ret_problem)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	Place place = { .path = path };
	int r;

	if (size > CONFIG_BYTES_MAX)
		return refuse(ret_problem, -E2BIG, "%s: the file is larger than %u bytes; shorten it", path,
			      CONFIG_BYTES_MAX);

	for (size_t offset = 0; offset < size;) {
		const char *line = text + offset, *end = memchr(line, '\n', size - offset);
		size_t n = end ? (size_t)(end - line) : size - offset;

		place.line++;
		r = line_parse(&config, &place, line, n, ret_problem);
		if (r < 0)
			return r;
		offset += n + 1;
	}

	r = config_check_ports(&config, ret_problem);
	if (r < 0)
		return r;

	*ret = config;
	config = CONFIG_INIT;
	return 0;
}
