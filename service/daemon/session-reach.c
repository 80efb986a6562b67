/* SPDX-License-Identifier: MIT */
#include "service/daemon/session-reach.h"

#include "service/daemon/keeper.h"

#define ENVIRONMENT "environment " /* ConfigValue.origin */

typedef struct Waiting Waiting;

struct Waiting {
	ReachFunction function;
	void *userdata;
	Waiting *next;
};

struct SessionReach {
	Session *session;
	char **taken;           /* what it may have open of the configuration's */
	bool known;             /* it has just that */
	AllowList *asked, *due; /* what it was told and has not answered; what it is to be told then */
	Waiting *asking, *waiting;
};

/* ---- the list ---- */

AllowList *allow_list_new(const Config *config)
{
	AllowList *list = calloc(1, sizeof(*list));
	const ConfigValue *value;
	size_t index = 0;

	if (!list)
		return NULL;
	list->n_ref = 1;
	while ((value = config_next(config, CONFIG_ALLOW_IP, &index)))
		if (!starts_with(value->origin, ENVIRONMENT) && strings_append(&list->texts, value->text) < 0)
			return allow_list_unref(list);
	return list;
}

AllowList *allow_list_ref(AllowList *list)
{
	list->n_ref++;
	return list;
}

AllowList *allow_list_unref(AllowList *list)
{
	if (!list || --list->n_ref > 0)
		return NULL;
	strings_free(list->texts);
	free(list);
	return NULL;
}

/* Is all of a in b? */
static bool is_within(char *const *a, char *const *b)
{
	for (size_t i = 0; a && a[i]; i++)
		if (!strings_have(b, a[i]))
			return false;
	return true;
}

static bool is_same(const AllowList *a, const AllowList *b)
{
	return is_within(a->texts, b->texts) && is_within(b->texts, a->texts);
}

/* ---- telling ---- */

/* A function may tell again, or free everything but reach. */
static void answer_all(Waiting *waiting, int result, const char *problem)
{
	while (waiting) {
		Waiting *next = waiting->next;

		waiting->function(waiting->userdata, result, problem);
		free(waiting);
		waiting = next;
	}
}

static void on_answer(void *userdata, int result, const char *problem);

static int tell(SessionReach *reach, AllowList *list)
{
	Keeper *keeper = reach->session->keeper;
	int r = keeper ? keeper_tell(keeper, &(LinkMessage){ .kind = LINK_REACH, .addresses = list->texts },
				     on_answer, reach)
		       : -ENOTCONN;

	if (r >= 0)
		reach->asked = allow_list_ref(list);
	return r;
}

/* Where it did not do it, nobody knows what of both it has. */
static void learn(SessionReach *reach, int result, const char *problem)
{
	char **texts = NULL;
	int r = 0;

	for (size_t i = 0; reach->asked->texts && reach->asked->texts[i] && r >= 0; i++)
		r = strings_append(&texts, reach->asked->texts[i]);
	if (result < 0)
		for (size_t i = 0; reach->taken && reach->taken[i] && r >= 0; i++)
			r = strings_append(&texts, reach->taken[i]);
	reach->known = r >= 0 && result == 0 && !problem;
	if (r < 0) {
		strings_free(texts);
		return;
	}
	strings_free(reach->taken);
	reach->taken = texts;
}

static void on_answer(void *userdata, int result, const char *problem)
{
	_cleanup_(allow_list_unrefp) AllowList *due = NULL;
	SessionReach *reach = userdata;
	Waiting *done, *waiting;
	int r = 0;

	if (result == -ECANCELED) {
		reach->asked = allow_list_unref(reach->asked);
		return; /* the session is being freed */
	}
	learn(reach, result, problem);
	reach->asked = allow_list_unref(reach->asked);
	due = TAKE_PTR(reach->due);
	done = TAKE_PTR(reach->asking);
	waiting = TAKE_PTR(reach->waiting);
	/* Whoever does not answer is not told what else there is. */
	if (due)
		r = result < 0 && !session_reach_is_refusal(result) ? result : tell(reach, due);
	if (due && r >= 0)
		reach->asking = TAKE_PTR(waiting);
	answer_all(done, result, problem);
	answer_all(waiting, r, NULL);
}

int session_reach_tell(Session *session, AllowList *list, ReachFunction function, void *userdata)
{
	SessionReach *reach = session->reach;
	Waiting *waiting, **head;
	int r = 0;

	if (!reach)
		return -ENOTCONN;
	waiting = malloc(sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	head = reach->due || (reach->asked && !is_same(reach->asked, list)) ? &reach->waiting
									    : &reach->asking;
	if (!reach->asked)
		r = tell(reach, list);
	else if (head == &reach->waiting) {
		allow_list_unref(reach->due);
		reach->due = allow_list_ref(list);
	}
	if (r < 0) {
		free(waiting);
		return r;
	}
	*waiting = (Waiting){ function, userdata, *head };
	*head = waiting;
	return 0;
}

/* ---- what it has ---- */

bool session_reach_is_refusal(int result)
{
	return result != -ETIMEDOUT && result != -ECONNRESET && result != -ECANCELED && result != -ENOTCONN &&
	       result != -EPIPE && result != -EBADMSG && result != -EAGAIN && result != -EBUSY &&
	       result != -EPROTONOSUPPORT;
}

bool session_reach_has_more(const Session *session, const AllowList *list)
{
	return session->reach && !is_within(session->reach->taken, list->texts);
}

bool session_reach_is(const Session *session, const AllowList *list)
{
	const SessionReach *reach = session->reach;

	return reach && reach->known && !reach->asked && is_within(reach->taken, list->texts) &&
	       is_within(list->texts, reach->taken);
}

int session_reach_new(Session *session, const Config *known)
{
	_cleanup_(allow_list_unrefp) AllowList *list = known ? allow_list_new(known) : NULL;
	SessionReach *reach = calloc(1, sizeof(*reach));

	if (!reach || (known && !list)) {
		free(reach);
		return -ENOMEM;
	}
	reach->session = session;
	reach->known = known;
	if (list)
		reach->taken = TAKE_PTR(list->texts);
	session->reach = reach;
	return 0;
}

SessionReach *session_reach_free(SessionReach *reach)
{
	if (!reach)
		return NULL;
	answer_all(TAKE_PTR(reach->asking), -ESRCH, NULL);
	answer_all(TAKE_PTR(reach->waiting), -ESRCH, NULL);
	allow_list_unref(reach->asked);
	allow_list_unref(reach->due);
	strings_free(reach->taken);
	free(reach);
	return NULL;
}
