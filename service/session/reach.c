/* SPDX-License-Identifier: MIT */
#include "service/session/reach.h"

#define EXPIRY_ACCURACY_USEC (20 * USEC_PER_MSEC)

struct Reach {
	Network *network;
	Config *config;
	ReachCalls calls;
	void *userdata;
	sd_event *event;
	sd_event_source *expiry; /* CLOCK_BOOTTIME: a suspended machine's time counts */
	Allowances allowances;
};

static uint64_t now_usec(const Reach *reach)
{
	uint64_t usec = 0;

	(void)sd_event_now(reach->event, CLOCK_BOOTTIME, &usec);
	return usec;
}

static int set_expiry(Reach *reach)
{
	uint64_t end = allowances_next_end(&reach->allowances);

	if (end == 0)
		return sd_event_source_set_enabled(reach->expiry, SD_EVENT_OFF);
	return sd_event_source_set_time(reach->expiry, end)
		       ?: sd_event_source_set_enabled(reach->expiry, SD_EVENT_ONESHOT);
}

/*
 * Make the network that of wanted. On success wanted has taken the place of what was; else both are as
 * before.
 */
static int change(Reach *reach, Allowances *wanted, char **ret_problem)
{
	_cleanup_free_ char *problem = NULL;
	Allowances before = reach->allowances;
	int r;

	r = allowances_write(wanted, reach->config);
	if (r >= 0 && !allowances_open_the_same(wanted, &before))
		r = network_change(reach->network, reach->config, &problem);
	if (r >= 0) {
		reach->allowances = *wanted;
		*wanted = before;
		if (set_expiry(reach) < 0)
			reach->calls.broken(reach->userdata, "an address cannot be closed on time");
		return 0;
	}
	if (allowances_write(&before, reach->config) < 0 || r == -EREMCHG)
		reach->calls.broken(reach->userdata, problem ?: strerror(-r));
	return refuse(ret_problem, r, "%s", problem ?: strerror(-r));
}

static int on_expiry(sd_event_source *source, uint64_t usec, void *userdata)
{
	_cleanup_(allowances_done) Allowances wanted = { 0 };
	_cleanup_free_ char *problem = NULL;
	Reach *reach = userdata;
	int r;

	r = allowances_copy(&reach->allowances, &wanted);
	if (r >= 0) {
		(void)allowances_expire(&wanted, now_usec(reach));
		r = change(reach, &wanted, &problem);
	}
	/* What must not be open any more and cannot be closed. */
	if (r < 0)
		reach->calls.broken(reach->userdata, problem ?: strerror(-r));
	return 0;
}

/* ---- the session's own ---- */

static int close_again(Reach *reach, const LinkMessage *m, char **ret_problem)
{
	_cleanup_(allowances_done) Allowances wanted = { 0 };
	int r;

	r = allowances_copy(&reach->allowances, &wanted);
	if (r >= 0)
		r = allowances_revoke(&wanted, m->text, ret_problem);
	return r < 0 ? r : change(reach, &wanted, ret_problem);
}

static const char *why_left_out(const Reach *reach)
{
	char *const *warnings = reach->network->denial.warnings;

	return warnings ? warnings[0] : "the address is not reachable";
}

static bool is_left_out(const Reach *reach, HostPrefix prefix)
{
	return reach->network->denial_open &&
	       denial_left_out(&reach->network->denial, prefix.address, prefix.length);
}

static int refuse_name_server(const Reach *reach, HostPrefix prefix, const char *text, char **ret_problem)
{
	if (prefix.length != 32 || prefix.address != reach->network->routes.forwarder)
		return 0;
	return refuse(ret_problem, -EADDRINUSE,
		      "%s is the name server of the session, so it cannot be opened there; start it anew",
		      text);
}

static int allow(Reach *reach, const LinkMessage *m, char **ret_problem)
{
	_cleanup_(allowances_done) Allowances wanted = { 0 };
	uint64_t end = 0;
	HostPrefix prefix;
	int r;

	if (!reach->network->jailed)
		return refuse(ret_problem, -EOPNOTSUPP,
			      "the session shares the host's network: it reaches what the host reaches");
	if (m->usec > 0 && __builtin_add_overflow(now_usec(reach), m->usec, &end))
		end = UINT64_MAX;
	r = allowances_copy(&reach->allowances, &wanted);
	if (r >= 0)
		r = allowances_allow(&wanted, m->text, end, &prefix, ret_problem);
	if (r >= 0)
		r = refuse_name_server(reach, prefix, m->text, ret_problem);
	if (r >= 0)
		r = change(reach, &wanted, ret_problem);
	if (r < 0)
		return r;
	/* An address that nobody reaches is not kept as one of the session's own. */
	if (is_left_out(reach, prefix)) {
		(void)refuse(ret_problem, -EOPNOTSUPP, "%s", why_left_out(reach));
		return close_again(reach, m, NULL) ?: -EOPNOTSUPP;
	}
	reach->calls.warned(reach->userdata, reach->network->routes.warnings);
	return 0;
}

/* ---- the configuration's ---- */

static HostPrefix prefix_of(const char *text)
{
	uint32_t address = 0;
	unsigned length = 0;

	(void)config_parse_address(text, &address, &length, NULL);
	return (HostPrefix){ address, (uint8_t)length };
}

static int add_problem(char **problems, const char *problem)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", *problems ?: "", *problems ? "; " : "", problem) < 0)
		return -ENOMEM;
	free(*problems);
	*problems = joined;
	return 0;
}

/* What is new in wanted and is the name server (before), or was left out by the kernel: not kept. Return: 1 when
 * something was taken out. */
static int drop_impossible(const Reach *reach, const Allowances *known, Allowances *wanted, bool before,
			   char **problems)
{
	int r = 0;

	for (size_t i = wanted->n; r >= 0 && i-- > 0;) {
		const Allowance *entry = &wanted->entries[i];
		_cleanup_free_ char *problem = NULL;
		HostPrefix prefix = prefix_of(entry->text);

		if (allowances_have(known, entry->text))
			continue;
		if (before ? refuse_name_server(reach, prefix, entry->text, &problem) == 0
			   : !is_left_out(reach, prefix))
			continue;
		r = add_problem(problems, problem ?: why_left_out(reach));
		allowances_unconfigure(wanted, entry->text);
		r = r < 0 ? r : 1;
	}
	return r;
}

/* What ends must end, whatever else cannot be done: all that was open is known here. */
static int close_only(Reach *reach, const LinkMessage *m)
{
	_cleanup_(allowances_done) Allowances wanted = { 0 };
	_cleanup_free_ char *problem = NULL;
	int r;

	r = allowances_copy(&reach->allowances, &wanted);
	if (r >= 0)
		r = allowances_configure(&wanted, m->addresses, false, &problem);
	if (r >= 0)
		r = change(reach, &wanted, &problem);
	if (r < 0)
		reach->calls.broken(reach->userdata, problem ?: strerror(-r));
	return r;
}

/* What the kernel did not take is not kept. */
static int drop_left_out(Reach *reach, const Allowances *known, char **problems)
{
	_cleanup_(allowances_done) Allowances wanted = { 0 };
	int r;

	r = allowances_copy(&reach->allowances, &wanted);
	if (r >= 0)
		r = drop_impossible(reach, known, &wanted, false, problems);
	return r > 0 ? change(reach, &wanted, NULL) : r;
}

static int configure(Reach *reach, const LinkMessage *m, char **ret_problem)
{
	_cleanup_(allowances_done) Allowances wanted = { 0 }, known = { 0 };
	_cleanup_free_ char *problems = NULL, *problem = NULL;
	int r;

	r = allowances_copy(&reach->allowances, &known);
	if (r >= 0)
		r = allowances_copy(&known, &wanted);
	if (r >= 0)
		r = allowances_configure(&wanted, m->addresses, true, &problem);
	if (r >= 0)
		r = drop_impossible(reach, &known, &wanted, true, &problems);
	if (r >= 0)
		r = change(reach, &wanted, &problem);
	if (r < 0) {
		(void)refuse(ret_problem, 0, "%s", problem ?: strerror(-r));
		return close_only(reach, m);
	}
	reach->calls.warned(reach->userdata, reach->network->routes.warnings);
	r = drop_left_out(reach, &known, &problems);
	if (problems)
		(void)refuse(ret_problem, 0, "%s", problems);
	return r;
}

int reach_handle(Reach *reach, const LinkMessage *m, char **ret_problem)
{
	switch (m->kind) {
	case LINK_REACH:
		return configure(reach, m, ret_problem);
	case LINK_ALLOW:
		return allow(reach, m, ret_problem);
	default:
		return close_again(reach, m, ret_problem);
	}
}

const Allowances *reach_allowances(const Reach *reach)
{
	return &reach->allowances;
}

int reach_new(sd_event *event, Network *network, Config *config, const ReachCalls *calls, void *userdata,
	      Reach **ret)
{
	_cleanup_(reach_freep) Reach *reach = calloc(1, sizeof(*reach));
	int r;

	if (!reach)
		return -ENOMEM;
	reach->event = sd_event_ref(event);
	reach->network = network;
	reach->config = config;
	reach->calls = *calls;
	reach->userdata = userdata;
	r = allowances_read(config, &reach->allowances);
	if (r >= 0)
		r = sd_event_add_time(event, &reach->expiry, CLOCK_BOOTTIME, 0, EXPIRY_ACCURACY_USEC,
				      on_expiry, reach);
	if (r >= 0)
		r = set_expiry(reach);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(reach);
	return 0;
}

Reach *reach_free(Reach *reach)
{
	if (!reach)
		return NULL;
	(void)sd_event_source_disable_unref(reach->expiry);
	(void)sd_event_unref(reach->event);
	allowances_done(&reach->allowances);
	free(reach);
	return NULL;
}
