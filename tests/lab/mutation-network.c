/* SPDX-License-Identifier: MIT */

/*
 * Changes of the jail's network: a step of the denial left out, the filter or the neighbour weakened, a row
 * of the table of routes not programmed or wider, an option of pasta's left out.
 *
 * Such a jail would not start: the self-test and the read-back at its start refuse it. Both are left out
 * here, as is the watch for foreign changes, so that Verify has to notice by itself. It has two ways, and
 * each is tried: what the session reads back by netlink when it tells Verify what to expect ("read back"),
 * and what is seen in the jail when that read-back is silent ("in the jail").
 */

#include "tests/lab/mutation.h"

#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <sys/ioctl.h>

#include "service/net/denial.h"
#include "service/net/foreign.h"
#include "service/net/netlink.h"
#include "service/net/self-test.h"
#include "service/session/program.h"
#include "service/session/verify-facts.h"

/* ld(1), --wrap: what the libraries call is the second of each. */
int __real_denial_apply(Denial *denial, char **ret_problem);
int __wrap_denial_apply(Denial *denial, char **ret_problem);
int __real_denial_read_back(Denial *denial, char **ret_problem);
int __wrap_denial_read_back(Denial *denial, char **ret_problem);
int __real_self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem);
int __wrap_self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem);
int __real_foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what);
int __wrap_foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what);
int __real_verify_facts_encode(const VerifySource *source, uint8_t **ret_data, size_t *ret_size,
			       char **ret_problem);
int __wrap_verify_facts_encode(const VerifySource *source, uint8_t **ret_data, size_t *ret_size,
			       char **ret_problem);
int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument);
_noreturn_ void __real_program_execute(const char *path, char *const *argv, char *const *environment, int in,
				       int out, int error);
_noreturn_ void __wrap_program_execute(const char *path, char *const *argv, char *const *environment, int in,
				       int out, int error);

static bool asked_by_verify;

/* The second word of how says which of the two ways is left: "dropped, in the jail". */
static bool way_is(const char *how)
{
	size_t n = strlen(how);

	return mutation.how && strncmp(mutation.how, how, n) == 0 && mutation.how[n] == ',';
}

static bool is_silent(void)
{
	const char *comma = mutation.how ? strchr(mutation.how, ',') : NULL;

	return comma && streq(comma, ", in the jail");
}

static bool is_of_the_network(void)
{
	return mutation_is("step") || mutation_is("route");
}

static void offer(const char *group, size_t index, const char *how, const char *what)
{
	_cleanup_free_ char *netlink = NULL, *jail = NULL;

	if (asprintf(&netlink, "%s, read back", how) < 0 || asprintf(&jail, "%s, in the jail", how) < 0)
		abort();
	mutation_offer(group, index, netlink, "%s", what);
	mutation_offer(group, index, jail, "%s", what);
}

/* ---- what notices at the start ---- */

int __wrap_self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem)
{
	return is_of_the_network() ? 0 : __real_self_test_run(tap_fd, routes, ret_problem);
}

int __wrap_denial_read_back(Denial *denial, char **ret_problem)
{
	if (is_of_the_network() && (!asked_by_verify || is_silent()))
		return 0;
	return __real_denial_read_back(denial, ret_problem);
}

int __wrap_foreign_judge(const ForeignView *view, const struct nlmsghdr *header, bool *ret_look,
			 char **ret_what)
{
	return is_of_the_network() ? 0 : __real_foreign_judge(view, header, ret_look, ret_what);
}

int __wrap_verify_facts_encode(const VerifySource *source, uint8_t **ret_data, size_t *ret_size,
			       char **ret_problem)
{
	int r;

	asked_by_verify = true;
	r = __real_verify_facts_encode(source, ret_data, ret_size, ret_problem);
	asked_by_verify = false;
	return r;
}

/* ---- steps ---- */

static void offer_steps(void)
{
	size_t i = 0;

	for (; denial_steps[i].name; i++) {
		/* pasta brings it up too, before or after what is read back. */
		if (streq(denial_steps[i].name, "loopback")) {
			mutation_offer("step", i, "dropped, in the jail", "%s", denial_steps[i].name);
			continue;
		}
		offer("step", i, "dropped", denial_steps[i].name);
		if (streq(denial_steps[i].name, "filter")) {
			offer("step", i, "multicast passes", denial_steps[i].name);
			offer("step", i, "another address", denial_steps[i].name);
		}
		if (streq(denial_steps[i].name, "neighbour"))
			offer("step", i, "not permanent", denial_steps[i].name);
	}
}

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	if (request == TUNSETTXFILTER && mutation_is("step")) {
		struct tun_filter *filter = argument;

		if (way_is("multicast passes"))
			filter->flags |= TUN_FLT_ALLMULTI;
		if (way_is("another address"))
			filter->addr[0][5] ^= 1;
	}
	return __real_ioctl(fd, request, argument);
}

static int neighbour_fading(const Denial *denial)
{
	for (size_t i = 0; i < denial->meant.n; i++) {
		struct nlmsghdr *message = denial->meant.rows[i].message, *changed;

		if (denial->meant.rows[i].kind != MEANT_NEIGHBOUR)
			continue;
		changed = malloc(message->nlmsg_len);
		if (!changed)
			return -ENOMEM;
		memcpy(changed, message, message->nlmsg_len);
		((struct ndmsg *)NLMSG_DATA(changed))->ndm_state = NUD_REACHABLE;
		return netlink_program_one(denial->netlink, changed, NULL);
	}
	abort();
}

/* ---- rows of the table of routes ---- */

static void offer_routes(const Denial *denial)
{
	const RouteTable *routes = denial->routes;

	for (size_t i = 0; i < routes->n_rows; i++) {
		const RouteRow *row = &routes->rows[i];
		_cleanup_free_ char *what = NULL;
		char prefix[ROUTE_TEXT_MAX];

		if (asprintf(&what, "%s\t%s\t%s", route_to_string(row->address, row->length, prefix),
			     route_verdict_to_string(row->verdict), row->reason ?: "") < 0)
			abort();
		offer("route", i, "dropped", what);
		if (row->verdict == ROUTE_DNS || row->verdict == ROUTE_ALLOW)
			offer("route", i, "wider", what);
		if (row->verdict != ROUTE_DENY)
			continue;
		if (row->length < 32)
			offer("route", i, "narrower", what);
		/* Each alone: the other still answers, so nothing passes. */
		if (denial->devices.ledger > 0) {
			offer("route", i, "without prohibit", what);
			offer("route", i, "without ledger", what);
		}
		offer("route", i, "opened", what);
	}
}

/* Rows are left where they are, since others are named by their numbers: one of no verdict is not programmed.
 */
static void row_mutate(RouteRow *row, const char *step)
{
	if (way_is("dropped") || (way_is("without prohibit") && streq(step, "prohibits")) ||
	    (way_is("without ledger") && streq(step, "ledger")))
		row->verdict = ROUTE_VERDICT_MAX;
	if (way_is("narrower"))
		row->length++;
	if (way_is("wider")) {
		row->length -= 8;
		row->address &= UINT32_MAX << (32 - row->length);
	}
	if (way_is("opened"))
		row->verdict = streq(step, "allow-ip") ? ROUTE_ALLOW : ROUTE_VERDICT_MAX;
}

static int step_apply(Denial *denial, const DenialStep *step, size_t number, char **ret_problem)
{
	const RouteTable *routes = denial->routes;
	RouteTable changed = *routes;
	Meant meant = denial->meant;
	int r;

	if (mutation_is("step") && mutation.index == number) {
		if (way_is("dropped"))
			return 0;
		if (way_is("not permanent"))
			return neighbour_fading(denial);
	}
	if (!mutation_is("route"))
		return step->apply(denial, step->kind, ret_problem);
	if (mutation.index >= routes->n_rows)
		abort();
	changed.rows = calloc(routes->n_rows, sizeof(RouteRow));
	if (!changed.rows)
		return -ENOMEM;
	memcpy(changed.rows, routes->rows, routes->n_rows * sizeof(RouteRow));
	row_mutate(&changed.rows[mutation.index], step->name);
	r = meant_make(&changed, &denial->devices, &denial->meant);
	if (r == 0) {
		r = step->apply(denial, step->kind, ret_problem);
		meant_done(&denial->meant);
	}
	denial->meant = meant;
	free(changed.rows);
	return r;
}

int __wrap_denial_apply(Denial *denial, char **ret_problem)
{
	offer_steps();
	offer_routes(denial);
	if (!is_of_the_network())
		return __real_denial_apply(denial, ret_problem);
	for (size_t i = 0; denial_steps[i].name; i++) {
		int r = step_apply(denial, &denial_steps[i], i, ret_problem);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- pasta ---- */

static bool is_option(const char *word)
{
	return word[0] == '-';
}

/*
 * An option is a word and what follows it up to the next. Of the second way, by a process, the last word is a pid, which
 * follows an option that has a value.
 */
void __wrap_program_execute(const char *path, char *const *argv, char *const *environment, int in, int out,
			    int error)
{
	size_t n = 0, to = 0, option = 0;
	char **changed;

	if (!argv[0] || !streq(argv[0], "pasta") || (!mutation.list && !mutation_is("pasta")))
		__real_program_execute(path, argv, environment, in, out, error);
	while (argv[n])
		n++;
	changed = calloc(n + 1, sizeof(*changed));
	if (!changed)
		abort();
	for (size_t i = 0; i < n; i++) {
		bool has_value = i + 1 < n && !is_option(argv[i + 1]);

		/* "-f" denies nothing: without it the session sees pasta end, now sooner and now later. */
		if (!is_option(argv[i]) || streq(argv[i], "-f")) {
			changed[to++] = argv[i];
			continue;
		}
		mutation_offer("pasta", option, "dropped", "%s%s%s", argv[i], has_value ? " " : "",
			       has_value ? argv[i + 1] : "");
		if (!mutation_hits("pasta", option, "dropped")) {
			changed[to++] = argv[i];
			if (has_value)
				changed[to++] = argv[i + 1];
		}
		i += has_value;
		option++;
	}
	__real_program_execute(path, changed, environment, in, out, error);
}
