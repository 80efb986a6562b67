/* SPDX-License-Identifier: MIT */
#include "service/session/allowances.h"

#include "dbus/names.h"
#include "service/plan/config-values.h"

#define OWN_ORIGIN "this session"
#define ENVIRONMENT "environment " /* ConfigValue.origin */

static void allowance_done(Allowance *entry)
{
	free(entry->text);
	free(entry->origin);
	free(entry->comment);
	free(entry->own_origin);
	free(entry->own_comment);
	*entry = (Allowance){ 0 };
}

void allowances_done(Allowances *allowances)
{
	for (size_t i = 0; i < allowances->n; i++)
		allowance_done(&allowances->entries[i]);
	free(allowances->entries);
	*allowances = (Allowances){ 0 };
}

static Allowance *find(const Allowances *allowances, const char *text)
{
	for (size_t i = 0; i < allowances->n; i++)
		if (streq(allowances->entries[i].text, text))
			return &allowances->entries[i];
	return NULL;
}

static Allowance *find_or_add(Allowances *allowances, const char *text)
{
	Allowance *entry = find(allowances, text), *grown;

	if (entry)
		return entry;
	grown = reallocarray(allowances->entries, allowances->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	allowances->entries = grown;
	entry = &grown[allowances->n];
	*entry = (Allowance){ .text = strdup(text) };
	if (!entry->text)
		return NULL;
	allowances->n++;
	return entry;
}

static int set_text(char **text, const char *value)
{
	char *copy = strdup(value ?: "");

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int set_configured(Allowance *entry, const char *origin, const char *comment)
{
	entry->configured = true;
	return set_text(&entry->origin, origin) ?: set_text(&entry->comment, comment);
}

static int set_own(Allowance *entry, const char *origin, const char *comment, uint64_t end_usec)
{
	entry->own = true;
	entry->own_end_usec = end_usec;
	return set_text(&entry->own_origin, origin) ?: set_text(&entry->own_comment, comment);
}

int allowances_read(const Config *config, Allowances *ret)
{
	_cleanup_(allowances_done) Allowances allowances = { 0 };
	const ConfigValue *value;
	size_t index = 0;

	while ((value = config_next(config, CONFIG_ALLOW_IP, &index))) {
		Allowance *entry = find_or_add(&allowances, value->text);
		int r;

		if (!entry)
			return -ENOMEM;
		r = starts_with(value->origin, ENVIRONMENT)
			    ? set_own(entry, value->origin, value->comment, 0)
			    : set_configured(entry, value->origin, value->comment);
		if (r < 0)
			return r;
	}
	*ret = allowances;
	allowances = (Allowances){ 0 };
	return 0;
}

int allowances_copy(const Allowances *allowances, Allowances *ret)
{
	_cleanup_(allowances_done) Allowances copy = { 0 };

	for (size_t i = 0; i < allowances->n; i++) {
		const Allowance *from = &allowances->entries[i];
		Allowance *to = find_or_add(&copy, from->text);

		if (!to)
			return -ENOMEM;
		if ((from->configured && set_configured(to, from->origin, from->comment) < 0) ||
		    (from->own && set_own(to, from->own_origin, from->own_comment, from->own_end_usec) < 0))
			return -ENOMEM;
	}
	*ret = copy;
	copy = (Allowances){ 0 };
	return 0;
}

int allowances_write(const Allowances *allowances, Config *config)
{
	ConfigValue *value;
	int r = 0;

	while ((value = config_find(config, CONFIG_ALLOW_IP, NULL)))
		config_remove(config, value);
	for (size_t i = 0; r >= 0 && i < allowances->n; i++) {
		const Allowance *entry = &allowances->entries[i];

		r = entry->configured ? config_append(config, CONFIG_ALLOW_IP, entry->text, entry->comment,
						      entry->origin)
				      : config_append(config, CONFIG_ALLOW_IP, entry->text,
						      entry->own_comment, entry->own_origin);
	}
	return r;
}

static int canonical_text(const char *text, char **ret, HostPrefix *ret_prefix, char **ret_problem)
{
	uint32_t address;
	unsigned length;
	int r = config_value_parse(CONFIG_ALLOW_IP, text, ret, ret_problem);

	if (r == 0)
		r = config_parse_address(*ret, &address, &length, ret_problem);
	if (r < 0)
		return r;
	*ret_prefix = (HostPrefix){ address, (uint8_t)length };
	return 0;
}

static size_t count_own(const Allowances *allowances)
{
	size_t n = 0;

	for (size_t i = 0; i < allowances->n; i++)
		n += allowances->entries[i].own;
	return n;
}

int allowances_allow(Allowances *allowances, const char *text, uint64_t end_usec, HostPrefix *ret_prefix,
		     char **ret_problem)
{
	_cleanup_free_ char *canonical = NULL;
	Allowance *entry;
	int r;

	r = canonical_text(text, &canonical, ret_prefix, ret_problem);
	if (r < 0)
		return r;
	entry = find(allowances, canonical);
	if (!(entry && entry->own) && count_own(allowances) >= ALLOWANCES_OWN_MAX)
		return refuse(ret_problem, -E2BIG,
			      "the session has %u addresses of its own already; revoke one, or put it into "
			      "the configuration",
			      ALLOWANCES_OWN_MAX);
	entry = find_or_add(allowances, canonical);
	return entry ? set_own(entry, OWN_ORIGIN, "", end_usec) : -ENOMEM;
}

static void drop_if_closed(Allowances *allowances, Allowance *entry)
{
	size_t index = (size_t)(entry - allowances->entries);

	if (entry->configured || entry->own)
		return;
	allowance_done(entry);
	memmove(entry, entry + 1, (allowances->n - index - 1) * sizeof(*entry));
	allowances->n--;
}

int allowances_revoke(Allowances *allowances, const char *text, char **ret_problem)
{
	_cleanup_free_ char *canonical = NULL;
	HostPrefix prefix;
	Allowance *entry;
	int r;

	r = canonical_text(text, &canonical, &prefix, ret_problem);
	if (r < 0)
		return r;
	entry = find(allowances, canonical);
	if (!(entry && entry->own))
		return refuse(ret_problem, -ENOENT,
			      entry ? "%s is open by the configuration and not for this session alone; "
				      "'claude-sandbox allow-ip remove' closes it for all"
				    : "%s was not opened for this session",
			      canonical);
	entry->own = false;
	drop_if_closed(allowances, entry);
	return 0;
}

int allowances_configure(Allowances *allowances, char *const *texts, bool opens, char **ret_problem)
{
	_cleanup_(strings_freep) char **canonical = NULL;
	HostPrefix prefix;
	int r = 0;

	for (size_t i = 0; texts && texts[i] && r >= 0; i++) {
		_cleanup_free_ char *text = NULL;

		r = canonical_text(texts[i], &text, &prefix, ret_problem);
		if (r >= 0)
			r = strings_append(&canonical, text);
	}
	for (size_t i = allowances->n; r >= 0 && i-- > 0;) {
		Allowance *entry = &allowances->entries[i];

		entry->configured = entry->configured && strings_have(canonical, entry->text);
		drop_if_closed(allowances, entry);
	}
	for (size_t i = 0; opens && canonical && canonical[i] && r >= 0; i++) {
		Allowance *entry = find_or_add(allowances, canonical[i]);

		if (!entry)
			return -ENOMEM;
		/* The line that it stands in is not known. */
		if (!entry->configured)
			r = set_configured(entry, CS_CONFIG_PATH, "");
	}
	return r;
}

void allowances_unconfigure(Allowances *allowances, const char *text)
{
	Allowance *entry = find(allowances, text);

	if (!entry)
		return;
	entry->configured = false;
	drop_if_closed(allowances, entry);
}

bool allowances_have(const Allowances *allowances, const char *text)
{
	return find(allowances, text);
}

bool allowances_open_the_same(const Allowances *a, const Allowances *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!find(b, a->entries[i].text))
			return false;
	return a->n == b->n;
}

size_t allowances_expire(Allowances *allowances, uint64_t now_usec)
{
	size_t n = 0;

	for (size_t i = allowances->n; i-- > 0;) {
		Allowance *entry = &allowances->entries[i];

		if (!entry->own || entry->own_end_usec == 0 || entry->own_end_usec > now_usec)
			continue;
		entry->own = false;
		drop_if_closed(allowances, entry);
		n++;
	}
	return n;
}

uint64_t allowances_next_end(const Allowances *allowances)
{
	uint64_t next = 0;

	for (size_t i = 0; i < allowances->n; i++) {
		const Allowance *entry = &allowances->entries[i];

		if (entry->own && entry->own_end_usec != 0 && (next == 0 || entry->own_end_usec < next))
			next = entry->own_end_usec;
	}
	return next;
}
