/* SPDX-License-Identifier: MIT */
#include "service/session/attempts.h"

#include <inttypes.h>

#include "dbus/names.h"
#include "service/plan/packet.h"

#define BUCKETS 1024u
#define NONE UINT16_MAX

typedef struct Row {
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
	uint16_t buckets[BUCKETS];
	Sum folded, unseen;
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

/* FNV-1a. An agent that makes keys collide slows its own attempts down by a look at ATTEMPTS_MAX rows. */
static uint16_t bucket_of(const Attempt *attempt)
{
	const uint32_t words[] = { attempt->protocol, attempt->address, attempt->port };
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(words); i++)
		hash = (hash ^ ((const uint8_t *)words)[i]) * 16777619u;
	for (size_t i = 0; attempt->program[i]; i++)
		hash = (hash ^ (uint8_t)attempt->program[i]) * 16777619u;
	return (uint16_t)((hash ^ hash >> 16) % BUCKETS);
}

static bool same(const Attempt *a, const Attempt *b)
{
	return a->protocol == b->protocol && a->address == b->address && a->port == b->port &&
	       a->checked == b->checked && streq(a->program, b->program);
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

/* Return: the place of the row that was longest without an attempt, which is no row any more. */
static uint16_t fold_oldest(Attempts *attempts)
{
	uint16_t i = attempts->oldest;
	Row *row = &attempts->rows[i];

	for (uint16_t *p = &attempts->buckets[bucket_of(&row->attempt)]; *p != NONE;
	     p = &attempts->rows[*p].next)
		if (*p == i) {
			*p = row->next;
			break;
		}
	order_remove(attempts, i);
	sum_add(&attempts->folded, row->count, row->usec);
	return i;
}

void attempts_add(Attempts *attempts, const Attempt *attempt, uint64_t usec)
{
	uint16_t bucket = bucket_of(attempt), i;

	attempts->total++;
	if (!attempts->rows)
		attempts->rows = calloc(ATTEMPTS_MAX, sizeof(*attempts->rows));
	if (!attempts->rows) {
		sum_add(&attempts->folded, 1, usec);
		return;
	}
	for (i = attempts->buckets[bucket]; i != NONE; i = attempts->rows[i].next)
		if (same(&attempts->rows[i].attempt, attempt))
			break;
	if (i != NONE) {
		order_remove(attempts, i);
	} else {
		i = attempts->n_rows < ATTEMPTS_MAX ? attempts->n_rows++ : fold_oldest(attempts);
		attempts->rows[i] = (Row){ .attempt = *attempt, .next = attempts->buckets[bucket] };
		attempts->buckets[bucket] = i;
	}
	order_first(attempts, i);
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

static int write_row(const Row *row, const char *reason, LinkRow *ret)
{
	char protocol[PACKET_PROTOCOL_TEXT_MAX];

	*ret = (LinkRow){ .columns = { number(row->usec),
				       strdup(packet_protocol_to_string(row->attempt.protocol, protocol)),
				       address_text(row->attempt.address), number(row->attempt.port),
				       program_text(&row->attempt), strdup(reason), number(row->count) } };
	return complete(ret);
}

static int write_sum(const Sum *sum, const char *reason, LinkRow *ret)
{
	*ret = (LinkRow){ .columns = { number(sum->usec), strdup(""), strdup(""), number(0), strdup(""),
				       strdup(reason), number(sum->count) } };
	return complete(ret);
}

#define FOLDED_REASON "other destinations, tried before those that are listed"
#define UNSEEN_REASON "came faster than they could be looked at"
#define SUMS 2u

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
	int r = rows ? 0 : -ENOMEM;

	for (uint16_t i = attempts->newest; r == 0 && i != NONE; i = attempts->rows[i].older)
		r = write_row(&attempts->rows[i], reason(userdata, attempts->rows[i].attempt.address),
			      &rows[n++]);
	if (r == 0 && attempts->folded.count > 0)
		r = write_sum(&attempts->folded, FOLDED_REASON, &rows[n++]);
	if (r == 0 && attempts->unseen.count > 0)
		r = write_sum(&attempts->unseen, UNSEEN_REASON, &rows[n++]);
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
	       attempts->unseen.told != attempts->unseen.count;
}

int attempts_news(Attempts *attempts, uint32_t max, AttemptsReason reason, void *userdata, LinkRow **ret_rows,
		  uint32_t *ret_n)
{
	LinkRow *rows = calloc(max + 1, sizeof(*rows));
	uint32_t n = 0;
	int r = rows ? 0 : -ENOMEM;

	/* What waits longest comes first. */
	for (uint16_t i = attempts->oldest; r == 0 && n < max && i != NONE; i = attempts->rows[i].newer) {
		Row *row = &attempts->rows[i];

		if (row->told == row->count)
			continue;
		r = write_row(row, reason(userdata, row->attempt.address), &rows[n++]);
		row->told = row->count;
	}
	if (r == 0 && n < max && attempts->folded.told != attempts->folded.count) {
		r = write_sum(&attempts->folded, FOLDED_REASON, &rows[n++]);
		attempts->folded.told = attempts->folded.count;
	}
	if (r == 0 && n < max && attempts->unseen.told != attempts->unseen.count) {
		r = write_sum(&attempts->unseen, UNSEEN_REASON, &rows[n++]);
		attempts->unseen.told = attempts->unseen.count;
	}
	if (r < 0) {
		rows_free(rows, n);
		return r;
	}
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}
