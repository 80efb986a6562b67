/* SPDX-License-Identifier: MIT */
#include "service/session/state-merge.h"

#include "service/session/state-json.h"

/* Claude's own file nests three objects. What lies deeper is taken whole. */
#define MERGE_DEPTH_MAX 8u
#define INDENT 2u /* as JSON.stringify(value, null, 2), which wrote the values */

enum { BASE, AGENT, HOST, SIDES };

typedef struct Merge {
	FILE *out;
	bool conflict;
} Merge;

typedef struct Objects {
	StateObject of[SIDES];
} Objects;

static void objects_done(Objects *objects)
{
	for (size_t i = 0; i < SIDES; i++)
		state_object_done(&objects->of[i]);
}

static bool same(const StateMember *a, const StateMember *b)
{
	if (!a || !b)
		return a == b;
	return state_json_same(a->value, a->value_size, b->value, b->value_size);
}

static bool is_object(const StateMember *member)
{
	return member && member->value[0] == '{';
}

/* Whose value holds? *ret is NULL for a key that goes. Return: false when the objects have to be merged. */
static bool choose(Merge *merge, const StateMember *const members[static SIDES], unsigned depth,
		   const StateMember **ret)
{
	*ret = members[HOST];
	if (same(members[AGENT], members[HOST]) || same(members[BASE], members[AGENT]))
		return true;
	if (same(members[BASE], members[HOST])) {
		*ret = members[AGENT];
		return true;
	}
	if (is_object(members[AGENT]) && is_object(members[HOST]) && depth < MERGE_DEPTH_MAX)
		return false;
	merge->conflict = true;
	return true;
}

static int merge_objects(Merge *merge, const StateVersion versions[static SIDES], unsigned depth);

static int merge_member(Merge *merge, const Objects *objects, const StateMember *name, unsigned depth,
			bool *first)
{
	const StateMember *members[SIDES], *chosen;
	bool whole;

	for (size_t i = 0; i < SIDES; i++)
		members[i] = state_object_find(&objects->of[i], name->key);
	whole = choose(merge, members, depth, &chosen);
	if (whole && !chosen)
		return 0;
	(void)fprintf(merge->out, "%s\n%*s", *first ? "" : ",", (int)(INDENT * depth), "");
	(void)fwrite(name->key, 1, name->key_size, merge->out);
	(void)fputs(": ", merge->out);
	*first = false;
	if (whole) {
		(void)fwrite(chosen->value, 1, chosen->value_size, merge->out);
		return 0;
	}
	StateVersion versions[SIDES] = { 0 };
	for (size_t i = 0; i < SIDES; i++)
		if (is_object(members[i]))
			versions[i] = (StateVersion){ members[i]->value, members[i]->value_size };
	return merge_objects(merge, versions, depth + 1);
}

static int compare_positions(const void *a, const void *b)
{
	const StateMember *x = *(const StateMember *const *)a, *y = *(const StateMember *const *)b;

	return (x->position > y->position) - (x->position < y->position);
}

/* The members of object that other lacks (all when it is NULL), in the order of the text. */
static int in_order(const StateObject *object, const StateObject *other, const StateMember ***ret,
		    size_t *ret_n)
{
	const StateMember **list = calloc(object->n_members + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < object->n_members; i++) {
		const StateMember *member = &object->members[i];

		if (!other || !state_object_find(other, member->key))
			list[n++] = member;
	}
	qsort(list, n, sizeof(*list), compare_positions);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* depth: of the members, from 1. */
static int merge_objects(Merge *merge, const StateVersion versions[static SIDES], unsigned depth)
{
	_cleanup_(objects_done) Objects objects = { 0 };
	bool first = true;
	int r = 0;

	for (size_t i = 0; r == 0 && i < SIDES; i++)
		if (versions[i].text)
			r = state_object_read(versions[i].text, versions[i].size, &objects.of[i]);
	(void)fputc('{', merge->out);
	for (size_t side = HOST; r == 0 && side >= AGENT; side--) {
		_cleanup_free_ const StateMember **list = NULL;
		size_t n = 0;

		r = in_order(&objects.of[side], side == HOST ? NULL : &objects.of[HOST], &list, &n);
		for (size_t i = 0; r == 0 && i < n; i++)
			r = merge_member(merge, &objects, list[i], depth, &first);
	}
	if (r < 0)
		return r;
	if (!first)
		(void)fprintf(merge->out, "\n%*s", (int)(INDENT * (depth - 1)), "");
	(void)fputc('}', merge->out);
	return 0;
}

static int copy(const StateVersion *version, char **ret_text, size_t *ret_size)
{
	char *text = malloc(version->size + 1);

	if (!text)
		return -ENOMEM;
	memcpy(text, version->text, version->size);
	text[version->size] = 0;
	*ret_text = text;
	*ret_size = version->size;
	return 0;
}

static bool equal(const StateVersion *a, const StateVersion *b)
{
	return a->text && b->text && a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

int state_merge(const StateVersion *base, const StateVersion *agent, const StateVersion *host,
		char **ret_text, size_t *ret_size, bool *ret_conflict)
{
	const StateVersion versions[SIDES] = { *base, *agent, *host };
	_cleanup_free_ char *text = NULL;
	Merge merge = { 0 };
	size_t size = 0;
	int r;

	*ret_conflict = false;
	if (!host->text || (agent->text && equal(base, host)))
		return copy(agent, ret_text, ret_size);
	if (!agent->text || equal(base, agent) || equal(agent, host))
		return copy(host, ret_text, ret_size);
	merge.out = open_memstream(&text, &size);
	if (!merge.out)
		return -ENOMEM;
	r = merge_objects(&merge, versions, 1);
	if (r == 0 && ferror(merge.out))
		r = -ENOMEM;
	if (fclose(merge.out) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret_conflict = merge.conflict;
	/* Nothing is written again for its white space. */
	if (state_json_same(text, size, host->text, host->size))
		return copy(host, ret_text, ret_size);
	if (state_json_same(text, size, agent->text, agent->size))
		return copy(agent, ret_text, ret_size);
	*ret_text = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}
