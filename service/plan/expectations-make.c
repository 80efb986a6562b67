/* SPDX-License-Identifier: MIT */
#include "service/plan/expectations.h"

#include "dbus/names.h"
#include "service/plan/entry-guard.h"
#include "service/plan/mount-list.h"
#include "service/plan/profile.h"

/*
 * The plan, copied entry by entry: this file leaves nothing out and knows no entry by its name, so that what
 * is added to the plan is expected by itself.
 */

static char *copy(const char *text, int *error)
{
	char *copied = strdup(text ?: "");

	if (!copied)
		*error = -ENOMEM;
	return copied;
}

static char *copy_optional(const char *text, int *error)
{
	return text ? copy(text, error) : NULL;
}

static void *table(size_t n, size_t size, size_t *ret_n, int *error)
{
	void *items = n > 0 ? calloc(n, size) : NULL;

	if (n > 0 && !items)
		*error = -ENOMEM;
	*ret_n = items ? n : 0;
	return items;
}

/* As bwrap-args.c makes them. */
static mode_t permissions_of(const Entry *entry)
{
	return entry->permissions ?: (entry->kind == ENTRY_FILE ? 0444 : 0755);
}

/* As anchors.h has it. */
static bool is_anchored(const Plan *plan, const Entry *entry)
{
	const Entry *under = plan_under(plan, entry);

	return entry->kind != ENTRY_LINK && entry->kind != ENTRY_DIRECTORY &&
	       entry->kind != ENTRY_DESCRIPTOR && under && under->mode == ENTRY_RW;
}

static int copy_entry(const Plan *plan, const Entry *entry, const ExpectationFacts *facts, ExpectedEntry *ret)
{
	int error = 0;
	size_t size = entry->kind == ENTRY_LINK ? strlen(entry->data) : entry->data_size;

	*ret = (ExpectedEntry){ .kind = entry->kind,
				.mode = entry->mode,
				.device = entry->device,
				.covers_listener = entry->covers_listener,
				.pin = entry->pin,
				.placeholder = entry->placeholder,
				.anchored = is_anchored(plan, entry),
				.permissions = permissions_of(entry) & 07777,
				.data_size = size };
	ret->path = copy(entry->destination, &error);
	ret->source = copy_optional(entry->source, &error);
	ret->origin = copy(entry->origin, &error);
	ret->data = calloc(1, size + 1);
	if (!ret->data)
		return -ENOMEM;
	if (size > 0)
		memcpy(ret->data, entry->data, size);
	if (error == 0 && entry->kind == ENTRY_BIND && facts->identify)
		error = facts->identify(entry, &ret->object);
	return error;
}

static int copy_plan(const Plan *plan, const ExpectationFacts *facts, Expectations *e)
{
	int error = 0;

	e->entries = table(plan->n_entries, sizeof(*e->entries), &e->n_entries, &error);
	for (size_t i = 0; error == 0 && i < e->n_entries; i++)
		error = copy_entry(plan, &plan->entries[i], facts, &e->entries[i]);
	e->variables = table(plan->n_variables, sizeof(*e->variables), &e->n_variables, &error);
	for (size_t i = 0; i < e->n_variables; i++) {
		const PlanVariable *variable = &plan->variables[i];

		e->variables[i].name = copy(variable->name, &error);
		e->variables[i].origin = copy(variable->origin, &error);
		/* Of these the plan does not know what they hold. */
		if (!starts_with(variable->origin, "pass-env"))
			e->variables[i].value = copy(variable->value, &error);
	}
	e->guarded = strings_copy(plan->guarded);
	e->program = copy(plan->program, &error);
	e->cwd = copy(plan->cwd, &error);
	e->workspace = copy(plan->workspace, &error);
	e->private_proc = plan->private_proc;
	e->jailed = plan->jailed;
	return e->guarded ? error : -ENOMEM;
}

/* What steers the sandbox or is it. The programs of CS_BIN_DIR are named in entry-guard.h. */
static const char *const own_files[] = {
	CS_CONFIG_PATH,
	CS_LIBEXEC_DIR,
	CS_AGENTS_DIR,
	CS_ENTRY_PATH,
	CS_LAUNCH_PATH,
	CS_SESSION_PATH,
	CS_INIT_PATH,
	CS_LIBEXEC_DIR "/verify",
	CS_LIBEXEC_DIR "/claude-sandboxd",
	CS_BIN_DIR,
	"/usr/share/dbus-1/system.d/" CS_BUS_NAME ".conf",
	"/usr/share/dbus-1/system-services/" CS_BUS_NAME ".service",
	"/usr/lib/systemd/system/claude-sandboxd.service",
	"/usr/share/polkit-1/actions/" CS_BUS_NAME ".policy",
	"/usr/bin/bwrap",
	"/usr/bin/pasta",
};

static int copy_files(const ExpectationFacts *facts, Expectations *e)
{
	const char *const *names = entry_guard_names();
	size_t n_names = strings_count((char *const *)names);
	int error = 0;

	if (!facts->identify_path)
		return 0;
	e->files = table(ELEMENTSOF(own_files) + n_names, sizeof(*e->files), &e->n_files, &error);
	for (size_t i = 0; i < e->n_files; i++) {
		ExpectedFile *file = &e->files[i];

		if (i < ELEMENTSOF(own_files))
			file->path = copy(own_files[i], &error);
		else if (asprintf(&file->path, "%s/%s", CS_BIN_DIR, names[i - ELEMENTSOF(own_files)]) < 0) {
			file->path = NULL;
			error = -ENOMEM;
		}
		if (file->path)
			file->object = facts->identify_path(file->path);
	}
	return error;
}

/* directory: below the home, or NULL for it; name: below that, a directory's with a slash at its end, or NULL. */
static int add_state(Expectations *e, const ExpectationFacts *facts, StateKind kind, const char *directory,
		     const char *name)
{
	ExpectedState *grown = reallocarray(e->states, e->n_states + 1, sizeof(*grown)), *state;
	int n = name ? (int)strlen(name) - profile_is_directory(name) : 0;

	if (!grown)
		return -ENOMEM;
	e->states = grown;
	state = &grown[e->n_states++];
	*state = (ExpectedState){ .kind = kind };
	if (asprintf(&state->base, "%s%s%s", e->home, directory ? "/" : "", directory ?: "") < 0)
		state->base = NULL;
	if (!state->base ||
	    asprintf(&state->path, "%s%s%.*s", state->base, name ? "/" : "", n, name ?: "") < 0)
		state->path = NULL;
	if (!state->path)
		return -ENOMEM;
	state->object = facts->identify_path(state->path);
	return 0;
}

/* Of all agents: who runs one keeps nothing of the others' in sight either. */
static int copy_states(const SessionRequest *request, const ExpectationFacts *facts, Expectations *e)
{
	const Profile *profile;
	int r;

	if (!facts->identify_path)
		return 0;
	r = add_state(e, facts, STATE_HOME, NULL, NULL);
	for (size_t i = 0; r == 0 && (profile = profile_at(i)); i++) {
		if (!profile->state)
			continue;
		r = add_state(e, facts, STATE_ALL, profile->state, NULL);
		for (size_t j = 0; r == 0 && profile->orders[j]; j++)
			r = add_state(e, facts, STATE_ORDERS, profile->state, profile->orders[j]);
		for (size_t j = 0; r == 0 && profile->session_names[j]; j++)
			r = add_state(e, facts, STATE_SESSION, profile->state, profile->session_names[j]);
		if (r == 0 && profile->transcripts && !config_history_all(&request->config))
			r = add_state(e, facts, STATE_TRANSCRIPTS, profile->state, profile->transcripts);
	}
	return r;
}

static int copy_routes(const RouteTable *routes, Expectations *e)
{
	int error = 0;

	if (!routes)
		return 0;
	e->forwarder = routes->forwarder;
	e->routes = table(routes->n_rows, sizeof(*e->routes), &e->n_routes, &error);
	for (size_t i = 0; i < e->n_routes; i++) {
		const RouteRow *row = &routes->rows[i];

		e->routes[i] = (ExpectedRoute){ .address = row->address,
						.length = row->length,
						.verdict = row->verdict,
						.reason = copy(row->reason, &error) };
	}
	return error;
}

static int copy_values(const Config *config, ConfigKey key, char ***ret)
{
	const ConfigValue *value;
	size_t index = 0;
	int r = 0;

	while (r == 0 && (value = config_next(config, key, &index)))
		r = strings_append(ret, value->text);
	return r;
}

static int add_port(uint16_t **ports, size_t *n, uint64_t port)
{
	uint16_t *grown;

	if (port == 0 || port > UINT16_MAX)
		return 0;
	grown = reallocarray(*ports, *n + 1, sizeof(**ports));
	if (!grown)
		return -ENOMEM;
	*ports = grown;
	grown[(*n)++] = (uint16_t)port;
	return 0;
}

static int copy_ports(const Config *config, ConfigKey key, uint16_t **ports, size_t *n)
{
	const ConfigValue *value;
	size_t index = 0;
	int r = 0;

	while (r == 0 && (value = config_next(config, key, &index)))
		r = add_port(ports, n, strtoul(value->text, NULL, 10));
	return r;
}

static int copy_request(const SessionRequest *request, Expectations *e)
{
	const Config *config = &request->config;
	int error = 0, r;

	e->agent = copy(request->agent, &error);
	e->home = copy(request->home, &error);
	e->user = copy(request->user, &error);
	e->uid = request->uid;
	e->gid = request->gid;
	/* As jail-exec.c orders it. */
	e->forbid_namespaces = request->uid == 0;
	r = copy_values(config, CONFIG_ALLOW_WRITE, &e->allowed_write);
	if (r == 0)
		r = copy_values(config, CONFIG_ALLOW_DEVICE, &e->allowed_device);
	if (r == 0)
		r = copy_values(config, CONFIG_PASS_ENV, &e->passed);
	if (r == 0)
		r = copy_ports(config, CONFIG_LOCAL_PORT, &e->local_ports, &e->n_local_ports);
	if (r == 0)
		r = add_port(&e->local_ports, &e->n_local_ports,
			     config_number(config, CONFIG_LOCAL_MODEL_PORT));
	if (r == 0)
		r = copy_ports(config, CONFIG_CALLBACK_PORT, &e->callback_ports, &e->n_callback_ports);
	return r < 0 ? r : error;
}

static int copy_facts(const ExpectationFacts *facts, Expectations *e)
{
	int error = 0;

	e->battery = facts->battery;
	e->joined = facts->joined;
	e->resolver = facts->resolver;
	e->online = facts->online;
	memcpy(e->namespaces, facts->namespaces, sizeof(e->namespaces));
	memcpy(e->jail_namespaces, facts->jail_namespaces, sizeof(e->jail_namespaces));
	e->hostname = copy(facts->hostname, &error);
	e->terminal = facts->terminal;
	e->host_mounts = copy_optional(facts->host_mounts, &error);
	e->jail_mounts = copy_optional(facts->jail_mounts, &error);
	e->routes_problem = copy_optional(facts->routes_problem, &error);
	e->bait_token = copy_optional(facts->bait_token, &error);
	e->processes = table(facts->n_processes, sizeof(*e->processes), &e->n_processes, &error);
	for (size_t i = 0; i < e->n_processes; i++) {
		e->processes[i] = facts->processes[i];
		e->processes[i].name = copy(facts->processes[i].name, &error);
	}
	e->baits = table(facts->n_baits, sizeof(*e->baits), &e->n_baits, &error);
	for (size_t i = 0; i < e->n_baits; i++) {
		e->baits[i] = facts->baits[i];
		e->baits[i].name = copy(facts->baits[i].name, &error);
	}
	e->host_addresses =
		table(facts->n_host_addresses, sizeof(*e->host_addresses), &e->n_host_addresses, &error);
	for (size_t i = 0; i < e->n_host_addresses; i++)
		e->host_addresses[i] = facts->host_addresses[i];
	return error;
}

int expectations_make(const Plan *plan, const SessionRequest *request, const ExpectationFacts *facts,
		      Expectations *ret)
{
	_cleanup_(expectations_done) Expectations expectations = { 0 };
	int r = copy_plan(plan, facts, &expectations);

	if (r == 0)
		r = copy_request(request, &expectations);
	if (r == 0)
		r = copy_states(request, facts, &expectations);
	if (r == 0)
		r = copy_routes(facts->routes, &expectations);
	if (r == 0)
		r = copy_files(facts, &expectations);
	if (r == 0)
		r = copy_facts(facts, &expectations);
	if (r < 0)
		return r;
	*ret = expectations;
	expectations = (Expectations){ 0 };
	return 0;
}
