/* SPDX-License-Identifier: MIT */
#include "service/daemon/budget.h"

typedef struct Bucket {
	uid_t uid;
	int64_t left_usec;
	uint64_t at_usec; /* when that was so */
	struct Bucket *next;
} Bucket;

struct Budget {
	Bucket *first;
	size_t n;
};

bool second_count(SecondCount *count, uint64_t now_usec, uint32_t n, uint32_t most)
{
	if (now_usec - count->second_usec >= USEC_PER_SEC)
		*count = (SecondCount){ .second_usec = now_usec };
	if (n > most - count->n)
		return false;
	count->n += n;
	return true;
}

Budget *budget_new(void)
{
	return calloc(1, sizeof(Budget));
}

Budget *budget_free(Budget *budget)
{
	for (Bucket *b = budget ? budget->first : NULL, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(budget);
	return NULL;
}

/* Return: what a bucket holds at now_usec. */
static int64_t bucket_left(const Bucket *bucket, uint64_t now_usec)
{
	const uint64_t room = (uint64_t)((int64_t)BUDGET_BURST_USEC - bucket->left_usec);
	uint64_t more = now_usec > bucket->at_usec ? (now_usec - bucket->at_usec) / BUDGET_SHARE : 0;

	return bucket->left_usec + (int64_t)MIN_OF(more, room);
}

/* Full ones are as good as none. Return: the bucket of uid, or NULL. */
static Bucket *budget_sweep(Budget *budget, uid_t uid, uint64_t now_usec)
{
	Bucket *found = NULL;

	for (Bucket **b = &budget->first; *b;) {
		Bucket *bucket = *b;

		if (bucket->uid == uid) {
			found = bucket;
		} else if (bucket_left(bucket, now_usec) == (int64_t)BUDGET_BURST_USEC) {
			*b = bucket->next;
			budget->n--;
			free(bucket);
			continue;
		}
		b = &bucket->next;
	}
	return found;
}

int budget_charge(Budget *budget, uid_t uid, uint64_t now_usec, uint64_t work_usec)
{
	Bucket *bucket = budget_sweep(budget, uid, now_usec);
	const int64_t most = (int64_t)(BUDGET_BURST_USEC + BUDGET_DEBT_USEC);
	int64_t left;

	if (!bucket) {
		bucket = malloc(sizeof(*bucket));
		if (!bucket)
			return -ENOMEM;
		*bucket = (Bucket){ .uid = uid,
				    .left_usec = (int64_t)BUDGET_BURST_USEC,
				    .at_usec = now_usec,
				    .next = budget->first };
		budget->first = bucket;
		budget->n++;
	}
	left = bucket_left(bucket, now_usec) - (int64_t)MIN_OF(work_usec, (uint64_t)most);
	/* What is too little for a whole microsecond is not lost: the clock of the bucket waits for it. */
	if (now_usec > bucket->at_usec)
		bucket->at_usec = now_usec - (now_usec - bucket->at_usec) % BUDGET_SHARE;
	bucket->left_usec = MAX_OF(left, -(int64_t)BUDGET_DEBT_USEC);
	return 0;
}

uint64_t budget_wait(const Budget *budget, uid_t uid, uint64_t now_usec)
{
	for (const Bucket *b = budget->first; b; b = b->next) {
		int64_t left;

		if (b->uid != uid)
			continue;
		left = bucket_left(b, now_usec);
		return left > 0 ? 0 : ((uint64_t)-left + 1) * BUDGET_SHARE;
	}
	return 0;
}

size_t budget_users(const Budget *budget)
{
	return budget->n;
}
