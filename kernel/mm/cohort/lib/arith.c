// SPDX-License-Identifier: GPL-2.0
/*
 * Pure arithmetic of Cohort; see arith.h.
 */
#include "arith.h"

/**
 * cohort_bucket() - list of a domain on which a block belongs
 * @nr_parked: parked pages of the block
 * @order: order of the block
 *
 * Linear steps, so that both the fullest and the emptiest block of a domain
 * are found without a search.
 *
 * Return: 0 for a block without parked pages, else 1 (nearly full) to
 * COHORT_BUCKETS - 1 (nearly empty), COHORT_SET_BUCKETS for a set.
 */
unsigned int cohort_bucket(unsigned int nr_parked, unsigned int order)
{
	unsigned int steps = COHORT_BUCKETS - 1;

	if (!nr_parked)
		return 0;
	if (order <= COHORT_MAX_SET_ORDER)
		steps = COHORT_SET_BUCKETS;
	return 1 + ((nr_parked - 1) * steps >> order);
}

/**
 * cohort_order_ok() - may this be the order of a region?
 * @order: order asked for
 */
bool cohort_order_ok(long order)
{
	return order >= COHORT_MIN_ORDER && order <= COHORT_MAX_ORDER;
}

/**
 * cohort_set_order_ok() - may this be the order of a set?
 * @order: order asked for
 */
bool cohort_set_order_ok(long order)
{
	return order >= COHORT_MIN_SET_ORDER && order <= COHORT_MAX_SET_ORDER;
}

/**
 * cohort_parse_heap_orders() - read the value of the cohort.heap_orders= parameter
 * @text: COHORT_HEAP_ORDERS digits, comma separated: they fall, and the last is 0
 * @orders: result; untouched on error
 *
 * Return: 0, or -EINVAL.
 */
int cohort_parse_heap_orders(const char *text, unsigned int orders[COHORT_HEAP_ORDERS])
{
	unsigned int i, last = COHORT_MAX_HEAP_ORDER + 1;

	if (strlen(text) != 2 * COHORT_HEAP_ORDERS - 1)
		return -EINVAL;
	for (i = 0; i < COHORT_HEAP_ORDERS; i++) {
		unsigned int order = text[2 * i] - '0';
		char then = i < COHORT_HEAP_ORDERS - 1 ? ',' : '\0';

		if (order >= last || text[2 * i + 1] != then)
			return -EINVAL;
		last = order;
	}
	if (last)
		return -EINVAL;
	for (i = 0; i < COHORT_HEAP_ORDERS; i++)
		orders[i] = text[2 * i] - '0';
	return 0;
}

static unsigned int cohort_scheme_of(const char *name, size_t len)
{
	if (len == 6 && !strncmp(name, "region", len))
		return COHORT_SCHEME_REGION;
	if (len == 3 && !strncmp(name, "cpb", len))
		return COHORT_SCHEME_CPB;
	if (len == 9 && !strncmp(name, "rightsize", len))
		return COHORT_SCHEME_RIGHTSIZE;
	return 0;
}

/**
 * cohort_parse_schemes() - read the value of the cohort= parameter
 * @text: scheme names, comma separated; "off" alone for none
 * @schemes: result, COHORT_SCHEME_* bits; untouched on error
 *
 * Return: 0, or -EINVAL if a name is unknown or missing.
 */
int cohort_parse_schemes(const char *text, unsigned int *schemes)
{
	unsigned int found = 0;

	if (!strcmp(text, "off")) {
		*schemes = 0;
		return 0;
	}
	for (;;) {
		size_t len = strcspn(text, ",");
		unsigned int scheme = cohort_scheme_of(text, len);

		if (!scheme)
			return -EINVAL;
		found |= scheme;
		if (!text[len])
			break;
		text += len + 1;
	}
	*schemes = found;
	return 0;
}

/**
 * cohort_class_of() - class of a process
 * @oom_score_adj: what the activity manager wrote, -1000 to 1000
 *
 * The values are those of Android's ProcessList: native and persistent
 * processes have -700 and less, services 500 and 800.  Home (600), the
 * previous app (700) and cached apps (900 and more) are in the background:
 * they have let go of what they show and stand still.
 */
enum cohort_class cohort_class_of(int oom_score_adj)
{
	if (oom_score_adj <= -700)
		return COHORT_PERSISTENT;
	if (oom_score_adj == 500 || oom_score_adj == 800)
		return COHORT_SERVICE;
	if (oom_score_adj >= 600)
		return COHORT_BACKGROUND;
	return COHORT_NORMAL;
}

/**
 * cohort_sweep_wanted() - can a block be emptied into others of its domain?
 * @nr_parked: parked pages of the domain
 * @young_parked: of these, pages of the block being filled right now
 * @order: order of a block
 *
 * Below that, emptying one would not leave room for its survivors.
 */
bool cohort_sweep_wanted(unsigned long nr_parked, unsigned int young_parked,
			 unsigned int order)
{
	return nr_parked - young_parked >= 1UL << order;
}

/**
 * cohort_rest_after() - until when an attempt is not repeated
 * @took: ticks that it took; one may have passed within less than a tick
 * @most: ticks it rests at most
 *
 * Return: ticks.
 */
unsigned long cohort_rest_after(unsigned long took, unsigned long most)
{
	if (took <= 1)
		return 0;
	return took - 1 < most / COHORT_REST_TIMES ? (took - 1) * COHORT_REST_TIMES : most;
}
