// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: which block the next page comes from, when another block is taken,
 * and what is given back.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>

#include "cohort_test.h"

static void cohort_domain_test_fullest_first(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *wanted;

	/* One full block, one just begun; then a hole in the full one. */
	cohort_test_take(test, cohort_pages() + 4);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 2);
	wanted = ct->page[7];
	cohort_test_free(test, 7, 1);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_PTR_EQ(test, ct->page[ct->nr - 1], wanted);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 2);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 4);
}

static void cohort_domain_test_zone_limit(struct kunit *test)
{
	struct alloc_context ac = { .highest_zoneidx = 0 };
	struct cohort_test *ct = test->priv;
	struct page *page;

	cohort_test_take(test, 1);
	if (page_zonenum(ct->page[0]) == 0)
		kunit_skip(test, "only one zone");
	KUNIT_EXPECT_NULL(test, cohort_domain_take(ct->dom, &ac));

	ac.highest_zoneidx = MAX_NR_ZONES - 1;
	page = cohort_domain_take(ct->dom, &ac);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_block(page),
			    cohort_test_block(ct->page[0]));
	/* Taken but not prepared: straight back. */
	KUNIT_EXPECT_TRUE(test, cohort_free_page(page, page_to_pfn(page), 0));
}

static void cohort_domain_test_node_limit(struct kunit *test)
{
	struct alloc_context ac = { .highest_zoneidx = MAX_NR_ZONES - 1 };
	struct cohort_test *ct = test->priv;
	nodemask_t none = NODE_MASK_NONE;

	cohort_test_take(test, 1);
	ac.nodemask = &none;
	KUNIT_EXPECT_NULL(test, cohort_domain_take(ct->dom, &ac));
}

static void cohort_domain_test_cap(struct kunit *test)
{
	unsigned long cap = READ_ONCE(cohort_parked_max);
	struct cohort_test *ct = test->priv;
	struct page *page;

	/* What is parked may be used, but nothing is added to it. */
	cohort_test_take(test, cohort_pages() - 1);
	WRITE_ONCE(cohort_parked_max, 0);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	WRITE_ONCE(cohort_parked_max, cap);

	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 1);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_PTR_NE(test, cohort_test_block(page)->dom, ct->dom);
	__free_page(page);
}

/* Reserves are not for filling blocks, and only movable pages live in them. */
static void cohort_domain_test_not_for_everybody(struct kunit *test)
{
	unsigned int flags = memalloc_noreclaim_save();
	struct cohort_test *ct = test->priv;
	struct page *page;

	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	memalloc_noreclaim_restore(flags);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);

	page = cohort_alloc_pages_noprof(GFP_KERNEL, numa_mem_id(), NULL, ct->dom);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

/* Three blocks: the first nearly empty, the second half, the third young. */
static void cohort_domain_test_three_blocks(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int pages = cohort_pages();

	cohort_test_take(test, 2 * pages + 1);
	KUNIT_ASSERT_EQ(test, ct->dom->nr_blocks, 3);
	cohort_test_free(test, 0, pages - 2);
	cohort_test_free(test, pages, pages / 2);
}

static void cohort_domain_test_pick(struct kunit *test)
{
	struct cohort_block *emptiest, *picked;
	struct cohort_test *ct = test->priv;

	cohort_domain_test_three_blocks(test);
	emptiest = cohort_test_block(ct->page[cohort_pages() - 1]);
	picked = cohort_pick_victim(ct->dom);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	KUNIT_EXPECT_PTR_EQ(test, picked, emptiest);
	KUNIT_EXPECT_EQ(test, picked->bucket, COHORT_BUSY);

	/* Nothing is taken from it, though it has the lowest frames. */
	cohort_test_take(test, cohort_pages() / 2 + 1);
	KUNIT_EXPECT_EQ(test, picked->map.nr, cohort_pages() - 2);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 3);

	KUNIT_EXPECT_FALSE(test, cohort_unpick(ct->dom, picked));
	KUNIT_EXPECT_PTR_EQ(test, picked->dom, ct->dom);
	KUNIT_EXPECT_NE(test, picked->bucket, COHORT_BUSY);
	/* It was in vain: the block rests before it is picked again. */
	picked = cohort_pick_victim(ct->dom);
	KUNIT_EXPECT_PTR_NE(test, picked, emptiest);
	if (picked)
		cohort_unpick(ct->dom, picked);
}

static void cohort_domain_test_picked_goes_home(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *picked;

	cohort_domain_test_three_blocks(test);
	picked = cohort_pick_victim(ct->dom);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	cohort_test_free(test, 0, cohort_pages());
	KUNIT_EXPECT_NULL(test, picked->dom);
	KUNIT_EXPECT_TRUE(test, cohort_unpick(ct->dom, picked));
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 2);
}

static void cohort_domain_test_picked_is_dissolved(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *picked;

	cohort_domain_test_three_blocks(test);
	picked = cohort_pick_victim(ct->dom);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	cohort_domain_dissolve(ct->dom, true);
	KUNIT_EXPECT_NULL(test, picked->dom);
	KUNIT_EXPECT_TRUE(test, cohort_unpick(ct->dom, picked));
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

static void cohort_domain_test_nothing_to_pick(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	KUNIT_EXPECT_NULL(test, cohort_pick_victim(ct->dom));
	cohort_test_take(test, cohort_pages() + 1);
	KUNIT_EXPECT_NULL(test, cohort_pick_victim(ct->dom));
}

static void cohort_domain_test_compact(struct kunit *test)
{
	unsigned int i, pages = 4 * cohort_pages();
	struct cohort_domain *dom;
	unsigned long addr, parked;

	addr = cohort_test_map(test, pages);
	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	/* Pages in batches are on no LRU yet, and freed ones not yet free. */
	lru_add_drain_all();
	parked = dom->nr_parked;
	KUNIT_ASSERT_GE(test, parked, pages / 2 - cohort_pages() / 2);

	KUNIT_EXPECT_GE(test, cohort_domain_compact(dom, true), 1);
	KUNIT_EXPECT_LE(test, dom->nr_parked, parked - cohort_pages());
	for (i = 1; i < pages; i += 2)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

static void cohort_domain_test_give_back(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	cohort_test_take(test, 5);
	/* A process in use keeps its block until the last level. */
	cohort_give_back(NULL, COHORT_GIVE_BACKGROUND);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 5);
	KUNIT_EXPECT_GE(test, cohort_give_back(NULL, COHORT_GIVE_ALL), cohort_pages() - 5);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
}

static void cohort_domain_test_give_back_background(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	cohort_test_take(test, 5);
	ct->dom->class = COHORT_BACKGROUND;
	KUNIT_EXPECT_GE(test, cohort_give_back(NULL, COHORT_GIVE_BACKGROUND),
			cohort_pages() - 5);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

static void request_begin(struct alloc_context *ac)
{
	ac->zonelist = node_zonelist(numa_mem_id(), GFP_ATOMIC);
	ac->highest_zoneidx = MAX_NR_ZONES - 1;
	ac->preferred_zoneref = first_zones_zonelist(ac->zonelist, ac->highest_zoneidx, NULL);
}

/* Who gets a part at a time gets all that there is in the end. */
static void cohort_domain_test_give_back_request(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct alloc_context ac = { };
	unsigned int rounds = 0;

	cohort_test_take(test, 5);
	ct->dom->class = COHORT_BACKGROUND;
	request_begin(&ac);
	while (ct->dom->nr_blocks && rounds < 1000) {
		KUNIT_EXPECT_GT(test, cohort_give_back(&ac, COHORT_GIVE_BACKGROUND), 0UL);
		rounds++;
	}
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
}

/* Few blocks are lost for what a request gets, and not those that are full. */
static void cohort_domain_test_give_back_emptiest(struct kunit *test)
{
	struct cohort_block *emptiest, *fullest;
	struct cohort_test *ct = test->priv;
	unsigned int pages = cohort_pages();
	struct alloc_context ac = { };
	unsigned int rounds;

	cohort_test_take(test, 4 * pages);
	emptiest = cohort_test_block(ct->page[0]);
	fullest = cohort_test_block(ct->page[3 * pages]);
	cohort_test_free(test, 3 * pages, 3);
	cohort_test_free(test, 2 * pages, pages / 2);
	cohort_test_free(test, pages, pages - 2);
	cohort_test_free(test, 0, pages - 1);
	ct->dom->class = COHORT_BACKGROUND;
	request_begin(&ac);
	for (rounds = 0; ct->dom->nr_blocks == 4 && rounds < 1000; rounds++)
		cohort_give_back(&ac, COHORT_GIVE_BACKGROUND);
	KUNIT_EXPECT_NULL(test, emptiest->dom);
	KUNIT_EXPECT_PTR_EQ(test, fullest->dom, ct->dom);
	KUNIT_EXPECT_EQ(test, fullest->map.nr, 3);
}

/* A request that cannot wait is not starved by what is parked. */
static void cohort_domain_test_steal(struct kunit *test)
{
	struct alloc_context ac = { };
	unsigned long before;
	struct page *page;

	cohort_test_take(test, 1);
	request_begin(&ac);
	before = cohort_test_domains();
	page = cohort_steal_page(GFP_ATOMIC, 0, 0, &ac);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before - 1);
	__free_page(page);
	KUNIT_EXPECT_NULL(test, cohort_steal_page(GFP_ATOMIC, 1, 0, &ac));
}

/* Pages outlive the domain: in batches, in the swap cache, pinned. */
static void cohort_domain_test_destroy_in_use(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;

	cohort_test_take(test, cohort_pages() + 2);
	blk = cohort_test_block(ct->page[0]);
	cohort_domain_destroy(ct->dom);
	ct->dom = NULL;
	synchronize_rcu();
	KUNIT_EXPECT_NULL(test, blk->dom);
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_EQ(test, blk->map.nr, 0);
}

static struct kunit_case cohort_domain_test_cases[] = {
	KUNIT_CASE(cohort_domain_test_fullest_first),
	KUNIT_CASE(cohort_domain_test_zone_limit),
	KUNIT_CASE(cohort_domain_test_node_limit),
	KUNIT_CASE(cohort_domain_test_cap),
	KUNIT_CASE(cohort_domain_test_not_for_everybody),
	KUNIT_CASE(cohort_domain_test_pick),
	KUNIT_CASE(cohort_domain_test_picked_goes_home),
	KUNIT_CASE(cohort_domain_test_picked_is_dissolved),
	KUNIT_CASE(cohort_domain_test_nothing_to_pick),
	KUNIT_CASE(cohort_domain_test_compact),
	KUNIT_CASE(cohort_domain_test_give_back),
	KUNIT_CASE(cohort_domain_test_give_back_background),
	KUNIT_CASE(cohort_domain_test_give_back_request),
	KUNIT_CASE(cohort_domain_test_give_back_emptiest),
	KUNIT_CASE(cohort_domain_test_steal),
	KUNIT_CASE(cohort_domain_test_destroy_in_use),
	{}
};

static struct kunit_suite cohort_domain_test_suite = {
	.name = "cohort_domain",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_domain_test_cases,
};
kunit_test_suite(cohort_domain_test_suite);
