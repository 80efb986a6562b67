/* SPDX-License-Identifier: MIT */
#include "service/plan/mount-list.h"

#include <assert.h>
#include <stdarg.h>

#include "base/paths.h"

static const char *const kind_names[ENTRY_KIND_MAX] = {
	[ENTRY_BIND] = "bind",
	[ENTRY_TMPFS] = "tmpfs",
	[ENTRY_DEV] = "dev",
	[ENTRY_PROC] = "proc",
	[ENTRY_LINK] = "link",
	[ENTRY_FILE] = "file",
	[ENTRY_DIRECTORY] = "directory",
	[ENTRY_DESCRIPTOR] = "descriptor",
};

static const char *const mode_names[ENTRY_MODE_MAX] = {
	[ENTRY_RO] = "ro",
	[ENTRY_RW] = "rw",
	[ENTRY_MASKED] = "masked",
	[ENTRY_PRIVATE] = "private",
};

const char *entry_kind_to_string(EntryKind kind)
{
	return kind < ENTRY_KIND_MAX ? kind_names[kind] : NULL;
}

const char *entry_mode_to_string(EntryMode mode)
{
	return mode < ENTRY_MODE_MAX ? mode_names[mode] : NULL;
}

static void entry_done(Entry *entry)
{
	free(entry->source);
	free(entry->destination);
	free(entry->data);
	free(entry->owned_origin);
	close_fd(entry->source_fd);
	*entry = (Entry){ .source_fd = FD_NONE };
}

void plan_done(Plan *plan)
{
	for (size_t i = 0; i < plan->n_entries; i++)
		entry_done(&plan->entries[i]);
	free(plan->entries);
	for (size_t i = 0; i < plan->n_variables; i++) {
		free(plan->variables[i].name);
		free(plan->variables[i].value);
		free(plan->variables[i].origin);
	}
	free(plan->variables);
	strings_free(plan->guarded);
	strings_free(plan->warnings);
	strings_free(plan->argv);
	free(plan->program);
	free(plan->cwd);
	free(plan->workspace);
	*plan = (Plan){ 0 };
}

/* Put *entry, whose contents are taken on success alone, before the one that is at index now. */
static int plan_insert(Plan *plan, size_t index, Entry *entry)
{
	/* Links, directories and descriptors are no mounts, but a bound on all of them bounds the list. */
	if (plan->n_entries >= PLAN_MOUNTS_MAX)
		return -E2BIG;

	Entry *grown = reallocarray(plan->entries, plan->n_entries + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plan->entries = grown;
	memmove(grown + index + 1, grown + index, (plan->n_entries - index) * sizeof(*grown));
	grown[index] = *entry;
	plan->n_entries++;
	return 0;
}

static int plan_add_at(Plan *plan, size_t index, Entry entry, const char *destination, const char *origin,
		       const char *reason)
{
	int r = -ENOMEM;

	assert(destination[0] == '/');
	entry.destination = strdup(destination);
	entry.owned_origin = strdup(origin);
	if (entry.destination && entry.owned_origin) {
		entry.origin = entry.owned_origin;
		entry.reason = reason;
		r = plan_insert(plan, index, &entry);
	}
	if (r < 0)
		entry_done(&entry);
	return r;
}

static int plan_add(Plan *plan, Entry entry, const char *destination, const char *origin, const char *reason)
{
	return plan_add_at(plan, plan->n_entries, entry, destination, origin, reason);
}

int plan_add_bind(Plan *plan, PlanNode *source, const char *destination, EntryMode mode, const char *origin,
		  const char *reason)
{
	Entry entry = { .kind = ENTRY_BIND, .mode = mode, .source_fd = FD_NONE };

	entry.source = strdup(source->path);
	if (!entry.source)
		return -ENOMEM;
	entry.source_fd = TAKE_FD(source->fd);
	return plan_add(plan, entry, destination, origin, reason);
}

int plan_insert_bind(Plan *plan, size_t index, PlanNode *node, const char *destination, const char *origin,
		     const char *reason)
{
	Entry entry = { .kind = ENTRY_BIND, .mode = ENTRY_RW, .source_fd = FD_NONE };

	entry.source = strdup(node->path);
	if (!entry.source)
		return -ENOMEM;
	entry.source_fd = TAKE_FD(node->fd);
	return plan_add_at(plan, index, entry, destination, origin, reason);
}

bool plan_has(const Plan *plan, const char *destination)
{
	for (size_t i = 0; i < plan->n_entries; i++)
		if (streq(plan->entries[i].destination, destination))
			return true;
	return false;
}

int plan_add_tmpfs(Plan *plan, const char *destination, mode_t permissions, EntryMode mode,
		   const char *origin, const char *reason)
{
	return plan_add(
		plan,
		(Entry){
			.kind = ENTRY_TMPFS, .mode = mode, .permissions = permissions, .source_fd = FD_NONE },
		destination, origin, reason);
}

static int plan_add_data(Plan *plan, Entry entry, const char *destination, const void *data, size_t size,
			 const char *origin, const char *reason)
{
	entry.data = malloc(size + 1);
	if (!entry.data)
		return -ENOMEM;
	if (size > 0)
		memcpy(entry.data, data, size);
	((char *)entry.data)[size] = '\0';
	entry.data_size = size;
	return plan_add(plan, entry, destination, origin, reason);
}

int plan_add_file(Plan *plan, const char *destination, const void *data, size_t size, const char *origin,
		  const char *reason)
{
	return plan_add_data(plan, (Entry){ .kind = ENTRY_FILE, .mode = ENTRY_RO, .source_fd = FD_NONE },
			     destination, data, size, origin, reason);
}

int plan_add_program(Plan *plan, const char *destination, const char *text, const char *origin,
		     const char *reason)
{
	return plan_add_data(
		plan,
		(Entry){ .kind = ENTRY_FILE, .mode = ENTRY_RO, .source_fd = FD_NONE, .permissions = 0555 },
		destination, text, strlen(text), origin, reason);
}

int plan_add_mask(Plan *plan, const char *destination, const char *origin, const char *reason)
{
	return plan_add_data(plan, (Entry){ .kind = ENTRY_FILE, .mode = ENTRY_MASKED, .source_fd = FD_NONE },
			     destination, NULL, 0, origin, reason);
}

int plan_add_link(Plan *plan, const char *destination, const char *text, const char *origin,
		  const char *reason)
{
	return plan_add_data(plan, (Entry){ .kind = ENTRY_LINK, .mode = ENTRY_PRIVATE, .source_fd = FD_NONE },
			     destination, text, strlen(text), origin, reason);
}

int plan_add_special(Plan *plan, EntryKind kind, const char *destination, EntryMode mode, const char *origin,
		     const char *reason)
{
	return plan_add(plan, (Entry){ .kind = kind, .mode = mode, .source_fd = FD_NONE }, destination,
			origin, reason);
}

int plan_add_device(Plan *plan, const PlanNode *source, const char *destination, const char *origin,
		    const char *reason)
{
	Entry entry = { .kind = ENTRY_BIND, .mode = ENTRY_RW, .device = true, .source_fd = FD_NONE };

	entry.source = strdup(source->path);
	if (!entry.source)
		return -ENOMEM;
	return plan_add(plan, entry, destination, origin, reason);
}

int plan_warn(Plan *plan, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return strings_append(&plan->warnings, text);
}

const PlanVariable *plan_variable(const Plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n_variables; i++)
		if (streq(plan->variables[i].name, name))
			return &plan->variables[i];
	return NULL;
}

int plan_set_variable(Plan *plan, const char *name, const char *value, const char *origin)
{
	if (plan_variable(plan, name))
		return -EEXIST;

	PlanVariable *grown = reallocarray(plan->variables, plan->n_variables + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plan->variables = grown;

	PlanVariable variable = { .name = strdup(name), .value = strdup(value), .origin = strdup(origin) };
	if (!variable.name || !variable.value || !variable.origin) {
		free(variable.name);
		free(variable.value);
		free(variable.origin);
		return -ENOMEM;
	}
	grown[plan->n_variables++] = variable;
	return 0;
}

const Entry *plan_covering(const Plan *plan, const char *path)
{
	for (size_t i = plan->n_entries; i > 0; i--) {
		const Entry *entry = &plan->entries[i - 1];

		if (entry->kind == ENTRY_DESCRIPTOR || entry->kind == ENTRY_DIRECTORY ||
		    entry->kind == ENTRY_LINK)
			continue;
		if (path_is_within(path, entry->destination))
			return entry;
	}
	return NULL;
}

const Entry *plan_under(const Plan *plan, const Entry *entry)
{
	const char *slash = strrchr(entry->destination, '/');
	const Entry *under = NULL;

	if (!slash || slash[1] == 0 || plan_covering(plan, entry->destination) != entry)
		return NULL;
	/* The last one before it at or above its directory. A later one would cover entry as well. */
	for (size_t i = 0; &plan->entries[i] != entry; i++) {
		const Entry *other = &plan->entries[i];

		if (other->kind != ENTRY_DESCRIPTOR && other->kind != ENTRY_DIRECTORY &&
		    other->kind != ENTRY_LINK && !streq(other->destination, entry->destination) &&
		    path_is_within(entry->destination, other->destination))
			under = other;
	}
	return under && under->kind == ENTRY_BIND && under->mode != ENTRY_MASKED && under->source_fd >= 0
		       ? under
		       : NULL;
}

bool plan_hides(const Plan *plan, const char *path)
{
	const Entry *entry = plan_covering(plan, path);

	/* What is bound from elsewhere is seen in the place of what the host has there. */
	return !entry || entry->kind != ENTRY_BIND || entry->mode == ENTRY_MASKED ||
	       (entry->source && !streq(entry->source, entry->destination));
}
