// SPDX-License-Identifier: GPL-2.0
/*
 * Pure arithmetic of Cohort; see arith.h.
 */
#include "arith.h"

#define BITS_A_LONG	(8 * (unsigned int)sizeof(long))

/**
 * cohort_map_fill() - every page of a block is parked
 * @map: map of the block
 * @order: order of the block, COHORT_MIN_ORDER to COHORT_MAX_ORDER
 */
void cohort_map_fill(struct cohort_map *map, unsigned int order)
{
	unsigned int left = 1U << order;
	unsigned int i;

	map->nr = left;
	for (i = 0; i < COHORT_MAP_LONGS; i++) {
		if (left >= BITS_A_LONG) {
			map->bits[i] = ~0UL;
			left -= BITS_A_LONG;
		} else {
			map->bits[i] = (1UL << left) - 1;
			left = 0;
		}
	}
}

/**
 * cohort_map_lowest() - which is the lowest parked page?
 * @map: map of the block
 *
 * Return: index of the page, COHORT_BLOCK_PAGES if none is parked.
 */
unsigned int cohort_map_lowest(const struct cohort_map *map)
{
	unsigned int i;

	for (i = 0; i < COHORT_MAP_LONGS; i++)
		if (map->bits[i])
			return i * BITS_A_LONG + __builtin_ctzl(map->bits[i]);
	return COHORT_BLOCK_PAGES;
}

/**
 * cohort_map_take() - take the lowest parked page
 * @map: map with at least one bit set
 *
 * Lowest first keeps a partly used block dense at its start.
 *
 * Return: index of the page, COHORT_BLOCK_PAGES if none is parked.
 */
unsigned int cohort_map_take(struct cohort_map *map)
{
	unsigned int i;

	for (i = 0; i < COHORT_MAP_LONGS; i++) {
		unsigned long word = map->bits[i];

		if (word) {
			map->bits[i] = word & (word - 1);
			map->nr--;
			return i * BITS_A_LONG + __builtin_ctzl(word);
		}
	}
	return COHORT_BLOCK_PAGES;
}

/**
 * cohort_map_put() - park one page
 * @map: map of the block
 * @bit: index of the page, not parked now
 */
void cohort_map_put(struct cohort_map *map, unsigned int bit)
{
	map->bits[bit / BITS_A_LONG] |= 1UL << (bit % BITS_A_LONG);
	map->nr++;
}

/**
 * cohort_map_test() - is a page parked?
 * @map: map of the block
 * @bit: index of the page
 */
bool cohort_map_test(const struct cohort_map *map, unsigned int bit)
{
	return map->bits[bit / BITS_A_LONG] >> (bit % BITS_A_LONG) & 1;
}

/**
 * cohort_map_ok() - does the invariant of struct cohort_map hold?
 * @map: map of the block
 * @order: order of the block
 */
bool cohort_map_ok(const struct cohort_map *map, unsigned int order)
{
	unsigned int bit, sum = 0;

	for (bit = 0; bit < COHORT_BLOCK_PAGES; bit++) {
		if (!cohort_map_test(map, bit))
			continue;
		if (bit >= 1U << order)
			return false;
		sum++;
	}
	return sum == map->nr;
}

/**
 * cohort_map_fill_part() - every page of a part of a set's slot is parked
 * @map: map of the slot
 * @first: first page of the part, a multiple of 1 << @order
 * @order: order of the part, at most COHORT_MAX_SET_ORDER
 */
void cohort_map_fill_part(struct cohort_map *map, unsigned int first,
			  unsigned int order)
{
	memset(map->bits, 0, sizeof(map->bits));
	map->nr = 1U << order;
	map->bits[0] = ((1UL << map->nr) - 1) << first;
}

/**
 * cohort_part_has() - does a part of a slot contain this page?
 * @first: first page of the part, a multiple of 1 << @order
 * @order: order of the part
 * @bit: index of the page in the slot
 */
bool cohort_part_has(unsigned int first, unsigned int order, unsigned int bit)
{
	return (first ^ bit) >> order == 0;
}

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
 * cohort_may_refill() - may a zone give one more block away?
 * @nr_parked: parked pages of the zone
 * @cap: most the zone may hold
 */
bool cohort_may_refill(unsigned long nr_parked, unsigned long cap)
{
	return nr_parked < cap;
}

/**
 * cohort_spill() - how many sets must leave a buffer before one more comes?
 * @nr_sets: sets it has
 * @nr_parked: their pages
 * @pages: pages of the set that comes
 * @limit: most pages it may have
 *
 * Half of them, so that the lock of the free lists is taken once for many.
 *
 * Return: number of sets, 0 if there is room.
 */
unsigned int cohort_spill(unsigned int nr_sets, unsigned long nr_parked,
			  unsigned int pages, unsigned long limit)
{
	return nr_parked + pages > limit ? (nr_sets + 1) / 2 : 0;
}

/**
 * cohort_sweep_wanted() - is a region's worth of the cache domain parked?
 * @nr_parked: parked pages of the cache domain
 * @young_parked: of these, pages of the block being filled right now
 * @order: order of a region
 *
 * Below that, emptying one region would not leave room for its survivors.
 */
bool cohort_sweep_wanted(unsigned long nr_parked, unsigned int young_parked,
			 unsigned int order)
{
	return nr_parked - young_parked >= 1UL << order;
}

/**
 * cohort_compact_wanted() - can compaction free a block of this domain?
 * @nr_parked: parked pages of the domain
 * @order: order of a block
 */
bool cohort_compact_wanted(unsigned long nr_parked, unsigned int order)
{
	return nr_parked >= 1UL << order;
}
