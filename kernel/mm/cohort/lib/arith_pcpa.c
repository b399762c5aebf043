// SPDX-License-Identifier: GPL-2.0
/*
 * Pure arithmetic of the page-cache-preferred area; see arith_pcpa.h.
 */
#include "arith_pcpa.h"

/* The request: granules of a piece, and the number that its first is a multiple of. */
struct piece {
	unsigned long len, step;
};

static unsigned long cohort_piece_up(unsigned long n, unsigned long step)
{
	return (n + step - 1) / step * step;
}

/* How many fit between two granules? */
static unsigned long cohort_piece_count(const struct piece *p, unsigned long from, unsigned long to)
{
	from = cohort_piece_up(from, p->step);
	return to < from + p->len ? 0 : (to - from - p->len) / cohort_piece_up(p->len, p->step) + 1;
}

/* The cheapest place between two granules of which as many others are left as can be. */
static void cohort_piece_best_place(const u16 *cost, const struct piece *p, unsigned long from,
				    unsigned long to, u64 *least, unsigned long *best)
{
	unsigned long all = cohort_piece_count(p, from, to), end, at;
	u64 sum = 0;

	for (end = from + 1; end <= to && all; end++) {
		sum += cost[end - 1];
		if (end > from + p->len)
			sum -= cost[end - 1 - p->len];
		if (end < from + p->len)
			continue;
		at = end - p->len;
		if (at % p->step || sum > *least ||
		    cohort_piece_count(p, from, at) + cohort_piece_count(p, end, to) + 1 < all)
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
		cohort_piece_best_place(cost, &piece, from, to, &least, &best);
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

static unsigned long cohort_trail_sets(unsigned long pages)
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
	return cohort_trail_sets(pages) * 2 * sizeof(u16);
}

/**
 * cohort_trail_init() - a trail that remembers nothing
 * @trail: the trail
 * @pages: pages it should remember
 * @mem: zeroed memory, cohort_trail_size() bytes
 */
void cohort_trail_init(struct cohort_trail *trail, unsigned long pages, void *mem)
{
	trail->mask = cohort_trail_sets(pages) - 1;
	trail->slot = mem;
}

static u16 cohort_trail_print(u64 hash)
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
	slot[0] = cohort_trail_print(hash);
}

/**
 * cohort_trail_take() - is this a page to be remembered? Forget it then.
 * @trail: the trail
 * @hash: of what it held
 */
bool cohort_trail_take(struct cohort_trail *trail, u64 hash)
{
	u16 *slot = trail->slot[hash & trail->mask], print = cohort_trail_print(hash);

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
 * cohort_flush_due() - are pages that are collected to be dropped now?
 * @nr: how many; the next chunk has as many more as a chunk has at most
 * @last: there is no next one, or these may be enough
 */
bool cohort_flush_due(unsigned int nr, bool last)
{
	return nr && (last || nr + COHORT_CHUNK > COHORT_FLUSH_MAX);
}

/**
 * cohort_pcpa_order_ok() - may this be the smallest order of a client's block?
 * @order: the order
 */
bool cohort_pcpa_order_ok(long order)
{
	return order >= 0 && order <= COHORT_CHUNK_ORDER;
}

static const char *cohort_pcpa_parse_size(const char *text, u64 *value)
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
static const char *cohort_pcpa_parse_base(const char *text, u64 *value)
{
	const char *p = text + 2;
	u64 n = 0;

	if (text[0] != '0' || (text[1] | 0x20) != 'x')
		return cohort_pcpa_parse_size(text, value);
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
	const char *p = cohort_pcpa_parse_size(text, size);

	*base = COHORT_ANY_BASE;
	if (p && *p == '@')
		p = cohort_pcpa_parse_base(p + 1, base);
	if (p && *p == '\n')
		p++;
	return p && !*p ? NULL : "expected SIZE[@BASE], numbers with K, M or G";
}

/**
 * cohort_pcpa_refuse() - can there be such an area?
 * @size: bytes
 * @base: address or COHORT_ANY_BASE
 * @align: bytes of a pageblock or of 512 pages, whichever is more
 * @memory: bytes of the machine
 *
 * Return: NULL, or why not.
 */
const char *cohort_pcpa_refuse(u64 size, u64 base, u64 align, u64 memory)
{
	if (size >= memory)
		return "larger than memory";
	if (size % align)
		return "the size is not a multiple of a pageblock and of 512 pages";
	if (!base)
		return "no place at address 0";
	if (base != COHORT_ANY_BASE && base % align)
		return "the base is not aligned to a pageblock and to 512 pages";
	return NULL;
}
