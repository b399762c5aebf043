// SPDX-License-Identifier: GPL-2.0
/*
 * Pure arithmetic of the page-cache-preferred area; see arith_pcpa.h.
 */
#include "arith_pcpa.h"

#define BITS_A_LONG	(8 * sizeof(long))
#define CHUNK_LONGS	(COHORT_CHUNK / BITS_A_LONG)

/**
 * cohort_area_map_size() - memory that a map needs
 * @nr: pages of the area
 *
 * Return: bytes.
 */
size_t cohort_area_map_size(unsigned long nr)
{
	return nr / 8 + nr / COHORT_CHUNK * sizeof(u16);
}

/**
 * cohort_area_map_init() - an area without free pages
 * @map: the map
 * @nr: pages of the area, a multiple of COHORT_CHUNK
 * @mem: zeroed memory, cohort_area_map_size() bytes
 */
void cohort_area_map_init(struct cohort_area_map *map, unsigned long nr, void *mem)
{
	map->nr = nr;
	map->nr_set = 0;
	map->low = nr / COHORT_CHUNK;
	map->bits = mem;
	map->chunk = (u16 *)(map->bits + nr / BITS_A_LONG);
}

bool cohort_area_map_test(const struct cohort_area_map *map, unsigned long i)
{
	return map->bits[i / BITS_A_LONG] >> (i % BITS_A_LONG) & 1;
}

/* The bits of one word that belong to a run, and how far it reaches. */
static unsigned long run_mask(unsigned long first, unsigned long n, unsigned long *len)
{
	unsigned long at = first % BITS_A_LONG;

	*len = n < BITS_A_LONG - at ? n : BITS_A_LONG - at;
	return (~0UL >> (BITS_A_LONG - *len)) << at;
}

/**
 * cohort_area_map_set() - a run of pages is free
 * @map: the map
 * @first: first page; none of them is free now
 * @n: how many
 */
void cohort_area_map_set(struct cohort_area_map *map, unsigned long first, unsigned long n)
{
	unsigned long len, mask;

	if (n && first / COHORT_CHUNK < map->low)
		map->low = first / COHORT_CHUNK;
	map->nr_set += n;
	for (; n; n -= len, first += len) {
		mask = run_mask(first, n, &len);
		map->bits[first / BITS_A_LONG] |= mask;
		map->chunk[first / COHORT_CHUNK] += len;
	}
}

/**
 * cohort_area_map_clear() - a run of pages is taken
 * @map: the map
 * @first: first page; all of them are free now
 * @n: how many
 */
void cohort_area_map_clear(struct cohort_area_map *map, unsigned long first, unsigned long n)
{
	unsigned long len, mask;

	map->nr_set -= n;
	for (; n; n -= len, first += len) {
		mask = run_mask(first, n, &len);
		map->bits[first / BITS_A_LONG] &= ~mask;
		map->chunk[first / COHORT_CHUNK] -= len;
	}
}

static unsigned long lowest_in(const struct cohort_area_map *map, unsigned long c)
{
	unsigned long i, from = c * CHUNK_LONGS;

	for (i = from; i < from + CHUNK_LONGS; i++)
		if (map->bits[i])
			return i * BITS_A_LONG + __builtin_ctzl(map->bits[i]);
	return map->nr;
}

/**
 * cohort_area_map_lowest() - the free page for the page cache
 * @map: the map
 *
 * Lowest first: clients begin at the other end.
 *
 * Return: its index, map->nr if none is free.
 */
unsigned long cohort_area_map_lowest(struct cohort_area_map *map)
{
	while (map->low < map->nr / COHORT_CHUNK) {
		if (map->chunk[map->low])
			return lowest_in(map, map->low);
		map->low++;
	}
	return map->nr;
}

static bool run_is_set(const struct cohort_area_map *map, unsigned long first,
		       unsigned long n)
{
	unsigned long len, mask;

	for (; n; n -= len, first += len) {
		mask = run_mask(first, n, &len);
		if ((map->bits[first / BITS_A_LONG] & mask) != mask)
			return false;
	}
	return true;
}

/* The highest free block of an order below a chunk's. */
static unsigned long find_in(const struct cohort_area_map *map, unsigned long c,
			     unsigned int order)
{
	unsigned long i, n = 1UL << order;

	for (i = COHORT_CHUNK; i; i -= n)
		if (run_is_set(map, c * COHORT_CHUNK + i - n, n))
			return c * COHORT_CHUNK + i - n;
	return map->nr;
}

static unsigned long find_small(const struct cohort_area_map *map, unsigned int order,
				bool whole)
{
	unsigned long c, at;

	for (c = map->nr / COHORT_CHUNK; c--;) {
		if (map->chunk[c] < 1UL << order ||
		    (map->chunk[c] == COHORT_CHUNK) != whole)
			continue;
		at = find_in(map, c, order);
		if (at < map->nr)
			return at;
	}
	return map->nr;
}

static unsigned long find_large(const struct cohort_area_map *map, unsigned int order)
{
	unsigned long n = 1UL << (order - COHORT_CHUNK_ORDER);
	unsigned long c = map->nr / COHORT_CHUNK / n * n, i;

	for (; c; c -= n) {
		for (i = c - n; i < c && map->chunk[i] == COHORT_CHUNK; i++)
			;
		if (i == c)
			return (c - n) * COHORT_CHUNK;
	}
	return map->nr;
}

/**
 * cohort_area_map_find() - a free block for a client
 * @map: the map
 * @order: its order; blocks are aligned to their size within the area
 *
 * From the high end; what is smaller than a chunk comes out of broken chunks
 * while there are any.
 *
 * Return: index of its first page, map->nr if there is none.
 */
unsigned long cohort_area_map_find(const struct cohort_area_map *map, unsigned int order)
{
	unsigned long at;

	if (order >= COHORT_CHUNK_ORDER)
		return find_large(map, order);
	at = find_small(map, order, false);
	return at < map->nr ? at : find_small(map, order, true);
}

/**
 * cohort_area_map_room() - what a chunk has for clients
 * @map: the map
 * @c: the chunk
 * @order: smallest block they can use, COHORT_CHUNK_ORDER at most
 *
 * Return: pages in free blocks of this order.
 */
unsigned long cohort_area_map_room(const struct cohort_area_map *map, unsigned long c,
				   unsigned int order)
{
	unsigned long i, n = 1UL << order, room = 0;

	if (map->chunk[c] == COHORT_CHUNK || !order)
		return map->chunk[c];
	if (map->chunk[c] < n)
		return 0;
	for (i = 0; i < COHORT_CHUNK; i += n)
		if (run_is_set(map, c * COHORT_CHUNK + i, n))
			room += n;
	return room;
}

/**
 * cohort_area_map_ok() - do the counts agree with the bits?
 * @map: the map
 */
bool cohort_area_map_ok(const struct cohort_area_map *map)
{
	unsigned long c, i, sum = 0;

	for (c = 0; c < map->nr / COHORT_CHUNK; c++) {
		unsigned long n = 0;

		for (i = 0; i < CHUNK_LONGS; i++) {
			unsigned long word = map->bits[c * CHUNK_LONGS + i];

			for (; word; word &= word - 1)
				n++;
		}
		if (n != map->chunk[c] || (n && c < map->low))
			return false;
		sum += n;
	}
	return sum == map->nr_set;
}

/* What is asked for: granules of a piece, and what its first one is a multiple of. */
struct piece {
	unsigned long len, step;
};

static unsigned long up(unsigned long n, unsigned long step)
{
	return (n + step - 1) / step * step;
}

/* How many fit between two granules? */
static unsigned long pieces_in(const struct piece *p, unsigned long from, unsigned long to)
{
	from = up(from, p->step);
	return to < from + p->len ? 0 : (to - from - p->len) / up(p->len, p->step) + 1;
}

/* The cheapest place between two granules of which as many others are left as can be. */
static void best_place(const u16 *cost, const struct piece *p, unsigned long from,
		       unsigned long to, u64 *least, unsigned long *best)
{
	unsigned long all = pieces_in(p, from, to), end, at;
	u64 sum = 0;

	for (end = from + 1; end <= to && all; end++) {
		sum += cost[end - 1];
		if (end > from + p->len)
			sum -= cost[end - 1 - p->len];
		if (end < from + p->len)
			continue;
		at = end - p->len;
		if (at % p->step || sum > *least ||
		    pieces_in(p, from, at) + pieces_in(p, end, to) + 1 < all)
			continue;
		*least = sum;
		*best = at;
	}
}

/**
 * cohort_area_window() - where a contiguous piece is cheapest
 * @cost: of each granule; COHORT_COST_NEVER where it cannot be
 * @nr: granules
 * @len: granules of the piece, at least 1
 * @step: it begins at a multiple of so many
 *
 * As many more of its size fit afterwards as if it had been the first of a row: where
 * four fit, four are found, whatever is cheap at the moment.  Of equals the
 * highest, where clients are.
 *
 * Return: its first granule, @nr if there is no place.
 */
unsigned long cohort_area_window(const u16 *cost, unsigned long nr, unsigned long len,
				 unsigned long step)
{
	const struct piece piece = { len, step };
	unsigned long from, to, best = nr;
	u64 least = ~0ULL;

	for (from = 0; from < nr; from = to + 1) {
		for (to = from; to < nr && cost[to] != COHORT_COST_NEVER; to++)
			;
		best_place(cost, &piece, from, to, &least, &best);
	}
	return best;
}

/**
 * cohort_pcpa_request() - a client asks for pages
 * @fsm: the state
 *
 * Return: true if this is where the area turns to clients: the timer is to be set.
 */
bool cohort_pcpa_request(struct cohort_pcpa_fsm *fsm)
{
	if (fsm->state == COHORT_ANON_ALLOC)
		return false;
	fsm->state = COHORT_ANON_ALLOC;
	fsm->used = false;
	return true;
}

/**
 * cohort_pcpa_granted() - a client got pages
 * @fsm: the state
 */
void cohort_pcpa_granted(struct cohort_pcpa_fsm *fsm)
{
	fsm->used = fsm->state == COHORT_ANON_ALLOC;
}

/**
 * cohort_pcpa_timeout() - algorithm 3
 * @fsm: the state
 *
 * Return: true if the timer is to be set again.
 */
bool cohort_pcpa_timeout(struct cohort_pcpa_fsm *fsm)
{
	bool again = fsm->used;

	fsm->used = false;
	if (!again)
		fsm->state = COHORT_PCACHE_ONLY;
	return again;
}

/**
 * cohort_walk_next() - the next chunk of one of two scanners
 * @walk: the walk
 * @down: the scanner that comes from above
 * @chunk: receives the chunk
 *
 * Return: false if they have met.
 */
bool cohort_walk_next(struct cohort_walk *walk, bool down, unsigned long *chunk)
{
	if (walk->lo >= walk->hi)
		return false;
	*chunk = down ? --walk->hi : walk->lo++;
	return true;
}

static unsigned long trail_sets(unsigned long pages)
{
	unsigned long sets = 1;

	while (sets < pages)
		sets <<= 1;
	return sets;
}

/**
 * cohort_trail_size() - memory that a trail needs
 * @pages: pages it should remember
 *
 * Return: bytes.
 */
size_t cohort_trail_size(unsigned long pages)
{
	return trail_sets(pages) * 2 * sizeof(u16);
}

/**
 * cohort_trail_init() - a trail that remembers nothing
 * @trail: the trail
 * @pages: pages it should remember
 * @mem: zeroed memory, cohort_trail_size() bytes
 */
void cohort_trail_init(struct cohort_trail *trail, unsigned long pages, void *mem)
{
	trail->mask = trail_sets(pages) - 1;
	trail->slot = mem;
}

static u16 trail_print(u64 hash)
{
	u16 print = hash >> 48;

	return print ? print : 1;
}

/**
 * cohort_trail_put() - remember a page
 * @trail: the trail
 * @hash: of what it held, all 64 bits good
 */
void cohort_trail_put(struct cohort_trail *trail, u64 hash)
{
	u16 *slot = trail->slot[hash & trail->mask];

	slot[1] = slot[0];
	slot[0] = trail_print(hash);
}

/**
 * cohort_trail_take() - is this a page to be remembered? Forget it then.
 * @trail: the trail
 * @hash: of what it held
 */
bool cohort_trail_take(struct cohort_trail *trail, u64 hash)
{
	u16 *slot = trail->slot[hash & trail->mask], print = trail_print(hash);

	if (slot[0] == print) {
		slot[0] = slot[1];
		slot[1] = 0;
		return true;
	}
	if (slot[1] != print)
		return false;
	slot[1] = 0;
	return true;
}

/**
 * cohort_pcpa_order_ok() - may this be the smallest order of a client's block?
 * @order: the order
 */
bool cohort_pcpa_order_ok(long order)
{
	return order >= 0 && order <= COHORT_CHUNK_ORDER;
}

static const char *parse_size(const char *text, u64 *value)
{
	const char *p = text;
	unsigned int shift = 0;
	u64 n = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (n > (~0ULL >> 8))
			return NULL;
		n = n * 10 + (*p - '0');
	}
	if (p == text)
		return NULL;
	if (*p == 'G' || *p == 'g')
		shift = 30;
	else if (*p == 'M' || *p == 'm')
		shift = 20;
	else if (*p == 'K' || *p == 'k')
		shift = 10;
	if (shift && n > (~0ULL >> 1) >> shift)
		return NULL;
	*value = n << shift;
	return p + !!shift;
}

/* As everywhere on the command line, an address may be hexadecimal. */
static const char *parse_base(const char *text, u64 *value)
{
	const char *p = text + 2;
	u64 n = 0;

	if (text[0] != '0' || (text[1] | 0x20) != 'x')
		return parse_size(text, value);
	for (; *p; p++) {
		char c = *p | 0x20;

		if (n >> 59)
			return NULL;
		if (*p >= '0' && *p <= '9')
			n = n * 16 + (*p - '0');
		else if (c >= 'a' && c <= 'f')
			n = n * 16 + (c - 'a' + 10);
		else
			break;
	}
	*value = n;
	return p == text + 2 ? NULL : p;
}

/**
 * cohort_pcpa_parse() - SIZE[@BASE], each with K, M or G
 * @text: the text; a newline may end it
 * @size: receives the size in bytes
 * @base: receives the address, COHORT_ANY_BASE if there is none
 *
 * Return: NULL, or what is wrong.
 */
const char *cohort_pcpa_parse(const char *text, u64 *size, u64 *base)
{
	const char *p = parse_size(text, size);

	*base = COHORT_ANY_BASE;
	if (p && *p == '@')
		p = parse_base(p + 1, base);
	if (p && *p == '\n')
		p++;
	return p && !*p ? NULL : "expected SIZE[@BASE], numbers with K, M or G";
}

/**
 * cohort_pcpa_refuse() - can there be such an area?
 * @size: bytes
 * @base: address or COHORT_ANY_BASE
 * @align: bytes of a pageblock
 * @memory: bytes of the machine
 *
 * Return: NULL, or why not.
 */
const char *cohort_pcpa_refuse(u64 size, u64 base, u64 align, u64 memory)
{
	if (size >= memory)
		return "larger than memory";
	if (size % align)
		return "the size is not a multiple of a pageblock";
	if (base != COHORT_ANY_BASE && base % align)
		return "the base is not aligned to a pageblock";
	return NULL;
}
