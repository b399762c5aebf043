// SPDX-License-Identifier: GPL-2.0
/*
 * Whole blocks of memory that has no owner: what is looked for, where its pages go, and
 * that none of them is lost.
 */
#include <linux/mman.h>
#include <linux/swap.h>

#include "cohort_test.h"

/* Blocks full of pages, and blocks of which every second page is free. */
#define UNOWNED_TEST_FULL	4
#define UNOWNED_TEST_HOLES	8

/**
 * struct cohort_unowned_test - memory of a process that has given its blocks up
 * @full: address of pages side by side
 * @holes: address of pages beside which every second one is free
 * @zone: zone of the block
 * @pfn: first frame of a block full of pages
 */
struct cohort_unowned_test {
	unsigned long full;
	unsigned long holes;
	struct zone *zone;
	unsigned long pfn;
};

/* A block that the full part fills: its first pages may be in one with others. */
static unsigned long cohort_unowned_test_block(struct kunit *test, unsigned long addr)
{
	unsigned int i, pages = cohort_pages();
	unsigned long pfn = 0;

	for (i = 0; i < UNOWNED_TEST_FULL * pages; i++) {
		pfn = page_to_pfn(cohort_test_page_at(test, addr + i * PAGE_SIZE));
		pfn = round_down(pfn, pages);
		if (cohort_unowned_used(page_zone(pfn_to_page(pfn)), pfn) == pages)
			return pfn;
	}
	KUNIT_FAIL_AND_ABORT(test, "no block is full of pages that can be moved");
	return 0;
}

/* All that was at hand somewhere is in the free lists. */
static void cohort_unowned_test_drain(struct cohort_domain *dom)
{
	lru_add_drain_all();
	cohort_domain_drain(dom);
	drain_all_pages(NULL);
}

static void cohort_unowned_test_map(struct kunit *test, struct cohort_unowned_test *ut)
{
	unsigned int i, pages = UNOWNED_TEST_HOLES * cohort_pages();
	struct cohort_domain *dom;

	ut->full = cohort_test_map(test, UNOWNED_TEST_FULL * cohort_pages());
	cohort_test_grow_up(test);
	dom = current->mm->cohort;
	cohort_test_touch(test, ut->full, UNOWNED_TEST_FULL * cohort_pages());
	ut->holes = cohort_test_map(test, pages);
	cohort_test_touch(test, ut->holes, pages);
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, ut->holes + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	cohort_unowned_test_drain(dom);
	cohort_domain_dissolve(dom);
	ut->pfn = cohort_unowned_test_block(test, ut->full);
	ut->zone = page_zone(pfn_to_page(ut->pfn));
}

/* Each page that stays has what was written into it, and that is not in the block. */
static void cohort_unowned_test_verify(struct kunit *test, const struct cohort_unowned_test *ut)
{
	unsigned int i, pages = cohort_pages();

	cohort_test_verify(test, ut->full, UNOWNED_TEST_FULL * pages);
	for (i = 1; i < UNOWNED_TEST_HOLES * pages; i += 2)
		cohort_test_verify(test, ut->holes + i * PAGE_SIZE, 1);
	for (i = 0; i < UNOWNED_TEST_FULL * pages; i++) {
		struct page *page = cohort_test_page_at(test, ut->full + i * PAGE_SIZE);

		KUNIT_ASSERT_NE(test, round_down(page_to_pfn(page), pages), ut->pfn);
	}
}

/* What fills a block goes into small pieces, and the block is whole. */
static void cohort_unowned_test_makes_blocks(struct kunit *test)
{
	struct cohort_unowned_test ut;
	long isolated = cohort_test_isolated();
	int order = cohort_block_order();
	unsigned int tries = 8;
	unsigned long next;
	bool made = false;

	cohort_unowned_test_map(test, &ut);
	/* A slow machine has no time for all pages at once; those that moved stay where they are. */
	while (tries-- && cohort_test_buddy_order(pfn_to_page(ut.pfn)) < order) {
		next = ut.pfn;
		made |= cohort_unowned_pack(ut.zone, &next, jiffies + HZ);
	}
	KUNIT_EXPECT_TRUE(test, made);
	cohort_unowned_test_drain(current->mm->cohort);
	cohort_unowned_test_verify(test, &ut);
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(pfn_to_page(ut.pfn)), order);
	KUNIT_EXPECT_EQ(test, cohort_test_isolated(), isolated);
}

/* Time that is over is no time to begin. */
static void cohort_unowned_test_no_time(struct kunit *test)
{
	struct cohort_unowned_test ut;
	unsigned long next;

	cohort_unowned_test_map(test, &ut);
	next = ut.pfn;
	KUNIT_EXPECT_FALSE(test, cohort_unowned_pack(ut.zone, &next, jiffies - 1));
	KUNIT_EXPECT_EQ(test, next, ut.pfn);
}

/* A search may begin anywhere, also outside of the zone. */
static void cohort_unowned_test_any_start(struct kunit *test)
{
	struct cohort_unowned_test ut;
	unsigned long next = 0;

	cohort_unowned_test_map(test, &ut);
	cohort_unowned_pack(ut.zone, &next, jiffies + HZ);
	KUNIT_EXPECT_GT(test, next, ut.zone->zone_start_pfn);
	next = ULONG_MAX - cohort_pages() + 1;
	cohort_unowned_pack(ut.zone, &next, jiffies + HZ);
	KUNIT_EXPECT_LE(test, next, zone_end_pfn(ut.zone) + cohort_pages());
}

/* Pieces of the block itself are no place for its pages, and pieces stay in their lists. */
static void cohort_unowned_test_pieces(struct kunit *test)
{
	unsigned int i, nr, pages = cohort_pages();
	struct cohort_unowned_test ut;
	struct page *page[COHORT_ROUND];
	unsigned long pfn;

	cohort_unowned_test_map(test, &ut);
	pfn = page_to_pfn(cohort_test_page_at(test, ut.holes + PAGE_SIZE * (2 * pages + 1)));
	pfn = round_down(pfn, pages);
	nr = cohort_buddy_pieces(ut.zone, pfn, page, COHORT_ROUND);
	KUNIT_EXPECT_EQ(test, nr, COHORT_ROUND);
	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_NE(test, round_down(page_to_pfn(page[i]), pages), pfn);
		KUNIT_EXPECT_EQ(test, cohort_owner_id(page_to_pfn(page[i])), 0);
		KUNIT_EXPECT_FALSE(test, PageBuddy(page[i]));
		KUNIT_EXPECT_EQ(test, get_pageblock_migratetype(page[i]), MIGRATE_MOVABLE);
	}
	cohort_buddy_free_bulk(ut.zone, page, nr);
}

/* How many pages there are room for, beside those of a block. */
static unsigned int cohort_unowned_test_holds(struct zone *zone, unsigned long pfn)
{
	unsigned int nr = 0, step;

	for (step = 1U << 30; step; step /= 2)
		if (cohort_buddy_holds(zone, pfn, nr + step))
			nr += step;
	return nr;
}

/* Half of a block in pieces is no room for what is in its other half. */
static void cohort_unowned_test_own_pieces(struct kunit *test)
{
	unsigned int full, holes, pages = cohort_pages();
	struct cohort_unowned_test ut;
	unsigned long pfn;

	cohort_unowned_test_map(test, &ut);
	pfn = page_to_pfn(cohort_test_page_at(test, ut.holes + PAGE_SIZE * (2 * pages + 1)));
	full = cohort_unowned_test_holds(ut.zone, ut.pfn);
	holes = cohort_unowned_test_holds(ut.zone, round_down(pfn, pages));
	KUNIT_EXPECT_GE(test, full, pages);
	/* Others allocate and free meanwhile. */
	KUNIT_EXPECT_LE(test, holes, full - pages / 4);
}

/* What is free is for others where no more than the min mark is. */
static void cohort_unowned_test_min_mark(struct kunit *test)
{
	struct cohort_unowned_test ut;
	struct page *page[COHORT_ROUND];
	unsigned long mark, flags;
	unsigned int nr;

	cohort_unowned_test_map(test, &ut);
	spin_lock_irqsave(&ut.zone->lock, flags);
	mark = ut.zone->_watermark[WMARK_MIN];
	ut.zone->_watermark[WMARK_MIN] = zone_managed_pages(ut.zone);
	spin_unlock_irqrestore(&ut.zone->lock, flags);
	nr = cohort_buddy_pieces(ut.zone, ut.pfn, page, COHORT_ROUND);
	spin_lock_irqsave(&ut.zone->lock, flags);
	ut.zone->_watermark[WMARK_MIN] = mark;
	spin_unlock_irqrestore(&ut.zone->lock, flags);
	KUNIT_EXPECT_EQ(test, nr, 0);
	cohort_buddy_free_bulk(ut.zone, page, nr);
}

/* Blocks of owners, free ones, and those beside what cannot be moved are let alone. */
static void cohort_unowned_test_others(struct kunit *test)
{
	unsigned int pages = cohort_pages(), order = cohort_block_order();
	struct cohort_test *ct = test->priv;
	struct page *page;
	unsigned long pfn;

	cohort_test_take(test, 1);
	pfn = round_down(page_to_pfn(ct->page[0]), pages);
	KUNIT_EXPECT_EQ(test, cohort_unowned_used(page_zone(ct->page[0]), pfn), 0);

	page = alloc_pages(GFP_HIGHUSER_MOVABLE, order);
	KUNIT_ASSERT_NOT_NULL(test, page);
	pfn = page_to_pfn(page);
	KUNIT_EXPECT_EQ(test, cohort_unowned_used(page_zone(page), pfn), 0);
	split_page(page, order);
	KUNIT_EXPECT_EQ(test, cohort_unowned_used(page_zone(page), pfn), 0);
	while (pages--)
		__free_page(page + pages);
}

/* A page that is pinned, or has another reference, keeps its block as it is. */
static void cohort_unowned_test_pinned(struct kunit *test)
{
	struct cohort_unowned_test ut;
	struct page *page = NULL;
	unsigned long next, addr, end;

	cohort_unowned_test_map(test, &ut);
	end = ut.full + UNOWNED_TEST_FULL * cohort_pages() * PAGE_SIZE;
	for (addr = ut.full; addr < end; addr += PAGE_SIZE) {
		page = cohort_test_page_at(test, addr);
		if (round_down(page_to_pfn(page), cohort_pages()) == ut.pfn)
			break;
	}
	KUNIT_ASSERT_EQ(test, pin_user_pages_fast(addr, 1, FOLL_WRITE, &page), 1);
	KUNIT_EXPECT_EQ(test, cohort_unowned_used(ut.zone, ut.pfn), 0);
	unpin_user_page(page);
	KUNIT_ASSERT_EQ(test, get_user_pages_fast(addr, 1, FOLL_WRITE, &page), 1);
	KUNIT_EXPECT_EQ(test, cohort_unowned_used(ut.zone, ut.pfn), 0);
	next = ut.pfn;
	cohort_unowned_pack(ut.zone, &next, jiffies + HZ);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_page_at(test, addr), page);
	put_page(page);
	cohort_test_verify(test, ut.full, UNOWNED_TEST_FULL * cohort_pages());
}

static struct kunit_case cohort_unowned_test_cases[] = {
	KUNIT_CASE_SLOW(cohort_unowned_test_makes_blocks),
	KUNIT_CASE_SLOW(cohort_unowned_test_no_time),
	KUNIT_CASE_SLOW(cohort_unowned_test_any_start),
	KUNIT_CASE_SLOW(cohort_unowned_test_pieces),
	KUNIT_CASE_SLOW(cohort_unowned_test_own_pieces),
	KUNIT_CASE_SLOW(cohort_unowned_test_min_mark),
	KUNIT_CASE(cohort_unowned_test_others),
	KUNIT_CASE_SLOW(cohort_unowned_test_pinned),
	{}
};

static struct kunit_suite cohort_unowned_test_suite = {
	.name = "cohort_unowned",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_unowned_test_cases,
};
kunit_test_suite(cohort_unowned_test_suite);
