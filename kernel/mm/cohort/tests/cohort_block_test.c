// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks: from the buddy allocator to a domain, and all the ways back.
 */
#include <linux/mm.h>
#include <linux/page-isolation.h>

#include "cohort_test.h"

/* A free page is in a per-CPU list for a while before it is in the buddy's. */
static bool cohort_block_test_is_buddy(struct page *page)
{
	drain_all_pages(NULL);
	return is_free_buddy_page(page);
}

static void cohort_block_test_goes_home(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	struct page *page;

	cohort_test_take(test, 1);
	page = ct->page[0];
	blk = cohort_test_block(page);
	KUNIT_EXPECT_PTR_EQ(test, blk->dom, ct->dom);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 1);

	cohort_test_free(test, 0, 1);
	KUNIT_EXPECT_NULL(test, blk->dom);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nonempty, 0);
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(page));
}

static void cohort_block_test_taken_in_order(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, wrong = 0;

	cohort_test_take(test, cohort_pages());
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(page_to_pfn(ct->page[0]), cohort_pages()));
	for (i = 1; i < cohort_pages(); i++)
		wrong += ct->page[i] != ct->page[0] + i;
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void cohort_block_test_any_order_of_frees(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *first;

	cohort_test_take(test, 2 * cohort_pages());
	first = ct->page[0];
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(first));
}

static void cohort_block_test_parked_page(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page;

	cohort_test_take(test, 2);
	page = ct->page[1];
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));

	cohort_test_free(test, 1, 1);
	KUNIT_EXPECT_TRUE(test, cohort_page_parked(page));
	KUNIT_EXPECT_EQ(test, page_count(page), 0);
	KUNIT_EXPECT_FALSE(test, PageBuddy(page));
	KUNIT_EXPECT_FALSE(test, is_free_buddy_page(page));
	KUNIT_EXPECT_EQ(test, page_private(page), 0);
	KUNIT_EXPECT_NULL(test, page->mapping);
	KUNIT_EXPECT_EQ(test, page->flags & PAGE_FLAGS_CHECK_AT_PREP & ~__PG_HWPOISON, 0);

	/* It is the lowest one parked, so it is the next one taken. */
	cohort_test_take(test, 1);
	KUNIT_EXPECT_PTR_EQ(test, ct->page[2], page);
}

static void cohort_block_test_zone_counter(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long before = cohort_test_zones();
	bool equal = false;
	unsigned int i;

	cohort_test_take(test, cohort_pages() + 3);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 3);
	KUNIT_EXPECT_GE(test, cohort_test_zones(), before);
	/* The rest of the machine goes on between the two sums. */
	for (i = 0; i < 100 && !equal; i++)
		equal = cohort_test_zones() == cohort_test_domains();
	KUNIT_EXPECT_TRUE(test, equal);
}

static void cohort_block_test_stats(struct kunit *test)
{
	unsigned long nr[COHORT_NR_KINDS], before, all, sum = 0;
	unsigned int kind;

	cohort_block_stats(nr);
	before = nr[COHORT_PROCESS];
	cohort_test_take(test, cohort_pages() + 1);
	all = cohort_block_stats(nr);
	for (kind = 0; kind < COHORT_NR_KINDS; kind++)
		sum += nr[kind];
	KUNIT_EXPECT_EQ(test, all, sum);
	KUNIT_EXPECT_EQ(test, nr[COHORT_PROCESS], before + 2);
}

static void cohort_block_test_dissolve_in_use(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page, *parked;
	struct cohort_block *blk;

	cohort_test_take(test, 3);
	page = ct->page[1];
	parked = page + 2;
	blk = cohort_test_block(page);
	KUNIT_EXPECT_EQ(test, cohort_domain_dissolve(ct->dom, true), cohort_pages() - 3);
	KUNIT_EXPECT_NULL(test, blk->dom);
	KUNIT_EXPECT_EQ(test, blk->map.nr, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	KUNIT_EXPECT_TRUE(test, is_free_buddy_page(parked));
	/* Those in use are their owner's until freed, then the buddy's. */
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_FALSE(test, cohort_block_test_is_buddy(page));
	cohort_test_free(test, 0, 3);
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(page));
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));
}

/* Blocks without a parked page yield nothing: only a full dissolve takes them. */
static void cohort_block_test_dissolve_full_blocks(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	cohort_test_take(test, cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_domain_dissolve(ct->dom, false), 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_dissolve(ct->dom, true), 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

static void cohort_block_test_dissolve_range(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *one, *other;
	unsigned long pfn;

	cohort_test_take(test, cohort_pages() + 1);
	one = cohort_test_block(ct->page[0]);
	other = cohort_test_block(ct->page[cohort_pages()]);
	KUNIT_ASSERT_PTR_NE(test, one, other);

	/* One frame inside is enough, and the neighbour is left alone. */
	pfn = page_to_pfn(ct->page[0]) + cohort_pages() / 2;
	cohort_dissolve_range(pfn, pfn + 1);
	KUNIT_EXPECT_NULL(test, one->dom);
	KUNIT_EXPECT_PTR_EQ(test, other->dom, ct->dom);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 1);
	cohort_test_free(test, 0, cohort_pages());
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(pfn_to_page(pfn)));
}

static void cohort_block_test_isolated_is_refused(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_HIGHUSER_MOVABLE, pageblock_order);
	struct cohort_test *ct = test->priv;
	int type;
	bool published;

	KUNIT_ASSERT_NOT_NULL(test, page);
	type = get_pageblock_migratetype(page);
	set_pageblock_migratetype(page, MIGRATE_ISOLATE);
	published = cohort_block_publish(ct->dom, page, cohort_order);
	set_pageblock_migratetype(page, type);
	__free_pages(page, pageblock_order);

	KUNIT_EXPECT_FALSE(test, published);
	KUNIT_EXPECT_NULL(test, cohort_test_block(page)->dom);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
}

static void cohort_block_test_switching_off_is_refused(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page;

	WRITE_ONCE(cohort_taking, false);
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	WRITE_ONCE(cohort_taking, true);

	/* The stock allocator serves it. */
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_PTR_NE(test, cohort_test_block(page)->dom, ct->dom);
	__free_page(page);
}

static void cohort_block_test_next_pfn(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long first;

	cohort_test_take(test, 1);
	first = page_to_pfn(ct->page[0]);
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first), first + cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first + cohort_pages() - 1),
			first + cohort_pages());

	cohort_domain_dissolve(ct->dom, true);
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first + 1), first + 1);
}

static void cohort_block_test_beyond_the_table(struct kunit *test)
{
	unsigned long pfn = ULONG_MAX - 1;

	KUNIT_EXPECT_NULL(test, cohort_block_of(pfn));
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(pfn), pfn);
	cohort_dissolve_range(ULONG_MAX - 2 * COHORT_BLOCK_PAGES,
			      ULONG_MAX - COHORT_BLOCK_PAGES);
}

/* A parked page is neither on the LRU nor the buddy's until it is dissolved. */
static void cohort_block_test_hwpoison(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	struct page *page;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
	cohort_test_take(test, 2);
	page = ct->page[0] + cohort_pages() / 2;
	blk = cohort_test_block(page);
	KUNIT_EXPECT_EQ(test, memory_failure(page_to_pfn(page), MF_SW_SIMULATED), 0);
	KUNIT_EXPECT_TRUE(test, PageHWPoison(page));
	KUNIT_EXPECT_NULL(test, blk->dom);
	KUNIT_EXPECT_EQ(test, unpoison_memory(page_to_pfn(page)), 0);
}

static struct kunit_case cohort_block_test_cases[] = {
	KUNIT_CASE(cohort_block_test_goes_home),
	KUNIT_CASE(cohort_block_test_taken_in_order),
	KUNIT_CASE(cohort_block_test_any_order_of_frees),
	KUNIT_CASE(cohort_block_test_parked_page),
	KUNIT_CASE(cohort_block_test_zone_counter),
	KUNIT_CASE(cohort_block_test_stats),
	KUNIT_CASE(cohort_block_test_dissolve_in_use),
	KUNIT_CASE(cohort_block_test_dissolve_full_blocks),
	KUNIT_CASE(cohort_block_test_dissolve_range),
	KUNIT_CASE(cohort_block_test_isolated_is_refused),
	KUNIT_CASE(cohort_block_test_switching_off_is_refused),
	KUNIT_CASE(cohort_block_test_next_pfn),
	KUNIT_CASE(cohort_block_test_beyond_the_table),
	KUNIT_CASE(cohort_block_test_hwpoison),
	{}
};

static struct kunit_suite cohort_block_test_suite = {
	.name = "cohort_block",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_block_test_cases,
};
kunit_test_suite(cohort_block_test_suite);
