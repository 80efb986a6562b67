/* SPDX-License-Identifier: MIT */
#include "service/plan/expectations.h"

#include "base/paths.h"
#include "dbus/names.h"

/*
 * In one order in both directions. What is read back comes from the session, which belongs to its user, and
 * may have been made by anybody who starts the program: bounded like everything else.
 */

#define ITEMS_MAX 4096u /* of any table; a plan has PLAN_MOUNTS_MAX entries, a table of routes ROUTES_MAX */
#define TEXT_MAX (CS_PATH_BYTES_MAX + 512u)
#define VALUE_MAX CS_REQUEST_BYTES_MAX
#define FILE_MAX (1024u * 1024)
#define MOUNTS_MAX (2u * 1024 * 1024)

static const char *const namespace_names[NAMESPACE_KIND_MAX] = { "pid",  "ipc",    "uts", "mnt",
								 "user", "cgroup", "net" };

const char *namespace_kind_to_string(NamespaceKind kind)
{
	return (unsigned)kind < NAMESPACE_KIND_MAX ? namespace_names[kind] : "?";
}

void expectations_done(Expectations *expectations)
{
	Expectations *e = expectations;

	for (size_t i = 0; i < e->n_entries; i++) {
		free(e->entries[i].path);
		free(e->entries[i].source);
		free(e->entries[i].data);
		free(e->entries[i].origin);
	}
	free(e->entries);
	for (size_t i = 0; i < e->n_files; i++)
		free(e->files[i].path);
	free(e->files);
	for (size_t i = 0; i < e->n_states; i++) {
		free(e->states[i].base);
		free(e->states[i].path);
	}
	free(e->states);
	for (size_t i = 0; i < e->n_variables; i++) {
		free(e->variables[i].name);
		free(e->variables[i].value);
		free(e->variables[i].origin);
	}
	free(e->variables);
	for (size_t i = 0; i < e->n_routes; i++)
		free(e->routes[i].reason);
	free(e->routes);
	for (size_t i = 0; i < e->n_processes; i++)
		free(e->processes[i].name);
	free(e->processes);
	for (size_t i = 0; i < e->n_baits; i++)
		free(e->baits[i].name);
	free(e->baits);
	free(e->hostname);
	free(e->host_mounts);
	free(e->jail_mounts);
	free(e->routes_problem);
	free(e->agent);
	free(e->program);
	free(e->workspace);
	free(e->cwd);
	free(e->home);
	free(e->user);
	strings_free(e->guarded);
	strings_free(e->allowed_write);
	strings_free(e->allowed_device);
	strings_free(e->passed);
	free(e->local_ports);
	free(e->callback_ports);
	free(e->host_addresses);
	free(e->bait_token);
	*e = (Expectations){ 0 };
}

/* ---- parts ---- */

static void pack_bool(PackWriter *w, bool value)
{
	pack_u8(w, value);
}

static bool unpack_bool(PackReader *r)
{
	uint8_t value = unpack_u8(r);

	if (value > 1)
		r->error = r->error ?: -EBADMSG;
	return value == 1;
}

/* A text that may be missing altogether. */
static void pack_optional(PackWriter *w, const char *text)
{
	pack_bool(w, text);
	if (text)
		pack_string(w, text);
}

static char *unpack_optional(PackReader *r, size_t max)
{
	return unpack_bool(r) ? unpack_string(r, max) : NULL;
}

static void pack_object(PackWriter *w, const ObjectIdentity *object)
{
	pack_bool(w, object->known);
	pack_u64(w, object->device);
	pack_u64(w, object->inode);
	pack_u64(w, object->node);
	pack_u32(w, object->mode);
	pack_u32(w, object->uid);
}

static void unpack_object(PackReader *r, ObjectIdentity *ret)
{
	ret->known = unpack_bool(r);
	ret->device = unpack_u64(r);
	ret->inode = unpack_u64(r);
	ret->node = unpack_u64(r);
	ret->mode = unpack_u32(r);
	ret->uid = unpack_u32(r);
}

static void pack_numbers(PackWriter *w, const uint64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pack_u64(w, numbers[i]);
}

static void unpack_numbers(PackReader *r, uint64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		numbers[i] = unpack_u64(r);
}

/* An empty table of as many items as are said to follow, each of at least minimum bytes. NULL is none. */
static void *unpack_table(PackReader *r, size_t minimum, size_t size, size_t *ret_n)
{
	uint32_t n = unpack_u32(r);
	void *table;

	*ret_n = 0;
	if (r->error || n == 0)
		return NULL;
	if (n > ITEMS_MAX || n > (r->size - r->offset) / minimum) {
		r->error = -EBADMSG;
		return NULL;
	}
	table = calloc(n, size);
	if (!table)
		r->error = -ENOMEM;
	else
		*ret_n = n;
	return table;
}

/* ---- tables ---- */

#define ENTRY_BYTES_LEAST 24u

static void pack_entry(PackWriter *w, const ExpectedEntry *entry)
{
	pack_u32(w, entry->kind);
	pack_u32(w, entry->mode);
	pack_string(w, entry->path);
	pack_optional(w, entry->source);
	pack_bool(w, entry->device);
	pack_bool(w, entry->covers_listener);
	pack_bool(w, entry->pin);
	pack_bool(w, entry->placeholder);
	pack_bool(w, entry->anchored);
	pack_u32(w, entry->permissions);
	pack_bytes(w, entry->data, entry->data_size);
	pack_object(w, &entry->object);
	pack_string(w, entry->origin);
}

static void unpack_entry(PackReader *r, ExpectedEntry *ret)
{
	const void *data;

	ret->kind = (EntryKind)unpack_enum(r, ENTRY_KIND_MAX);
	ret->mode = (EntryMode)unpack_enum(r, ENTRY_MODE_MAX);
	ret->path = unpack_string(r, TEXT_MAX);
	ret->source = unpack_optional(r, TEXT_MAX);
	ret->device = unpack_bool(r);
	ret->covers_listener = unpack_bool(r);
	ret->pin = unpack_bool(r);
	ret->placeholder = unpack_bool(r);
	ret->anchored = unpack_bool(r);
	ret->permissions = unpack_u32(r);
	data = unpack_bytes(r, FILE_MAX, &ret->data_size);
	if (!r->error) {
		/* With a NUL, which makes a text of a link's. */
		ret->data = calloc(1, ret->data_size + 1);
		if (!ret->data)
			r->error = -ENOMEM;
		else if (ret->data_size > 0)
			memcpy(ret->data, data, ret->data_size);
	}
	unpack_object(r, &ret->object);
	ret->origin = unpack_string(r, TEXT_MAX);
	if (!r->error && (ret->path[0] != '/' || ret->permissions > 07777))
		r->error = -EBADMSG;
}

static void pack_process(PackWriter *w, const ExpectedProcess *process)
{
	pack_u32(w, process->pid);
	pack_string(w, process->name);
	pack_bool(w, process->no_new_privileges);
	pack_bool(w, process->below);
	pack_u32(w, process->seccomp);
	pack_u32(w, process->seccomp_filters);
	pack_u32(w, process->pid_depth);
	pack_numbers(w, process->capabilities, CAPABILITY_SET_MAX);
	pack_numbers(w, process->namespaces, NAMESPACE_KIND_MAX);
}

static void unpack_process(PackReader *r, ExpectedProcess *ret)
{
	ret->pid = unpack_u32(r);
	ret->name = unpack_string(r, TEXT_MAX);
	ret->no_new_privileges = unpack_bool(r);
	ret->below = unpack_bool(r);
	ret->seccomp = unpack_u32(r);
	ret->seccomp_filters = unpack_u32(r);
	ret->pid_depth = unpack_u32(r);
	unpack_numbers(r, ret->capabilities, CAPABILITY_SET_MAX);
	unpack_numbers(r, ret->namespaces, NAMESPACE_KIND_MAX);
}

static void pack_tables(PackWriter *w, const Expectations *e)
{
	pack_u32(w, (uint32_t)e->n_entries);
	for (size_t i = 0; i < e->n_entries; i++)
		pack_entry(w, &e->entries[i]);
	pack_u32(w, (uint32_t)e->n_files);
	for (size_t i = 0; i < e->n_files; i++) {
		pack_string(w, e->files[i].path);
		pack_object(w, &e->files[i].object);
	}
	pack_u32(w, (uint32_t)e->n_states);
	for (size_t i = 0; i < e->n_states; i++) {
		pack_u32(w, e->states[i].kind);
		pack_string(w, e->states[i].base);
		pack_string(w, e->states[i].path);
		pack_object(w, &e->states[i].object);
	}
	pack_u32(w, (uint32_t)e->n_variables);
	for (size_t i = 0; i < e->n_variables; i++) {
		pack_string(w, e->variables[i].name);
		pack_optional(w, e->variables[i].value);
		pack_string(w, e->variables[i].origin);
	}
	pack_u32(w, (uint32_t)e->n_routes);
	for (size_t i = 0; i < e->n_routes; i++) {
		pack_u32(w, e->routes[i].address);
		pack_u32(w, e->routes[i].length);
		pack_u32(w, e->routes[i].verdict);
		pack_string(w, e->routes[i].reason);
	}
	pack_u32(w, (uint32_t)e->n_processes);
	for (size_t i = 0; i < e->n_processes; i++)
		pack_process(w, &e->processes[i]);
	pack_u32(w, (uint32_t)e->n_baits);
	for (size_t i = 0; i < e->n_baits; i++) {
		pack_u32(w, e->baits[i].kind);
		pack_u32(w, e->baits[i].port);
		pack_string(w, e->baits[i].name);
	}
}

static void unpack_tables(PackReader *r, Expectations *e)
{
	e->entries = unpack_table(r, ENTRY_BYTES_LEAST, sizeof(*e->entries), &e->n_entries);
	for (size_t i = 0; i < e->n_entries && !r->error; i++)
		unpack_entry(r, &e->entries[i]);
	e->files = unpack_table(r, 37, sizeof(*e->files), &e->n_files);
	for (size_t i = 0; i < e->n_files && !r->error; i++) {
		e->files[i].path = unpack_string(r, TEXT_MAX);
		unpack_object(r, &e->files[i].object);
	}
	e->states = unpack_table(r, 45, sizeof(*e->states), &e->n_states);
	for (size_t i = 0; i < e->n_states && !r->error; i++) {
		e->states[i].kind = (StateKind)unpack_enum(r, STATE_KIND_MAX);
		e->states[i].base = unpack_string(r, TEXT_MAX);
		e->states[i].path = unpack_string(r, TEXT_MAX);
		unpack_object(r, &e->states[i].object);
		if (!r->error && !path_is_within(e->states[i].path, e->states[i].base))
			r->error = -EBADMSG;
	}
	e->variables = unpack_table(r, 9, sizeof(*e->variables), &e->n_variables);
	for (size_t i = 0; i < e->n_variables && !r->error; i++) {
		e->variables[i].name = unpack_string(r, VALUE_MAX);
		e->variables[i].value = unpack_optional(r, VALUE_MAX);
		e->variables[i].origin = unpack_string(r, TEXT_MAX);
	}
	e->routes = unpack_table(r, 16, sizeof(*e->routes), &e->n_routes);
	for (size_t i = 0; i < e->n_routes && !r->error; i++) {
		e->routes[i].address = unpack_u32(r);
		e->routes[i].length = (uint8_t)unpack_enum(r, 33);
		e->routes[i].verdict = (RouteVerdict)unpack_enum(r, ROUTE_VERDICT_MAX);
		e->routes[i].reason = unpack_string(r, TEXT_MAX);
	}
	e->processes = unpack_table(r, 22, sizeof(*e->processes), &e->n_processes);
	for (size_t i = 0; i < e->n_processes && !r->error; i++)
		unpack_process(r, &e->processes[i]);
	e->baits = unpack_table(r, 12, sizeof(*e->baits), &e->n_baits);
	for (size_t i = 0; i < e->n_baits && !r->error; i++) {
		e->baits[i].kind = (BaitKind)unpack_enum(r, BAIT_KIND_MAX);
		e->baits[i].port = (uint16_t)unpack_enum(r, UINT16_MAX + 1u);
		e->baits[i].name = unpack_string(r, TEXT_MAX);
	}
}

static void pack_ports(PackWriter *w, const uint16_t *ports, size_t n)
{
	pack_u32(w, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		pack_u32(w, ports[i]);
}

static uint16_t *unpack_ports(PackReader *r, size_t *ret_n)
{
	uint16_t *ports = unpack_table(r, sizeof(uint32_t), sizeof(*ports), ret_n);

	for (size_t i = 0; i < *ret_n; i++)
		ports[i] = (uint16_t)unpack_enum(r, UINT16_MAX + 1u);
	return ports;
}

/* ---- the whole ---- */

static void pack_all(PackWriter *w, const Expectations *e)
{
	pack_u32(w, e->battery);
	pack_bool(w, e->joined);
	pack_bool(w, e->jailed);
	pack_bool(w, e->private_proc);
	pack_bool(w, e->forbid_namespaces);
	pack_bool(w, e->resolver);
	pack_bool(w, e->online);
	pack_numbers(w, e->namespaces, NAMESPACE_KIND_MAX);
	pack_numbers(w, e->jail_namespaces, NAMESPACE_KIND_MAX);
	pack_object(w, &e->terminal);
	pack_string(w, e->hostname);
	pack_optional(w, e->host_mounts);
	pack_optional(w, e->jail_mounts);
	pack_optional(w, e->routes_problem);
	pack_string(w, e->agent);
	pack_string(w, e->program);
	pack_string(w, e->workspace);
	pack_string(w, e->cwd);
	pack_string(w, e->home);
	pack_string(w, e->user);
	pack_u32(w, e->uid);
	pack_u32(w, e->gid);
	pack_strings(w, e->guarded);
	pack_strings(w, e->allowed_write);
	pack_strings(w, e->allowed_device);
	pack_strings(w, e->passed);
	pack_u32(w, e->forwarder);
	pack_ports(w, e->local_ports, e->n_local_ports);
	pack_ports(w, e->callback_ports, e->n_callback_ports);
	pack_u32(w, (uint32_t)e->n_host_addresses);
	for (size_t i = 0; i < e->n_host_addresses; i++)
		pack_u32(w, e->host_addresses[i]);
	pack_optional(w, e->bait_token);
	pack_tables(w, e);
}

static void unpack_all(PackReader *r, Expectations *e)
{
	e->battery = (BatteryKind)unpack_enum(r, BATTERY_KIND_MAX);
	e->joined = unpack_bool(r);
	e->jailed = unpack_bool(r);
	e->private_proc = unpack_bool(r);
	e->forbid_namespaces = unpack_bool(r);
	e->resolver = unpack_bool(r);
	e->online = unpack_bool(r);
	unpack_numbers(r, e->namespaces, NAMESPACE_KIND_MAX);
	unpack_numbers(r, e->jail_namespaces, NAMESPACE_KIND_MAX);
	unpack_object(r, &e->terminal);
	e->hostname = unpack_string(r, TEXT_MAX);
	e->host_mounts = unpack_optional(r, MOUNTS_MAX);
	e->jail_mounts = unpack_optional(r, MOUNTS_MAX);
	e->routes_problem = unpack_optional(r, TEXT_MAX);
	e->agent = unpack_string(r, TEXT_MAX);
	e->program = unpack_string(r, TEXT_MAX);
	e->workspace = unpack_string(r, TEXT_MAX);
	e->cwd = unpack_string(r, TEXT_MAX);
	e->home = unpack_string(r, TEXT_MAX);
	e->user = unpack_string(r, TEXT_MAX);
	e->uid = unpack_u32(r);
	e->gid = unpack_u32(r);
	e->guarded = unpack_strings(r, ITEMS_MAX, TEXT_MAX);
	e->allowed_write = unpack_strings(r, ITEMS_MAX, TEXT_MAX);
	e->allowed_device = unpack_strings(r, ITEMS_MAX, TEXT_MAX);
	e->passed = unpack_strings(r, ITEMS_MAX, TEXT_MAX);
	e->forwarder = unpack_u32(r);
	e->local_ports = unpack_ports(r, &e->n_local_ports);
	e->callback_ports = unpack_ports(r, &e->n_callback_ports);
	e->host_addresses =
		unpack_table(r, sizeof(uint32_t), sizeof(*e->host_addresses), &e->n_host_addresses);
	for (size_t i = 0; i < e->n_host_addresses; i++)
		e->host_addresses[i] = unpack_u32(r);
	e->bait_token = unpack_optional(r, TEXT_MAX);
	unpack_tables(r, e);
}

int expectations_encode(const Expectations *expectations, uint8_t **ret_data, size_t *ret_size)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	pack_init(&w, EXPECTATIONS_BYTES_MAX);
	pack_all(&w, expectations);
	if (w.error)
		return w.error;
	*ret_size = w.size;
	*ret_data = TAKE_PTR(w.data);
	return 0;
}

int expectations_decode(const void *data, size_t size, Expectations *ret)
{
	_cleanup_(expectations_done) Expectations expectations = { 0 };
	PackReader r;
	int error;

	if (size > EXPECTATIONS_BYTES_MAX)
		return -EBADMSG;
	unpack_init(&r, data, size);
	unpack_all(&r, &expectations);
	error = unpack_finish(&r);
	if (error)
		return error;
	*ret = expectations;
	expectations = (Expectations){ 0 };
	return 0;
}

/* ---- questions ---- */

const ExpectedEntry *expectations_covering(const Expectations *expectations, const char *path)
{
	for (size_t i = expectations->n_entries; i > 0; i--) {
		const ExpectedEntry *entry = &expectations->entries[i - 1];

		if (entry->kind != ENTRY_DESCRIPTOR && path_is_within(path, entry->path))
			return entry;
	}
	return NULL;
}

static uint32_t mask_of(const ExpectedRoute *row)
{
	return row->length == 0 ? 0 : UINT32_MAX << (32 - row->length);
}

RouteVerdict expectations_verdict(const Expectations *expectations, uint32_t address)
{
	const ExpectedRoute *found = NULL;

	for (size_t i = 0; i < expectations->n_routes; i++) {
		const ExpectedRoute *row = &expectations->routes[i];

		if (((address ^ row->address) & mask_of(row)) != 0)
			continue;
		if (!found || row->length > found->length ||
		    (row->length == found->length && row->verdict != ROUTE_DENY))
			found = row;
	}
	return found ? found->verdict : ROUTE_DENY;
}
