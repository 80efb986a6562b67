/* SPDX-License-Identifier: MIT */
#include "service/session/attempts.h"

#include <inttypes.h>

#include "dbus/names.h"
#include "service/plan/packet.h"

#define BUCKETS 1024u
#define NONE UINT16_MAX

/* What a row stands for. */
typedef enum Kind {
	KIND_DESTINATION,
	KIND_ADDRESS, /* any port, protocol and program */
	KIND_NETWORK, /* its /24, likewise */
	KIND_MAX,
} Kind;

typedef struct Row {
	Kind kind;
	Attempt attempt;
	uint64_t usec, count, told;
	uint16_t next;         /* in its bucket */
	uint16_t newer, older; /* in the order of the last attempt */
} Row;

/* A row without a destination. */
typedef struct Sum {
	uint64_t usec, count, told;
} Sum;

struct Attempts {
	Row *rows; /* ATTEMPTS_MAX, from the first attempt on */
	uint16_t n_rows, newest, oldest;
	uint16_t n_first, n_important, n_checked, n_of_kind[KIND_MAX];
	uint16_t buckets[BUCKETS];
	Sum folded, unseen, checked;
	uint64_t total;
};

Attempts *attempts_new(void)
{
	Attempts *attempts = calloc(1, sizeof(*attempts));

	if (!attempts)
		return NULL;
	attempts->newest = attempts->oldest = NONE;
	for (size_t i = 0; i < BUCKETS; i++)
		attempts->buckets[i] = NONE;
	return attempts;
}

Attempts *attempts_free(Attempts *attempts)
{
	if (attempts)
		free(attempts->rows);
	free(attempts);
	return NULL;
}

/* FNV-1a of the destination. An agent that makes keys collide slows its own attempts down by a look at ATTEMPTS_MAX
 * rows. */
static uint16_t bucket_of(Kind kind, const Attempt *attempt)
{
	const uint32_t words[] = { kind, attempt->protocol, attempt->address, attempt->port };
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(words); i++)
		hash = (hash ^ ((const uint8_t *)words)[i]) * 16777619u;
	return (uint16_t)((hash ^ hash >> 16) % BUCKETS);
}

/*
 * Return: the row of this attempt, or NONE. *ret_programs: how many rows there are of its destination.
 */
static uint16_t row_find(const Attempts *attempts, Kind kind, const Attempt *attempt, unsigned *ret_programs)
{
	*ret_programs = 0;
	for (uint16_t i = attempts->buckets[bucket_of(kind, attempt)]; i != NONE;
	     i = attempts->rows[i].next) {
		const Row *row = &attempts->rows[i];

		if (row->kind != kind || row->attempt.protocol != attempt->protocol ||
		    row->attempt.address != attempt->address || row->attempt.port != attempt->port)
			continue;
		++*ret_programs;
		if (row->attempt.checked == attempt->checked && streq(row->attempt.program, attempt->program))
			return i;
	}
	return NONE;
}

static void order_remove(Attempts *attempts, uint16_t i)
{
	Row *row = &attempts->rows[i];

	if (row->newer == NONE)
		attempts->newest = row->older;
	else
		attempts->rows[row->newer].older = row->older;
	if (row->older == NONE)
		attempts->oldest = row->newer;
	else
		attempts->rows[row->older].newer = row->newer;
}

static void order_first(Attempts *attempts, uint16_t i)
{
	Row *row = &attempts->rows[i];

	row->newer = NONE;
	row->older = attempts->newest;
	if (attempts->newest != NONE)
		attempts->rows[attempts->newest].newer = i;
	attempts->newest = i;
	if (attempts->oldest == NONE)
		attempts->oldest = i;
}

static void sum_add(Sum *sum, uint64_t count, uint64_t usec)
{
	sum->count += count;
	sum->usec = MAX_OF(sum->usec, usec);
}

/* Has the table a place for a new row? It is taken then. */
static bool place_take(Attempts *attempts, Kind kind, const Attempt *attempt)
{
	static const uint16_t most[KIND_MAX] = {
		[KIND_ADDRESS] = ATTEMPTS_ADDRESSES_MAX, [KIND_NETWORK] = ATTEMPTS_NETWORKS_MAX
	};

	if (kind != KIND_DESTINATION) {
		if (attempts->n_of_kind[kind] == most[kind])
			return false;
		attempts->n_of_kind[kind]++;
	} else if (attempt->checked) {
		if (attempts->n_checked == ATTEMPTS_CHECKED_MAX)
			return false;
		attempts->n_checked++;
	} else if (attempts->n_first < ATTEMPTS_FIRST_MAX) {
		attempts->n_first++;
	} else if (attempt->important && attempts->n_important < ATTEMPTS_IMPORTANT_MAX) {
		attempts->n_important++;
	} else {
		return false;
	}
	return true;
}

/* Return: the row that counts this attempt, a new one where there is a place, or NONE. */
static uint16_t row_of(Attempts *attempts, Kind kind, const Attempt *attempt)
{
	Attempt key = *attempt;
	unsigned programs;
	uint16_t i, bucket;

	if (kind != KIND_DESTINATION)
		key = (Attempt){ .address =
					 kind == KIND_NETWORK ? attempt->address & ~255u : attempt->address };
	i = row_find(attempts, kind, &key, &programs);
	if (i == NONE && programs >= ATTEMPTS_PROGRAMS_MAX) {
		key.program[0] = '\0';
		i = row_find(attempts, kind, &key, &programs);
	}
	if (i != NONE || !place_take(attempts, kind, attempt))
		return i;
	i = attempts->n_rows++;
	bucket = bucket_of(kind, &key);
	attempts->rows[i] = (Row){
		.kind = kind, .attempt = key, .next = attempts->buckets[bucket], .newer = NONE, .older = NONE
	};
	attempts->buckets[bucket] = i;
	order_first(attempts, i);
	return i;
}

void attempts_add(Attempts *attempts, const Attempt *attempt, uint64_t usec)
{
	uint16_t i = NONE;

	if (!attempt->checked)
		attempts->total++;
	if (!attempts->rows)
		attempts->rows = calloc(ATTEMPTS_MAX, sizeof(*attempts->rows));
	if (attempts->rows)
		i = row_of(attempts, KIND_DESTINATION, attempt);
	if (i == NONE && attempt->checked) {
		sum_add(&attempts->checked, 1, usec);
		return;
	}
	if (attempts->rows && i == NONE && attempt->important)
		i = row_of(attempts, KIND_ADDRESS, attempt);
	if (attempts->rows && i == NONE)
		i = row_of(attempts, KIND_NETWORK, attempt);
	if (i == NONE) {
		sum_add(&attempts->folded, 1, usec);
		return;
	}
	order_remove(attempts, i);
	order_first(attempts, i);
	if (attempts->rows[i].kind == KIND_DESTINATION)
		attempts->rows[i].attempt.pid = attempt->pid;
	attempts->rows[i].usec = usec;
	attempts->rows[i].count++;
}

void attempts_set_unseen(Attempts *attempts, uint64_t count, uint64_t usec)
{
	if (count <= attempts->unseen.count)
		return;
	attempts->total += count - attempts->unseen.count;
	sum_add(&attempts->unseen, count - attempts->unseen.count, usec);
}

uint64_t attempts_total(const Attempts *attempts)
{
	return attempts->total;
}

/* ---- as rows of the link ---- */

enum { TIME, PROTOCOL, ADDRESS, PORT, PROGRAM, REASON, COUNT, COLUMNS };

static char *number(uint64_t value)
{
	char *text;

	return asprintf(&text, "%" PRIu64, value) < 0 ? NULL : text;
}

static char *program_text(const Attempt *attempt)
{
	char *text;

	if (!attempt->program[0])
		return strdup(attempt->checked ? CS_DENIED_CHECKED : "?");
	if (attempt->pid <= 0)
		return strdup(attempt->program);
	return asprintf(&text, "%s (%d)", attempt->program, attempt->pid) < 0 ? NULL : text;
}

static char *address_text(uint32_t address)
{
	char *text;

	return asprintf(&text, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
			address & 255) < 0
		       ? NULL
		       : text;
}

static int complete(const LinkRow *row)
{
	for (size_t c = 0; c < COLUMNS; c++)
		if (!row->columns[c])
			return -ENOMEM;
	return 0;
}

static char *reason_text(const Row *row, const char *reason)
{
	_cleanup_free_ char *network = row->kind == KIND_NETWORK ? address_text(row->attempt.address) : NULL;
	char *text;

	if (row->kind != KIND_NETWORK)
		return strdup(reason);
	return network && asprintf(&text, "in %s/24: %s", network, reason) >= 0 ? text : NULL;
}

static int write_sum(const Sum *sum, const char *program, const char *reason, LinkRow *ret)
{
	*ret = (LinkRow){ .columns = { number(sum->usec), strdup(""), strdup(""), number(0), strdup(program),
				       strdup(reason), number(sum->count) } };
	return complete(ret);
}

static int write_row(const Row *row, const char *reason, LinkRow *ret)
{
	char protocol[PACKET_PROTOCOL_TEXT_MAX];
	const bool one = row->kind == KIND_DESTINATION;

	*ret = (LinkRow){
		.columns = { number(row->usec),
			     strdup(one ? packet_protocol_to_string(row->attempt.protocol, protocol) : ""),
			     row->kind == KIND_NETWORK ? strdup("") : address_text(row->attempt.address),
			     number(row->attempt.port), one ? program_text(&row->attempt) : strdup(""),
			     reason_text(row, reason), number(row->count) }
	};
	return complete(ret);
}

#define FOLDED_REASON "other destinations, tried when this table was full"
#define UNSEEN_REASON "came faster than they could be looked at"

/* Rows without a destination, with what was not told of them. */
typedef struct SumRow {
	Sum *sum;
	const char *program, *reason;
} SumRow;

#define SUMS 3u

static void sums_of(const Attempts *attempts, SumRow ret[static SUMS])
{
	Attempts *of = (Attempts *)attempts;

	ret[0] = (SumRow){ &of->folded, "", FOLDED_REASON };
	ret[1] = (SumRow){ &of->unseen, "", UNSEEN_REASON };
	ret[2] = (SumRow){ &of->checked, CS_DENIED_CHECKED, FOLDED_REASON };
}

static void rows_free(LinkRow *rows, uint32_t n)
{
	for (uint32_t i = 0; rows && i < n; i++)
		for (size_t c = 0; c < LINK_COLUMNS_MAX; c++)
			free(rows[i].columns[c]);
	free(rows);
}

int attempts_rows(const Attempts *attempts, AttemptsReason reason, void *userdata, LinkRow **ret_rows,
		  uint32_t *ret_n)
{
	LinkRow *rows = calloc(attempts->n_rows + SUMS, sizeof(*rows));
	uint32_t n = 0;
	SumRow sums[SUMS];
	int r = rows ? 0 : -ENOMEM;

	for (uint16_t i = attempts->newest; r == 0 && i != NONE; i = attempts->rows[i].older)
		r = write_row(&attempts->rows[i], reason(userdata, attempts->rows[i].attempt.address),
			      &rows[n++]);
	sums_of(attempts, sums);
	for (size_t i = 0; r == 0 && i < SUMS; i++)
		if (sums[i].sum->count > 0)
			r = write_sum(sums[i].sum, sums[i].program, sums[i].reason, &rows[n++]);
	if (r < 0) {
		rows_free(rows, n);
		return r;
	}
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}

bool attempts_have_news(const Attempts *attempts)
{
	for (uint16_t i = attempts->newest; i != NONE; i = attempts->rows[i].older)
		if (attempts->rows[i].told != attempts->rows[i].count)
			return true;
	return attempts->folded.told != attempts->folded.count ||
	       attempts->unseen.told != attempts->unseen.count ||
	       attempts->checked.told != attempts->checked.count;
}

int attempts_news(Attempts *attempts, uint32_t max, AttemptsReason reason, void *userdata, LinkRow **ret_rows,
		  uint32_t *ret_n)
{
	LinkRow *rows = calloc(max + 1, sizeof(*rows));
	uint32_t n = 0;
	SumRow sums[SUMS];
	int r = rows ? 0 : -ENOMEM;

	/* What waits longest comes first. */
	for (uint16_t i = attempts->oldest; r == 0 && n < max && i != NONE; i = attempts->rows[i].newer) {
		Row *row = &attempts->rows[i];

		if (row->told == row->count)
			continue;
		r = write_row(row, reason(userdata, row->attempt.address), &rows[n++]);
		row->told = row->count;
	}
	sums_of(attempts, sums);
	for (size_t i = 0; r == 0 && n < max && i < SUMS; i++) {
		if (sums[i].sum->told == sums[i].sum->count)
			continue;
		r = write_sum(sums[i].sum, sums[i].program, sums[i].reason, &rows[n++]);
		sums[i].sum->told = sums[i].sum->count;
	}
	if (r < 0) {
		rows_free(rows, n);
		return r;
	}
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}
