// SPDX-License-Identifier: GPL-2.0
/*
 * Layouts of virtual memory nodes; see arith_vnode.h.
 */
#include "arith_vnode.h"

/* Names that are files beside the directories of the nodes. */
static const char *const taken[] = { "default", "layout", "lend", NULL };

static bool cohort_layout_name_char(char c, bool first)
{
	if (c >= 'a' && c <= 'z')
		return true;
	return !first && ((c >= '0' && c <= '9') || c == '-' || c == '_');
}

static const char *cohort_layout_parse_name(const char **text, struct cohort_layout *layout)
{
	struct cohort_share *share = &layout->share[layout->nr];
	const char *p = *text;
	size_t len = 0, i;

	while (cohort_layout_name_char(p[len], !len))
		len++;
	if (!len || p[len] != ':')
		return "expected name:size, the name of lower-case letters, digits, - and _";
	if (len >= COHORT_VNODE_NAME)
		return "a name is longer than 15 characters";
	if (cohort_layout_find(layout, p, len) >= 0)
		return "two nodes have one name";
	memcpy(share->name, p, len);
	share->name[len] = '\0';
	for (i = 0; taken[i]; i++)
		if (!strcmp(taken[i], share->name))
			return "default, layout and lend are no names of nodes";
	*text = p + len + 1;
	return NULL;
}

static const char *cohort_layout_parse_size(const char **text, struct cohort_share *share)
{
	static const char wrong[] = "a size is a number with M, G or %, or rest";
	const char *p = *text;
	u64 n = 0;

	if (!strncmp(p, "rest", 4)) {
		*text = p + 4;
		return NULL;
	}
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (*p - '0');
		if (n > 1ULL << 30)
			return "a size is too big for any machine";
	}
	if (p == *text || (*p != 'M' && *p != 'G' && *p != '%'))
		return wrong;
	if (!n)
		return "a size is zero";
	if (*p == '%') {
		if (n >= 100)
			return "a share of 100% or more leaves nothing for the others";
		share->percent = n;
	} else {
		share->bytes = n << (*p == 'G' ? 30 : 20);
	}
	*text = p + 1;
	return NULL;
}

/**
 * cohort_layout_parse() - read name:size,name:size,...
 * @text: the layout
 * @layout: receives it; not to be used if this fails
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *cohort_layout_parse(const char *text, struct cohort_layout *layout)
{
	unsigned int rests = 0;
	const char *why;

	memset(layout, 0, sizeof(*layout));
	for (;;) {
		struct cohort_share *share = &layout->share[layout->nr];

		if (layout->nr == COHORT_VNODE_MAX)
			return "more than 8 nodes";
		why = cohort_layout_parse_name(&text, layout);
		if (!why)
			why = cohort_layout_parse_size(&text, share);
		if (why)
			return why;
		rests += !share->bytes && !share->percent;
		layout->nr++;
		if (!*text)
			break;
		if (*text++ != ',')
			return "a size is a number with M, G or %, or rest";
	}
	if (layout->nr < COHORT_VNODE_MIN)
		return "fewer than 2 nodes";
	if (rests != 1)
		return rests ? "rest is given twice" : "no node takes the rest";
	return NULL;
}

/**
 * cohort_layout_find() - a node by its name
 * @layout: where to look
 * @name: its name, not necessarily with a NUL
 * @len: length of @name
 *
 * Return: its index, -ENOENT if there is none.
 */
int cohort_layout_find(const struct cohort_layout *layout, const char *name,
		       size_t len)
{
	unsigned int i;

	for (i = 0; i < layout->nr; i++)
		if (strlen(layout->share[i].name) == len &&
		    !memcmp(layout->share[i].name, name, len))
			return i;
	return -ENOENT;
}

/**
 * cohort_ram_between() - memory in a range of addresses, without the holes
 * @ram: memory in ascending order
 * @nr: number of spans
 * @start: first byte of the range
 * @end: one past its last byte
 *
 * Return: bytes.
 */
u64 cohort_ram_between(const struct cohort_span *ram, unsigned int nr,
		       u64 start, u64 end)
{
	u64 bytes = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		u64 from = ram[i].start > start ? ram[i].start : start;
		u64 to = ram[i].end < end ? ram[i].end : end;

		if (from < to)
			bytes += to - from;
	}
	return bytes;
}

/* The lowest address that has @want bytes of memory below it. */
static u64 cohort_layout_address_after(const struct cohort_span *ram, unsigned int nr, u64 want)
{
	unsigned int i;

	for (i = 0; i + 1 < nr && ram[i].end - ram[i].start < want; i++)
		want -= ram[i].end - ram[i].start;
	return ram[i].start + want;
}

/* Sizes in bytes; what is wrong if they do not fit in @total. */
static const char *cohort_layout_share_out(const struct cohort_layout *layout, u64 total, u64 *size)
{
	unsigned int i, rest = 0;
	u64 left = total;

	for (i = 0; i < layout->nr; i++) {
		const struct cohort_share *share = &layout->share[i];

		size[i] = share->percent ? total / 100 * share->percent : share->bytes;
		if (!size[i]) {
			rest = i;
			continue;
		}
		if (size[i] < COHORT_VNODE_MIN_BYTES)
			return "a node is smaller than 32M";
		if (size[i] > left || left - size[i] < COHORT_VNODE_MIN_BYTES)
			return "the sizes leave no 32M of this machine's memory for the rest";
		left -= size[i];
	}
	size[rest] = left;
	return NULL;
}

/**
 * cohort_layout_split() - lay a layout over a map of memory
 * @layout: a layout that was parsed
 * @ram: memory in ascending order, holes between the spans
 * @nr: number of spans, at least one
 * @align: power of two that no node may share with its neighbour
 * @bound: receives @layout->nr + 1 addresses; node i is bound[i] to bound[i + 1]
 *
 * The order in the layout is the order in memory.  Every boundary between two
 * nodes is a multiple of @align, so a node has up to @align more or less than
 * its size.
 *
 * Return: NULL, or why it cannot be done.
 */
const char *cohort_layout_split(const struct cohort_layout *layout,
				const struct cohort_span *ram, unsigned int nr,
				u64 align, u64 *bound)
{
	u64 size[COHORT_VNODE_MAX], below = 0;
	const char *why;
	unsigned int i;

	why = cohort_layout_share_out(layout, cohort_ram_between(ram, nr, 0, ~0ULL), size);
	if (why)
		return why;
	bound[0] = ram[0].start;
	bound[layout->nr] = ram[nr - 1].end;
	for (i = 1; i < layout->nr; i++) {
		below += size[i - 1];
		bound[i] = (cohort_layout_address_after(ram, nr, below) + align / 2) & ~(align - 1);
		if (bound[i] <= bound[i - 1] || bound[i] >= bound[layout->nr] ||
		    !cohort_ram_between(ram, nr, bound[i - 1], bound[i]))
			return "two boundaries round to one address";
	}
	if (!cohort_ram_between(ram, nr, bound[i - 1], bound[i]))
		return "two boundaries round to one address";
	return NULL;
}

/**
 * cohort_layout_piece() - which node memory belongs to
 * @bound: boundaries as cohort_layout_split() made them
 * @nr: number of nodes
 * @start: first byte of the memory
 * @end: one past its last byte; lowered to where the node ends
 *
 * Return: index of the node.
 */
unsigned int cohort_layout_piece(const u64 *bound, unsigned int nr, u64 start,
				 u64 *end)
{
	unsigned int i = 0;

	while (i + 1 < nr && start >= bound[i + 1])
		i++;
	if (i + 1 < nr && *end > bound[i + 1])
		*end = bound[i + 1];
	return i;
}

/**
 * cohort_layout_unusable() - how much of the free memory is in pieces too small
 * @blocks: free blocks by order
 * @orders: how many orders
 * @order: the smallest that is of use
 *
 * Return: percent, rounded up; 0 without free memory.
 */
unsigned int cohort_layout_unusable(const u64 *blocks, unsigned int orders,
				    unsigned int order)
{
	u64 all = 0, small = 0;
	unsigned int i;

	for (i = 0; i < orders; i++) {
		all += blocks[i] << i;
		if (i < order)
			small += blocks[i] << i;
	}
	return all ? (small * 100 + all - 1) / all : 0;
}
