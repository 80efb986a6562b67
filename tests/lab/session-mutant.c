/* SPDX-License-Identifier: MIT */

/*
 * `session`, which does something else than its plan says (mutation.h), and still tells Verify what the plan
 * says. Only tests link this; the installed program has no such switch.
 */

#include "tests/lab/mutation.h"

#include "service/plan/bwrap-args.h"
#include "service/session/anchors.h"
#include "service/session/device-modes.h"
#include "service/session/mask-watch.h"
#include "service/session/run.h"

/* ld(1), --wrap: what the libraries call is the second of each. */
int __real_session_request_decode(const void *data, size_t size, SessionRequest *ret);
int __wrap_session_request_decode(const void *data, size_t size, SessionRequest *ret);
int __real_jail_execute(const JailExec *jail, Holder *holder, char **ret_problem);
int __wrap_jail_execute(const JailExec *jail, Holder *holder, char **ret_problem);
char *const *__real_jail_exec_arguments(void);
char *const *__wrap_jail_exec_arguments(void);
int __real_bwrap_arguments_make(const Plan *plan, int first_fd, BwrapArguments *ret);
int __wrap_bwrap_arguments_make(const Plan *plan, int first_fd, BwrapArguments *ret);
int __real_anchors_list(const Plan *plan, const BwrapArguments *arguments, int first_place, char **ret_text,
			size_t *ret_size);
int __wrap_anchors_list(const Plan *plan, const BwrapArguments *arguments, int first_place, char **ret_text,
			size_t *ret_size);
int __real_init_orders_encode(const InitOrders *orders, uint8_t **ret_data, size_t *ret_size);
int __wrap_init_orders_encode(const InitOrders *orders, uint8_t **ret_data, size_t *ret_size);
int __real_mask_watch_enter(MaskWatch *watch, pid_t leader);
int __wrap_mask_watch_enter(MaskWatch *watch, pid_t leader);
int __real_mask_watch_start(MaskWatch *watch);
int __real_device_modes_keep(char **ret_problem);
int __wrap_device_modes_keep(char **ret_problem);
int __wrap_mask_watch_start(MaskWatch *watch);

int __wrap_session_request_decode(const void *data, size_t size, SessionRequest *ret)
{
	int r = __real_session_request_decode(data, size, ret);

	if (r == 0)
		mutation_read(ret->environment);
	return r;
}

/* ---- entries and variables ---- */

int __wrap_jail_execute(const JailExec *jail, Holder *holder, char **ret_problem)
{
	JailExec other = *jail;
	Plan changed;
	int r;

	r = mutation_plan(jail->plan, &changed);
	if (r < 0)
		return r;
	other.plan = &changed;
	r = __real_jail_execute(&other, holder, ret_problem);
	mutation_plan_done(&changed);
	return r;
}

/*
 * The session looks itself whether what hides lies where it has to; here it is for Verify to see. Nor may
 * what Verify tries in one session end another that runs beside it.
 */
int __wrap_mask_watch_enter(MaskWatch *watch, pid_t leader)
{
	return mutation.group ? 0 : __real_mask_watch_enter(watch, leader);
}

int __wrap_mask_watch_start(MaskWatch *watch)
{
	return mutation.group ? 0 : __real_mask_watch_start(watch);
}

/* Of root's sessions. */
int __wrap_device_modes_keep(char **ret_problem)
{
	mutation_offer("devices", 0, "dropped", "/dev is read-only to bwrap");
	return mutation_is("devices") ? 0 : __real_device_modes_keep(ret_problem);
}

/* ---- bwrap's flags ---- */

/* bwrap(1): what the entries of a plan are told with. Everything before is a flag. */
static bool is_operation(const char *word)
{
	static const char *const operations[] = { "--perms",    "--tmpfs",        "--dev",        "--proc",
						  "--symlink",  "--bind-fd",      "--ro-bind-fd", "--dir",
						  "--dev-bind", "--ro-bind-data", "--remount-ro" };

	for (size_t i = 0; i < ELEMENTSOF(operations); i++)
		if (streq(word, operations[i]))
			return true;
	return false;
}

static size_t flag_size(const char *at, const char *end)
{
	const char *next = at + strlen(at) + 1;

	/* A value of it. */
	while (next < end && next[0] != '-')
		next += strlen(next) + 1;
	return (size_t)(next - at);
}

int __wrap_bwrap_arguments_make(const Plan *plan, int first_fd, BwrapArguments *ret)
{
	size_t number = 0;
	char *at, *end;
	int r;

	r = __real_bwrap_arguments_make(plan, first_fd, ret);
	if (r < 0)
		return r;
	at = ret->text;
	end = ret->text + ret->size;
	while (at < end && !is_operation(at)) {
		size_t size = flag_size(at, end), word = strlen(at) + 1;

		mutation_offer("flag", number, "dropped", "%s%s%s", at, word < size ? " " : "",
			       word < size ? at + word : "");
		if (mutation_hits("flag", number, "dropped")) {
			memmove(at, at + size, (size_t)(end - at) - size);
			ret->size -= size;
			return 0;
		}
		at += size;
		number++;
	}
	return 0;
}

/* ---- anchors ---- */

/* The text is described at the top of anchors.c: number, source, destination, places, an empty string; again.
 */
int __wrap_anchors_list(const Plan *plan, const BwrapArguments *arguments, int first_place, char **ret_text,
			size_t *ret_size)
{
	const char *destination = NULL;
	size_t number = 0, field = 0;
	char *at, *end;
	int r;

	r = __real_anchors_list(plan, arguments, first_place, ret_text, ret_size);
	if (r < 0 || !*ret_text)
		return r;
	end = *ret_text + *ret_size;
	for (at = *ret_text; at < end; at += strlen(at) + 1, field++) {
		if (field == 2)
			destination = at;
		if (field < 3)
			continue;
		if (!*at) {
			field = SIZE_MAX;
			continue;
		}
		mutation_offer("anchor", number, "dropped", "%s/%s",
			       streq(destination, "/") ? "" : destination, at + 1);
		if (mutation_hits("anchor", number, "dropped")) {
			size_t size = strlen(at) + 1;

			memmove(at, at + size, (size_t)(end - at) - size);
			*ret_size -= size;
			return 0;
		}
		number++;
	}
	return 0;
}

/* ---- init ---- */

int __wrap_init_orders_encode(const InitOrders *orders, uint8_t **ret_data, size_t *ret_size)
{
	InitOrders changed = *orders;

	if (orders->forbid_namespaces)
		mutation_offer("orders", 0, "dropped", "no user namespaces");
	if (mutation_hits("orders", 0, "dropped"))
		changed.forbid_namespaces = false;
	return __real_init_orders_encode(&changed, ret_data, ret_size);
}

/* What init is to do otherwise is its first argument (init-mutant.c). */
char *const *__wrap_jail_exec_arguments(void)
{
	static char *arguments[16];
	char *const *real = __real_jail_exec_arguments();
	size_t n = 0;

	if (!mutation.group || (!starts_with(mutation.group, "filter") && !mutation_is("init")))
		return real;
	while (real[n] && n + 2 < ELEMENTSOF(arguments)) {
		arguments[n] = real[n];
		n++;
	}
	if (asprintf(&arguments[n], "%s:%zu:%s", mutation.group, mutation.index, mutation.how) < 0)
		abort();
	return arguments;
}

int main(void)
{
	return session_run();
}
