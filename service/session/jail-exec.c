/* SPDX-License-Identifier: MIT */
#include "service/session/jail-exec.h"

#include "dbus/names.h"
#include "service/plan/bwrap-args.h"
#include "service/session/anchors.h"
#include "service/session/sealed.h"

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)
#define ARGUMENTS_FD 22
STATIC_ASSERT(ARGUMENTS_FD == JAIL_FD_ARGUMENTS);
STATIC_ASSERT(HOLDER_PLACE_ANCHORS > JAIL_FD_ARGUMENTS && HOLDER_PLACE_ANCHORS < JAIL_FD_SOURCES);
STATIC_ASSERT(JAIL_FD_SOURCES + PLAN_MOUNTS_MAX <= HOLDER_PLACE_MAX);

static char *const bwrap_arguments[] = {
	(char *)"bwrap", (char *)"--args",     (char *)STRINGIFY(ARGUMENTS_FD),
	(char *)"--",    (char *)CS_INIT_PATH, NULL,
};

char *const *jail_exec_arguments(void)
{
	return bwrap_arguments;
}

/* Descriptors and the numbers that they get; those that were made here are closed at the end. */
typedef struct Placement {
	int fds[HOLDER_PLACE_MAX], places[HOLDER_PLACE_MAX];
	bool owned[HOLDER_PLACE_MAX];
	size_t n;
} Placement;

static void placement_done(Placement *placement)
{
	for (size_t i = 0; i < placement->n; i++)
		if (placement->owned[i])
			close_fdp(&placement->fds[i]);
}

static void placement_add(Placement *placement, int fd, int place, bool owned)
{
	if (fd < 0)
		return;
	placement->fds[placement->n] = fd;
	placement->places[placement->n] = place;
	placement->owned[placement->n++] = owned;
}

static int placement_add_sealed(Placement *placement, const char *name, const void *data, size_t size,
				int place)
{
	int fd, r;

	r = sealed_make(name, data, size, &fd);
	if (r == 0)
		placement_add(placement, fd, place, true);
	return r;
}

static int orders_make(const JailExec *jail, Placement *placement)
{
	const SessionRequest *request = jail->request;
	const StandIn *stand_in = jail->stand_in;
	const Plan *plan = jail->plan;
	uint32_t descriptors = stand_in ? stand_in->descriptors : request->descriptors;
	uint32_t terminals = stand_in ? stand_in->terminals : request->terminals;
	_cleanup_(strings_freep) char **environment = calloc(1, sizeof(char *));
	_cleanup_free_ uint8_t *data = NULL;
	InitOrders orders;
	size_t size;
	int r = 0;

	if (!environment)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < plan->n_variables; i++)
		r = strings_appendf(&environment, "%s=%s", plan->variables[i].name, plan->variables[i].value);
	if (r < 0)
		return r;
	orders = (InitOrders){ .argv = stand_in ? stand_in->argv : plan->argv,
			       .environment = environment,
			       .program = stand_in ? stand_in->program : plan->program,
			       .cwd = plan->cwd,
			       .descriptors = descriptors & ~terminals,
			       .terminals = descriptors & terminals,
			       .file_mode_mask = request->file_mode_mask,
			       .ignored_signals = request->ignored_signals,
			       .background = request->background,
			       /* Beside anchors.h: a second lock on what the person's shell runs next. */
			       .forbid_namespaces = request->uid == 0 };
	if (!stand_in)
		memcpy(orders.further, request->further, sizeof(orders.further));
	r = init_orders_encode(&orders, &data, &size);
	return r < 0 ? r : placement_add_sealed(placement, "orders", data, size, INIT_FD_ORDERS);
}

static int sources_add(const BwrapArguments *arguments, Placement *placement)
{
	for (size_t i = 0; i < arguments->n_fds; i++) {
		const Entry *entry = arguments->entries[i];
		int place = JAIL_FD_SOURCES + (int)i, r;

		if (arguments->fds[i] >= 0) {
			placement_add(placement, arguments->fds[i], place, false);
			continue;
		}
		r = placement_add_sealed(placement, "file", entry->data, entry->data_size, place);
		if (r < 0)
			return r;
	}
	return 0;
}

static int anchors_add(const Plan *plan, const BwrapArguments *arguments, Placement *placement)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	r = anchors_list(plan, arguments, JAIL_FD_SOURCES, &text, &size);
	if (r < 0 || !text)
		return r;
	return placement_add_sealed(placement, "anchors", text, size, HOLDER_PLACE_ANCHORS);
}

int jail_execute(const JailExec *jail, Holder *holder, char **ret_problem)
{
	_cleanup_(bwrap_arguments_done) BwrapArguments arguments = { 0 };
	_cleanup_(placement_done) Placement placement = { .n = 0 };
	int r;

	r = bwrap_arguments_make(jail->plan, JAIL_FD_SOURCES, &arguments);
	if (r == 0 && arguments.n_fds > PLAN_MOUNTS_MAX)
		r = -E2BIG;
	if (r == 0)
		r = placement_add_sealed(&placement, "arguments", arguments.text, arguments.size,
					 JAIL_FD_ARGUMENTS);
	if (r == 0)
		r = orders_make(jail, &placement);
	if (r == 0)
		r = sources_add(&arguments, &placement);
	if (r == 0)
		r = anchors_add(jail->plan, &arguments, &placement);
	if (r < 0)
		return refuse(ret_problem, r, "what bwrap is to be told cannot be put together: %s",
			      strerror(-r));

	placement_add(&placement, jail->error_fd, STDERR_FILENO, false);
	placement_add(&placement, jail->report_fd, INIT_FD_REPORT, false);
	placement_add(&placement, jail->keys->terminal_fd, INIT_FD_TERMINAL, false);
	for (unsigned i = 0; i < KEYS_MAX; i++)
		placement_add(&placement, jail->keys->fds[i], INIT_FD_STDIN + (int)i, false);
	return holder_execute(holder, placement.fds, placement.places, placement.n, ret_problem);
}
