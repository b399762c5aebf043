/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The owner table: from a frame to its block.  Included by cohort.h alone.
 */
#ifndef _MM_COHORT_TABLE_H
#define _MM_COHORT_TABLE_H

/* The table is made in spans of so many frames, as memory comes in sections. */
#define COHORT_SPAN_SHIFT	15
#define COHORT_SPAN_PAGES	(1UL << COHORT_SPAN_SHIFT)

/*
 * Order of a fixed block.  Where fixed blocks begin and end at multiples of twice
 * that, none has a buddy that is not one, too.
 */
#define COHORT_FIXED_ORDER	COHORT_FREE_ORDER
#define COHORT_FIXED_PAGES	(1UL << COHORT_FIXED_ORDER)
#define COHORT_SPAN_FIXED	(COHORT_SPAN_PAGES >> COHORT_FIXED_ORDER)

/**
 * struct cohort_table_span - what is known of COHORT_SPAN_PAGES frames
 * @slot: slots of an order, NULL if it was never used
 * @fixed: fixed blocks by place, NULL where none ever was; NULL if there was none at all
 * @lent: a bit for each frame, set if it is lent; NULL before the first loan
 */
struct cohort_table_span {
	char *slot[COHORT_MAX_ORDER + 1];
	struct cohort_block **fixed;
	unsigned long *lent;
};

/**
 * struct cohort_table - from a frame to its block
 * @nr: spans there may ever be
 * @span: the spans, NULL where there is no memory
 */
struct cohort_table {
	unsigned long nr;
	struct cohort_table_span *span[];
};

/* core/table.c */
struct notifier_block;
extern struct cohort_table *cohort_table;
extern unsigned int cohort_slot_order;
int cohort_table_init(unsigned int order);
int cohort_table_lend(void (*back)(unsigned long pfn));
void cohort_lent_return(unsigned long pfn);
int cohort_spans_init(void);
int cohort_zones_init(void);
int cohort_memory_notify(struct notifier_block *nb, unsigned long action, void *data);
unsigned long cohort_lent_next(unsigned long pfn, unsigned long end);
unsigned long cohort_block_stats(unsigned long nr[COHORT_NR_KINDS]);
void cohort_block_pieces(unsigned long nr[NR_PAGE_ORDERS]);

/* Order of a block of the scheme that is on, or was last. */
static inline unsigned int cohort_block_order(void)
{
	return READ_ONCE(cohort_slot_order);
}

static inline unsigned int cohort_pages(void)
{
	return 1U << cohort_block_order();
}

/**
 * cohort_span_of() - what is known of the frames around one
 * @pfn: any frame number
 *
 * Return: the span, or NULL if the table does not reach.
 */
static inline struct cohort_table_span *cohort_span_of(unsigned long pfn)
{
	const struct cohort_table *table = READ_ONCE(cohort_table);
	unsigned long i = pfn >> COHORT_SPAN_SHIFT;

	return likely(i < table->nr) ? READ_ONCE(table->span[i]) : NULL;
}

static inline unsigned int cohort_span_bit(unsigned long pfn)
{
	return pfn & (COHORT_SPAN_PAGES - 1);
}

/**
 * cohort_lent_map() - bits of the frames that are lent
 * @pfn: any frame number; its bit is cohort_span_bit()
 *
 * Return: the bits, or NULL if no frame there ever was.
 */
static inline unsigned long *cohort_lent_map(unsigned long pfn)
{
	const struct cohort_table_span *span = cohort_span_of(pfn);

	return span ? READ_ONCE(span->lent) : NULL;
}

/* Bytes of a slot. */
static inline size_t cohort_slot_size(unsigned int order)
{
	return struct_size_t(struct cohort_block, free, order);
}

/* The fixed block of a frame, with or without an owner. */
static inline struct cohort_block *cohort_fixed_in(const struct cohort_table_span *span,
						   unsigned long pfn)
{
	struct cohort_block **fixed = READ_ONCE(span->fixed);

	return fixed ? READ_ONCE(fixed[cohort_span_bit(pfn) >> COHORT_FIXED_ORDER]) : NULL;
}

/**
 * cohort_block_of() - block of a frame
 * @pfn: any frame number
 *
 * Return: the fixed block if it is kept; else the slot, with or without an owner, or NULL
 * if the table does not reach.
 */
static inline struct cohort_block *cohort_block_of(unsigned long pfn)
{
	const struct cohort_table_span *span = cohort_span_of(pfn);
	unsigned int order = cohort_block_order();
	struct cohort_block *blk;
	char *slot;

	if (unlikely(!span))
		return NULL;
	blk = cohort_fixed_in(span, pfn);
	if (blk && READ_ONCE(blk->id))
		return blk;
	slot = READ_ONCE(span->slot[order]);
	if (unlikely(!slot))
		return NULL;
	slot += (cohort_span_bit(pfn) >> order) * cohort_slot_size(order);
	return (struct cohort_block *)slot;
}

/* Is it a fixed block with an owner? */
static inline bool cohort_block_kept(const struct cohort_block *blk)
{
	return READ_ONCE(blk->id) == COHORT_KEPT;
}

/* How many lists of free pieces it has. */
static inline unsigned int cohort_block_lists(const struct cohort_block *blk)
{
	return blk->order + cohort_block_kept(blk);
}

/* The number of the domain that has a frame; see cohort_owner_id(). */
static inline unsigned int cohort_block_id(const struct cohort_block *blk, unsigned long pfn)
{
	/* Pairs with the release in cohort_block_enter(): these are its frames. */
	unsigned int id = smp_load_acquire(&blk->id);

	return id && (pfn ^ READ_ONCE(blk->pfn)) >> READ_ONCE(blk->order) == 0 ? id : 0;
}

/**
 * cohort_owner_id() - which domain has a frame?
 * @pfn: any frame number
 *
 * Without the lock; see the life times above.
 *
 * Return: the domain's number, 0 if no domain has it.
 */
static inline unsigned int cohort_owner_id(unsigned long pfn)
{
	const struct cohort_block *blk = cohort_block_of(pfn);

	return blk ? cohort_block_id(blk, pfn) : 0;
}

#endif /* _MM_COHORT_TABLE_H */
